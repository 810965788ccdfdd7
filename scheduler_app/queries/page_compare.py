"""Two runs of a DAG beside each other: what each task did in the one and in the other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.db.models import Count, Max, Min, QuerySet

from scheduler_app.engine import states
from scheduler_app.models import DagRun, TaskInstance

#: Runs that can be chosen from.
CHOICES: Final = 50


@dataclass(slots=True)
class Side:
    """A task in one run, all its map indexes together: from the first start to the last end."""

    #: state or "none" → instances
    tally: Counter[str] = field(default_factory=Counter)
    start: datetime | None = None
    end: datetime | None = None
    tries: int = 0
    live: bool = False

    def seconds(self, now: datetime) -> float | None:
        """None for what has not begun."""
        if self.start is None:
            return None
        end = now if self.live or self.end is None else self.end
        return max(0.0, (end - self.start).total_seconds())

    @property
    def total(self) -> int:
        return self.tally.total()


def sides(run_pks: list[int]) -> dict[int, dict[str, Side]]:
    """Run → task → its side. One query."""
    grouped = (
        TaskInstance.objects.filter(dag_run_id__in=run_pks).order_by().values_list("dag_run_id", "task_id", "state")
    )
    records = grouped.annotate(n=Count("id"), begun=Min("start_date"), ended=Max("end_date"), tries=Max("try_number"))
    found: dict[int, dict[str, Side]] = {pk: {} for pk in run_pks}
    for run, task, state, count, begun, ended, tries in records:
        side = found[run].setdefault(task, Side())
        side.tally[state or "none"] += count
        side.start = min(filter(None, (side.start, begun)), default=None)
        side.end = max(filter(None, (side.end, ended)), default=None)
        side.tries = max(side.tries, tries)
        side.live = side.live or (state in states.WITH_PROCESS)
    return found


def usual_partner(visible: QuerySet[DagRun], run: DagRun) -> DagRun | None:
    """The newest success before it, else the newest run before it. At most two queries."""
    before = _of_dag(visible, run).filter(run_after__lte=run.run_after).exclude(pk=run.pk)
    return before.filter(state=states.SUCCESS).first() or before.first()


def partner(visible: QuerySet[DagRun], run: DagRun, run_id: str) -> DagRun | None:
    """The run of the same DAG with that id. One query."""
    return _of_dag(visible, run).filter(run_id=run_id).first()


def choices(visible: QuerySet[DagRun], run: DagRun) -> list[tuple[str, str]]:
    """(run id, state) of the newest other runs of its DAG. One query."""
    found = _of_dag(visible, run).exclude(pk=run.pk)
    return list(found.values_list("run_id", "state")[:CHOICES])


def _of_dag(visible: QuerySet[DagRun], run: DagRun) -> QuerySet[DagRun]:
    found = visible.filter(dag_id=run.dag_id).select_related("dag_version").order_by("-run_after", "-id")
    return found.defer("dag_version__document")
