"""Tags of the pages: states, times, durations, bars, icons."""

from __future__ import annotations

import functools
import html
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from django import template
from django.template import Context
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from lucide.templatetags.lucide import lucide

from scheduler_app.queries.page_why_run import is_held

if TYPE_CHECKING:
    from scheduler_app.models.pool import PoolUse
    from scheduler_app.queries.page_backfills import Progress
    from scheduler_app.queries.page_dags import Bar
    from scheduler_app.queries.workers import Worker
    from scheduler_app.ui import gantt
    from scheduler_app.ui.grid import Cell, Line
    from scheduler_app.ui.layout import Box, Wire

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


#: Width of one bar of a row of runs and the gap after it, in pixels.
BAR_STEP = 9


@register.filter
def bar_width(bars: list[Bar], step: int = BAR_STEP) -> int:
    """Pixels that a row of bars takes."""
    return max(1, len(bars)) * step


@register.filter
def bar_top(share: float, height: int) -> str:
    """Where a bar of that share of the longest one ends, in pixels from the top."""
    return f"{height - share * (height - 4):.1f}"


def run_url(dag_id: str, run_id: str) -> str:
    """As ``reverse("scheduler:run")``, for pages with thousands of links: resolving each cost half of their time."""
    return f"{_dag_url(dag_id)}runs/{quote(run_id, safe=_URL_SAFE)}/"


@functools.lru_cache(maxsize=4096)
def _dag_url(dag_id: str) -> str:
    return reverse("scheduler:dag", args=[dag_id])


#: What ``reverse`` leaves as it is in a part of a path.
_URL_SAFE = "!$&'()*+,;=/~:@"


@register.simple_tag
def bar_mark(dag_id: str, bar: Bar, place: int, height: int, step: int = BAR_STEP) -> SafeString:
    """One run as a linked bar of an SVG: its height is the duration, colour and notch are the state."""
    # written by hand: a list has 700 of them, and escaping piece by piece took a third of its time
    x = f"{place * step + (step - 2) / 2:g}"
    top = round(height - max(3.0, bar.height * (height - 4)))
    words = f"{state_label(bar.state)}, {timezone.localtime(bar.run_after):%m-%d %H:%M}, {span(bar.seconds)}"
    # a failed run's bar ends in a notch: a short stroke across, most of it inside the bar
    notch = f"m-1.5 {(step - 2) // 2 - 2.5:g}h3" if bar.state == "failed" else ""
    return mark_safe(
        f'<a href="{html.escape(run_url(dag_id, bar.run_id))}"><title>{html.escape(words)}</title>'
        f'<path class="s-{html.escape(bar.state)}" d="M{x} {height}V{top}{notch}"/></a>'
    )


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


@register.simple_tag
def pool_meter(use: PoolUse) -> SafeString:
    """The slots of a pool as one bar: running, queued, deferred if they count, free."""
    taken = [("s-running", use.running), ("s-queued", use.queued)]
    taken += [("s-deferred", use.deferred)] if use.include_deferred else []
    label = _("%(taken)s of %(slots)s slots taken") % {"taken": use.occupied, "slots": use.slots}
    return _meter(label, taken, max(use.slots if use.slots > 0 else use.occupied, use.occupied))


@register.simple_tag
def slots_meter(worker: Worker) -> SafeString:
    """The slots of a worker as one bar."""
    label = _("%(taken)s of %(slots)s slots taken") % {"taken": worker.busy, "slots": worker.slots}
    return _meter(label, [("s-running", min(worker.busy, worker.slots))], worker.slots)


@register.simple_tag
def progress_meter(progress: Progress) -> SafeString:
    """The slots of a backfill as one bar: how many stand how."""
    shapes = {"waiting": "base", "left": "s-skipped", "cancelled": "s-removed"}
    pieces = [(shapes.get(name, f"s-{name}"), count) for name, count in progress.pieces]
    label = _("%(ended)s of %(total)s slots are done") % {"ended": progress.ended, "total": progress.total}
    return _meter(label, pieces, progress.total)


def _meter(label: str, pieces: Iterable[tuple[str, int]], total: int) -> SafeString:
    """One bar of ``total``, filled by the pieces (class and number) from its start."""
    shapes, at = [], 0.0
    for name, count in pieces:
        width = 100 * count / max(total, 1)
        shapes.append((f"{at:.2f}%", f"{width:.2f}%", name))
        at += width
    bars = format_html_join("", '<rect x="{}" width="{}" height="12" class="{}"/>', shapes)
    frame = '<svg class="meter" role="img" aria-label="{}"><rect class="base" width="100%" height="12" rx="3"/>{}</svg>'
    return format_html(frame, label, bars)


@register.filter
def at(values: Mapping[str, Any], key: str) -> Any:
    """One value of a dict; None when there is none."""
    return values.get(key)


@register.simple_tag
def grid_bar(dag_id: str, bar: Bar, height: int = 56) -> SafeString:
    """A run's duration above its column of the grid."""
    return format_html(
        '<svg class="bars big" width="14" height="{}" viewBox="0 0 14 {}">{}</svg>',
        height, height, bar_mark(dag_id, bar, 0, height, 16),
    )  # fmt: skip


@register.simple_tag
def grid_cell(dag_id: str, line: Line, cell: Cell | None) -> SafeString:
    """One cell of the grid: a link to the task instance, or to the run for a group."""
    if cell is None:
        return mark_safe("<td></td>")
    label = f"{line.id} · {state_label(cell.state)}" + (f" ×{cell.count}" if cell.count > 1 else "")
    base = run_url(dag_id, cell.run_id)
    link = base if line.is_group else f"{base}tasks/{quote(line.id, safe=_URL_SAFE)}/"
    return format_html(
        '<td><a href="{}" aria-label="{}" title="{}"><i class="cell s-{}"></i></a></td>', link, label, label, cell.state
    )


@register.filter
def plus(value: float, more: float) -> str:
    return f"{value + more:.1f}"


@register.simple_tag
def svg_rect(box: Box, radius: int, css: str) -> SafeString:
    """The outline of a node or group."""
    return format_html(
        '<rect x="{}" y="{}" width="{}" height="{}" rx="{}" class="{}"/>',
        f"{box.x:.1f}", f"{box.y:.1f}", f"{box.width:.1f}", f"{box.height:.1f}", radius, css,
    )  # fmt: skip


@register.simple_tag
def svg_edge(box: Box) -> SafeString:
    """The coloured edge that carries a node's state."""
    return format_html(
        '<path class="edge" d="M{x} {y}v{h}q-5 0-5-5v-{i}q0-5 5-5z"/>',
        x=f"{box.x + 5:.1f}", y=f"{box.y:.1f}", h=f"{box.height:.1f}", i=f"{box.height - 10:.1f}",
    )  # fmt: skip


@register.simple_tag
def svg_wire(wire: Wire) -> SafeString:
    """A smooth line through a wire's points: each piece leaves and arrives level."""
    (x, y), *rest = wire.points
    pieces = [f"M{x:.1f} {y:.1f}"]
    for nx, ny in rest:
        bend = (nx - x) / 2
        pieces.append(f"C{x + bend:.1f} {y:.1f} {nx - bend:.1f} {ny:.1f} {nx:.1f} {ny:.1f}")
        x, y = nx, ny
    return format_html(
        '<path class="wire" d="{}" data-from="{}" data-to="{}"/>', "".join(pieces), wire.source, wire.target
    )


@register.filter
def listed(text: str) -> list[str]:
    """The parts of a text that is separated by commas."""
    return text.split(",")


@register.simple_tag
def gantt_bars(line: gantt.Line, height: int = 16) -> SafeString:
    """One row of a Gantt chart: hatched while it waited, filled while it ran, a piece a try. Places in percent."""
    # written by hand: a run has hundreds of rows with several pieces each
    words, marks = [], []
    for bar in line.bars:
        long = span(bar.seconds)
        text = (
            _("waited %(long)s") % {"long": long}
            if bar.state is None
            else _("try %(n)s: %(state)s, %(long)s")
            % {"n": bar.number, "state": state_label(bar.state).lower(), "long": long}
        )
        words.append(text)
        box = f'x="{bar.left:.2f}%" width="{bar.width:.2f}%" y="2" height="{height - 4}"'
        look = 'class="wait" fill="url(#hatch)"' if bar.state is None else f'class="did s-{html.escape(bar.state)}"'
        marks.append(f"<rect {box} {look}><title>{html.escape(text)}</title></rect>")
        if bar.state is not None and bar.width < 0.4:  # a try too short to be seen is drawn as a line
            marks.append(f'<rect x="{min(bar.left, 99.6):.2f}%" width="2" y="2" height="{height - 4}" {look}/>')
        if bar.state == "failed":
            marks.append(f'<text x="{bar.left:.2f}%" dx="3" y="{height - 4}" aria-hidden="true">×</text>')
    label = html.escape("; ".join(words))
    css = ' class="critical"' if line.critical else ""
    return mark_safe(
        f'<svg{css} width="100%" height="{height}" role="img" aria-label="{label}">'
        f'<use href="#ticks"/>{"".join(marks)}</svg>'
    )
