"""Is anything wrong? What failed lately, what runs, what comes next, which pools are nearly full."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import QuerySet

from scheduler_app.models import Callback, DagModel, DagRun, Deadline, ParseError, Pool, TaskInstance
from scheduler_app.models.pool import PoolUse
from scheduler_app.models.run import in_states

from .hitl import asking
from .page_dags import LATE_AFTER

SHOWN: Final = 10
LATELY: Final = timedelta(hours=24)
#: A pool is nearly full from this share of its slots on.
NEARLY_FULL: Final = 0.8
#: Numbers beyond this are shown as "1000+": nobody counts further, and counting would read the whole index.
COUNTED: Final = 1000


@dataclass(frozen=True, slots=True)
class Failure:
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    ended: datetime
    reason: str | None


@dataclass(frozen=True, slots=True)
class Home:
    running: int
    queued: int
    failed: int
    late: list[tuple[str, datetime]]
    failures: list[Failure]
    active: list[DagRun]
    coming: list[tuple[str, datetime]]
    full_pools: list[PoolUse]
    import_errors: int
    dags: int
    paused: int
    #: callbacks that were given up, and deadlines that were missed, lately
    untold: int
    missed: int
    #: questions of tasks that wait for an answer
    questions: int

    @property
    def quiet(self) -> bool:
        wrong = (self.failures, self.late, self.full_pools, self.import_errors, self.failed, self.untold, self.missed)
        return not any((*wrong, self.questions))


def home(
    dags: QuerySet[DagModel],
    runs: QuerySet[DagRun],
    instances: QuerySet[TaskInstance],
    callbacks: QuerySet[Callback],
    deadlines: QuerySet[Deadline],
    now: datetime,
) -> Home:
    """What the first page shows, in twelve queries."""
    since = now - LATELY
    failures = instances.filter(state="failed", end_date__gt=since).order_by("-end_date")
    planned = dags.active().unpaused().filter(next_dagrun_run_after__isnull=False).order_by("next_dagrun_run_after")
    coming = list(planned.values_list("dag_id", "next_dagrun_run_after")[: SHOWN * 2])
    late = [one for one in coming if one[1] < now - LATE_AFTER]
    active = runs.filter(state="running").defer("conf").order_by("start_date", "id")
    known = list(dags.active().values_list("is_paused", flat=True)[: COUNTED * 10])
    return Home(
        running=_count(runs.filter(state="running")),
        queued=_count(runs.filter(in_states(["queued"]))),
        failed=_count(runs.filter(state="failed", end_date__gt=since)),
        late=late[:SHOWN],
        failures=[
            Failure(*record)
            for record in failures.values_list(
                "dag_id", "dag_run__run_id", "task_id", "map_index", "end_date", "reason"
            )[:SHOWN]
        ],
        active=list(active[:SHOWN]),
        coming=[one for one in coming if one not in late][:SHOWN],
        full_pools=[use for use in Pool.objects.use().values() if 0 < use.slots * NEARLY_FULL <= use.occupied],
        import_errors=ParseError.objects.count(),
        dags=len(known),
        paused=sum(known),
        untold=_count(callbacks.filter(state="failed", finished_at__gt=since)),
        questions=_count(asking(instances.filter(state="deferred")).filter(is_answered=False)),
        missed=_count(deadlines.filter(missed_at__gt=since)),
    )


def _count(rows: QuerySet[Any]) -> int:
    return rows.order_by()[: COUNTED + 1].count()
