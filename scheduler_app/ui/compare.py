"""What was different? A run beside another one of its DAG, the last success before it if nobody chose."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _

from scheduler_app import access
from scheduler_app.models import DagModel, DagRun
from scheduler_app.queries import page_compare, page_dag
from scheduler_app.queries.page_compare import Side

from . import run as run_page
from .page import Ask, page, page_number
from .worst import worst

#: Tasks on a page.
ROWS: Final = 200
#: Lines of the difference between two files that are shown.
LINES: Final = 400


@dataclass(frozen=True, slots=True)
class Half:
    """One cell of the comparison."""

    state: str
    total: int
    seconds: float | None
    tries: int


@dataclass(frozen=True, slots=True)
class Line:
    task_id: str
    here: Half | None
    there: Half | None

    @property
    def differs(self) -> bool:
        """Another state, other tries, another number of map indexes: a duration alone always differs."""
        here, there = self.here, self.there
        if here is None or there is None:
            return True
        return (here.state, here.total, here.tries) != (there.state, there.total, there.tries)

    @property
    def took(self) -> tuple[float | None, float | None, float | None]:
        """Seconds here, there, and how many more here (negative: fewer); None for what has not begun."""
        here, there = (half.seconds if half else None for half in (self.here, self.there))
        return here, there, None if here is None or there is None else here - there


@page
def show(ask: Ask, dag_id: str, run_id: str) -> HttpResponse:
    ask.need("view", "task")
    run = run_page.find(ask, dag_id, run_id)
    other = _other(ask, run)
    only = ask.request.GET.get("only") == "different"
    context = {
        "section": "scheduler:runs",
        "tab": "compare",
        "dag": run.dag,
        "run": run,
        "other": other,
        "choices": page_compare.choices(access.runs(ask.actor), run),
        "only": only,
    }
    if other is not None:
        sides = page_compare.sides([run.pk, other.pk])
        found = lines(sides[run.pk], sides[other.pk], ask.now)
        shown = [line for line in found if line.differs] if only else found
        number = min(page_number(ask.request), max(1, -(-len(shown) // ROWS)))
        context |= {
            "lines": shown[(number - 1) * ROWS : number * ROWS],
            "different": sum(line.differs for line in found),
            "total": len(found),
            "page": number,
            "pages": max(1, -(-len(shown) // ROWS)),
            "same_conf": run.conf == other.conf,
            "change": _change(ask, run.dag, run, other),
            "most_lines": LINES,
        }
    return ask.show("run_compare.html", context)


def _other(ask: Ask, run: DagRun) -> DagRun | None:
    wanted = ask.request.GET.get("with", "")
    if not wanted:
        return page_compare.usual_partner(access.runs(ask.actor), run)
    found = page_compare.partner(access.runs(ask.actor), run, wanted)
    if found is None:
        raise Http404(_("%(dag)s has no run “%(run)s”, or you may not see it.") % {"dag": run.dag_id, "run": wanted})
    return found


def lines(here: Mapping[str, Side], there: Mapping[str, Side], now: datetime) -> list[Line]:
    """One for each task of either run, in the order of their starts here, then there."""

    def place(task_id: str) -> tuple[float, float, str]:
        starts = [side.start if side else None for side in (here.get(task_id), there.get(task_id))]
        first, second = (start.timestamp() if start else float("inf") for start in starts)
        return first, second, task_id

    return [
        Line(task_id, _half(here.get(task_id), now), _half(there.get(task_id), now))
        for task_id in sorted(here.keys() | there.keys(), key=place)
    ]


def _half(side: Side | None, now: datetime) -> Half | None:
    return side and Half(worst(side.tally), side.total, side.seconds(now), side.tries)


def _change(ask: Ask, dag: DagModel, run: DagRun, other: DagRun) -> list[str] | None:
    """What the file of this run has that the other's had not, as lines that begin with "+", "-" or " ".

    None when both ran the same version, when a source is not kept, or when the reader may not see code.
    """
    if run.dag_version is None or other.dag_version is None or run.dag_version_id == other.dag_version_id:
        return None
    if not ask.can("view", "dag_version"):
        return None
    old, new = page_dag.source(dag, other.dag_version), page_dag.source(dag, run.dag_version)
    if old is None or new is None:
        return None
    found = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
    return list(found)[2 : LINES + 3]
