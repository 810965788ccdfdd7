"""Tags of the pages: states, times, durations, bars, icons."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django import template
from django.template import Context
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from lucide.templatetags.lucide import lucide

from scheduler_app.queries.page_why_run import is_held

if TYPE_CHECKING:
    pass

register = template.Library()
register.filter("in_force", is_held)

STATE_LABELS = {
    "success": gettext_lazy("Success"),
    "failed": gettext_lazy("Failed"),
    "running": gettext_lazy("Running"),
    "queued": gettext_lazy("Queued"),
    "scheduled": gettext_lazy("Scheduled"),
    "up_for_retry": gettext_lazy("Up for retry"),
    "up_for_reschedule": gettext_lazy("Up for reschedule"),
    "upstream_failed": gettext_lazy("Upstream failed"),
    "skipped": gettext_lazy("Skipped"),
    "deferred": gettext_lazy("Deferred"),
    "restarting": gettext_lazy("Restarting"),
    "removed": gettext_lazy("Removed"),
    "none": gettext_lazy("No status"),
    "held": gettext_lazy("Held"),
}


@register.filter
def state_label(state: str | None) -> str:
    """The word for a state; a task instance without one has "No status"."""
    return str(STATE_LABELS.get(state or "none", state or ""))


@register.simple_tag
def state(value: str | None, id: str = "") -> SafeString:
    """A state as shape, colour and word. With an id the live patch can change it in place."""
    name = value or "none"
    label = STATE_LABELS.get(name, name)
    if id:
        return format_html('<span class="st s-{}" id="{}">{}</span>', name, id, label)
    return format_html('<span class="st s-{}">{}</span>', name, label)


@register.simple_tag
@functools.lru_cache(maxsize=64)
def icon(name: str, size: int = 16) -> SafeString:
    """An inline SVG of the lucide set, hidden from screen readers: what it stands beside says what it means."""
    return mark_safe(lucide(name, size=size, aria_hidden="true", focusable="false"))


@register.simple_tag(takes_context=True)
def when(context: Context, moment: datetime | None, empty: str = "–") -> SafeString | str:
    """A moment in the reader's zone, short; the exact one with its zone is the tooltip."""
    if moment is None:
        return empty
    local = timezone.localtime(moment)
    now = timezone.localtime(context["now"])
    if local.date() == now.date():
        text = date_format(local, "H:i:s")
    elif local.year == now.year:
        text = date_format(local, "M j, H:i")
    else:
        text = date_format(local, "Y-m-d H:i")
    return _time(moment, text)


@register.simple_tag
def exact(moment: datetime | None, empty: str = "–") -> SafeString | str:
    """A moment to the second, with its zone."""
    return empty if moment is None else _time(moment, f"{timezone.localtime(moment):%Y-%m-%d %H:%M:%S %Z}")


@register.simple_tag(takes_context=True)
def ago(context: Context, moment: datetime | None, empty: str = "–") -> SafeString | str:
    """How far a moment is from now ("4 min ago", "in 2 h"); the exact one is the tooltip."""
    return empty if moment is None else _time(moment, relative(moment, context["now"]))


@register.filter
def moment(text: str) -> datetime:
    """The moment that an ISO 8601 text says."""
    return datetime.fromisoformat(text)


@register.filter
def plain(value: Any) -> Any:
    """A value of a details list: a moment exactly, in the reader's zone, a dash for none, anything else as it is."""
    if isinstance(value, datetime):
        return exact(value)
    return "–" if value in (None, "") else value


def _time(moment: datetime, text: str) -> SafeString:
    stamp = moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    title = f"{timezone.localtime(moment):%Y-%m-%d %H:%M:%S %Z}"
    return format_html('<time datetime="{}" title="{}">{}</time>', stamp, title, text)


def relative(moment: datetime, now: datetime) -> str:
    """ "in 4 min", "2 h ago", "just now"."""
    gap = (moment - now).total_seconds()
    if abs(gap) < 1:
        return _("just now")
    span = span_text(abs(gap), coarse=True)
    return _("in %(span)s") % {"span": span} if gap > 0 else _("%(span)s ago") % {"span": span}


@register.filter
def span(value: timedelta | float | None) -> str:
    """A duration in words: "0.4 s", "2 m 14 s", "3 h 05 m", "2 d 4 h"; a dash for none."""
    if value is None:
        return "–"
    return span_text(value.total_seconds() if isinstance(value, timedelta) else value)


def span_text(seconds: float, *, coarse: bool = False) -> str:
    """``coarse`` gives one unit only."""
    if seconds < 10 and not coarse:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" if coarse else f"{whole // 60} m {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h" if coarse else f"{whole // 3600} h {whole % 3600 // 60:02} m"
    return f"{whole // 86400} d" if coarse else f"{whole // 86400} d {whole % 86400 // 3600} h"


@register.simple_tag(takes_context=True)
def lasted(context: Context, start: datetime | None, end: datetime | None) -> SafeString | str:
    """A duration; while it has no end, one that the browser lets tick."""
    if start is None:
        return "–"
    text = span_text(max(0.0, ((end or context["now"]) - start).total_seconds()))
    if end is not None:
        return text
    return format_html('<span data-since="{}">{}</span>', start.astimezone(UTC).isoformat(), text)


@register.filter
def pretty(value: Any) -> str:
    """A value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True, default=str)


@register.simple_tag(takes_context=True)
def query(context: Context, **changes: Any) -> str:
    """This page's query string with some parameters changed; None or "" takes one out."""
    values = context["request"].GET.copy()
    for key, value in changes.items():
        values.pop(key, None)
        if value not in (None, ""):
            values[key] = str(value)
    return f"?{values.urlencode()}" if values else "?"


@register.filter
def add_text(left: Any, right: Any) -> str:
    """Two values one after the other, as text."""
    return f"{left}{right}"


@register.filter
def is_text(value: Any) -> bool:
    return isinstance(value, str)


@register.filter
def first_line(text: str | None) -> str:
    """What a list has room for: the first line that is not blank."""
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), "")


@register.filter
def compact(value: Any) -> str:
    """A value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


@register.filter
def at_most(value: int, most: int) -> str:
    """A number that nobody counted further than ``most``."""
    return f"{most}+" if value > most else str(value)


COMPONENT_LABELS = {
    "SchedulerJob": gettext_lazy("Scheduler"),
    "DagProcessorJob": gettext_lazy("DAG processor"),
    "TriggererJob": gettext_lazy("Triggerer"),
    "LocalTaskJob": gettext_lazy("Local runner"),
    "CeleryWorkerJob": gettext_lazy("Celery worker"),
}


@register.filter
def component(job_type: str) -> str:
    return str(COMPONENT_LABELS.get(job_type, job_type))


HIT_KINDS = {
    "dag": gettext_lazy("DAG"),
    "task": gettext_lazy("task"),
    "run": gettext_lazy("run"),
    "page": gettext_lazy("page"),
    "action": gettext_lazy("do"),
}


@register.filter
def hit_kind(kind: str) -> str:
    """The word for a kind of search result."""
    return str(HIT_KINDS[kind])


@register.filter
def at(values: Mapping[str, Any], key: str) -> Any:
    """One value of a dict; None when there is none."""
    return values.get(key)


@register.filter
def listed(text: str) -> list[str]:
    """The parts of a text that is separated by commas."""
    return text.split(",")


@register.filter
def longer(seconds: float | None) -> str:
    """A difference of durations with its sign: "+12 s", "−0.4 s"; a dash for none."""
    if seconds is None:
        return "–"
    return f"{'−' if seconds < 0 else '+'}{span_text(abs(seconds))}"


@register.filter
def holds(pairs: Iterable[tuple[str, str]], name: str) -> bool:
    """Whether one of some (name, label) has that name."""
    return any(one == name for one, _label in pairs)


@register.filter
def percent(share: float) -> str:
    """A share from 0 to 1 in whole percent; what is not quite all or nothing is not called so."""
    whole = round(share * 100)
    return "99 %" if whole == 100 and share < 1 else "1 %" if whole == 0 and share > 0 else f"{whole} %"
