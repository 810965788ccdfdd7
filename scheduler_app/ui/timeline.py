"""When is the machine busy? Some hours of all DAGs: what ran, what runs, and what the schedules plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.http import HttpResponse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext_lazy

from scheduler_app import access
from scheduler_app.queries import page_dags, page_timeline
from scheduler_app.queries.page_timeline import Planned, Span

from .page import Ask, page, page_number
from .run_filter import FIRST, LAST, midnight
from .time_axis import Axis

HOURS: Final = (1, 3, 6, 12, 24)
GROUPS: Final = (("", gettext_lazy("one list")), ("tag", gettext_lazy("by tag")), ("owner", gettext_lazy("by owner")))
#: The share of the picture that lies ahead of now.
AHEAD: Final = 0.25
#: DAGs on a page.
ROWS: Final = 100
#: Seconds that a planned run without a history is drawn with.
UNKNOWN_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Mark:
    """A run as a bar, places in percent; ``run_id`` is empty for one that is only planned."""

    left: float
    width: float
    begun: datetime
    seconds: float | None
    state: str
    run_id: str


@dataclass(slots=True)
class Row:
    dag_id: str
    group: str
    marks: list[Mark] = field(default_factory=list)


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "run")
    ask.need("view", "dag")
    asked = ask.request.GET
    hours = int(asked.get("hours", "")) if asked.get("hours") in {str(one) for one in HOURS} else 6
    group = asked.get("group", "") if asked.get("group") in {name for name, _label in GROUPS} else ""
    since, until = _window(ask, hours)
    dags = page_dags.matching(access.dags(ask.actor), page_dags.words_of(asked.get("q", "")))
    spans, cut = page_timeline.spans(dags, since, until)
    planned = page_timeline.planned(dags, ask.now, until) if until > ask.now else []
    axis = Axis([(since, until)])
    found = rows(axis, spans, planned, ask.now)
    names = page_timeline.groups([row.dag_id for row in found], group)
    for row in found:
        row.group = names.get(row.dag_id, "")
    found.sort(key=lambda row: (group != "" and row.group == "", row.group, row.dag_id))
    number = min(page_number(ask.request), max(1, -(-len(found) // ROWS)))
    step = timedelta(hours=hours) / 2
    context = {
        "section": "scheduler:timeline",
        "q": asked.get("q", ""),
        "hours": hours,
        "all_hours": HOURS,
        "group": group,
        "groups": GROUPS,
        "since": since,
        "until": until,
        "rows": found[(number - 1) * ROWS : number * ROWS],
        "page": number,
        "pages": max(1, -(-len(found) // ROWS)),
        "cut": cut,
        "most": page_timeline.RUNS,
        "busy": busy(axis, spans, ask.now),
        "marks": [(place, date_format(timezone.localtime(one), "H:i")) for place, one in axis.marks()],
        "now_at": axis.at(ask.now) if since < ask.now < until else None,
        "earlier": (until - step).isoformat(),
        "later": (until + step).isoformat() if until < ask.now + timedelta(hours=24) else None,
        "moved": bool(asked.get("until")),
    }
    return ask.show("timeline.html", context)


def _window(ask: Ask, hours: int) -> tuple[datetime, datetime]:
    """From ``until`` in the address, or from now with a quarter ahead. An unreadable moment counts for nothing."""
    try:
        until = datetime.fromisoformat(ask.request.GET.get("until", ""))
        until = until if until.tzinfo else timezone.make_aware(until)
        known = midnight(FIRST) + timedelta(days=2) < until < midnight(LAST)
    except (ValueError, OverflowError):
        known = False
    if not known:
        until = ask.now + timedelta(hours=hours) * AHEAD
    return until - timedelta(hours=hours), until


def rows(axis: Axis, spans: Iterable[Span], planned: Iterable[Planned], now: datetime) -> list[Row]:
    """One for each DAG with something to show, its bars in the order of their begins."""
    found: dict[str, Row] = {}
    for span in spans:
        end = max(span.end or now, span.begun)
        seconds = None if span.state == "queued" else (end - span.begun).total_seconds()
        row = found.setdefault(span.dag_id, Row(span.dag_id, ""))
        row.marks.append(_mark(axis, span.begun, end, seconds, span.state, span.run_id))
    for plan in planned:
        end = plan.due + timedelta(seconds=plan.seconds or UNKNOWN_SECONDS)
        row = found.setdefault(plan.dag_id, Row(plan.dag_id, ""))
        row.marks.append(_mark(axis, plan.due, end, plan.seconds, "planned", ""))
    return list(found.values())


def _mark(axis: Axis, begun: datetime, end: datetime, seconds: float | None, state: str, run_id: str) -> Mark:
    left = axis.at(begun)
    return Mark(left, axis.at(end) - left, begun, seconds, state, run_id)


@dataclass(frozen=True, slots=True)
class Busy:
    """How many runs were under way: a line of steps in a box of 100 by :data:`HEIGHT`, and the most at once."""

    path: str
    most: int


#: Of the picture of the runs at once.
HEIGHT: Final = 30.0


def busy(axis: Axis, spans: Sequence[Span], now: datetime) -> Busy | None:
    """None when nothing ran. What is queued does not count."""
    ran = [(span.begun, span.end or now) for span in spans if span.state != "queued"]
    changes = sorted([(axis.at(begun), 1) for begun, _end in ran] + [(axis.at(end), -1) for _begun, end in ran])
    if not changes:
        return None
    levels: list[tuple[float, int]] = []
    level = 0
    for place, change in changes:
        level += change
        if levels and levels[-1][0] == place:
            levels[-1] = (place, level)
        else:
            levels.append((place, level))
    most = max(level for _place, level in levels)
    steps = "".join(f"H{place:.2f}V{HEIGHT - (HEIGHT - 2) * level / max(most, 1):.1f}" for place, level in levels)
    return Busy(f"M0 {HEIGHT:g}{steps}H{levels[-1][0]:.2f}V{HEIGHT:g}z", most)
