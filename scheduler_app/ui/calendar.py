"""Since when? A year of days, each a tile that the states of its runs share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from django.http import HttpResponse
from django.utils import timezone

from scheduler_app.queries import page_calendar, page_dag

from .page import Ask, page, zone_of
from .run_filter import day_of, midnight
from .worst import ORDER

WEEKS: Final = 53
#: Slots of the schedule that are looked ahead for.
AHEAD: Final = 400


@dataclass(frozen=True, slots=True)
class Day:
    date: date
    #: state → runs, the worst state first
    tally: dict[str, int]
    #: runs that the schedule will make
    planned: int
    today: bool

    @property
    def total(self) -> int:
        return sum(self.tally.values())


@dataclass(frozen=True, slots=True)
class Month:
    first: date
    #: state → runs
    tally: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.tally.values())

    @property
    def other(self) -> int:
        """Runs that have not ended."""
        return self.total - self.tally.get("success", 0) - self.tally.get("failed", 0)


@page
def show(ask: Ask, dag_id: str) -> HttpResponse:
    ask.need("view", "run")
    dag = ask.dag(dag_id)
    today = timezone.localdate(ask.now)
    weeks = calendar(today, min(today, day_of({"day": ask.request.GET.get("end", "")}) or today))
    first, last = weeks[0][0], weeks[-1][-1]
    tallies = page_calendar.states_by_day(
        dag_id, midnight(first), midnight(last + timedelta(days=1)), zone_of(ask.request).key
    )
    ahead = page_dag.coming(dag, ask.now, AHEAD) if last >= today and not dag.is_paused else []
    planned = Counter(timezone.localdate(moment) for moment in ahead)
    days = [[_day(one, tallies.get(one, {}), planned[one], today) for one in week] for week in weeks]
    context = {
        "section": "scheduler:dags",
        "tab": "calendar",
        "dag": dag,
        "weeks": days,
        "months": months(tallies),
        "labels": labels(weeks),
        "any": bool(tallies) or bool(planned),
        "earlier": first - timedelta(days=1),
        "later": min(today, last + timedelta(weeks=WEEKS)) if last < today else None,
        "cut": len(ahead) == AHEAD,
        "most": AHEAD,
    }
    return ask.show("dag_calendar.html", context)


def calendar(today: date, end: date) -> list[list[date]]:
    """The days of :data:`WEEKS` weeks, Monday first: up to the week of ``end``, or four weeks ahead of this one."""
    monday = end - timedelta(days=end.weekday())
    if monday <= today < monday + timedelta(days=7):
        monday += timedelta(weeks=4)
    start = monday - timedelta(weeks=WEEKS - 1)
    return [[start + timedelta(days=7 * week + day) for day in range(7)] for week in range(WEEKS)]


def labels(weeks: Sequence[Sequence[date]]) -> list[tuple[int, date]]:
    """(column, first day of a month) for each month that begins in the picture and has room for its name there."""
    return [(place, day) for place, week in enumerate(weeks[:-1]) for day in week if day.day == 1]


def months(tallies: Mapping[date, Mapping[str, int]]) -> list[Month]:
    """Those with runs, the newest first."""
    found: dict[date, Counter[str]] = {}
    for day, tally in tallies.items():
        found.setdefault(day.replace(day=1), Counter()).update(tally)
    return [Month(first, dict(found[first])) for first in sorted(found, reverse=True)]


def _day(day: date, tally: Mapping[str, int], planned: int, today: date) -> Day:
    return Day(day, {state: tally[state] for state in _by_rank(tally)}, planned, day == today)


def _by_rank(found: Iterable[str]) -> list[str]:
    return sorted(found, key=ORDER.index)
