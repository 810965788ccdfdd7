"""What ran when, of all DAGs: the runs in a span of time, and how long those that the schedules plan will take."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import QuerySet

from scheduler_app import timetables
from scheduler_app.engine import run_plans
from scheduler_app.models import DagModel, DagTag, db, schedules

from .page_run import USUAL_OF

#: Runs that one picture draws.
RUNS: Final = 3_000
#: A run that ended is looked for if it began no longer than this before the picture.
LOOK_BACK: Final = timedelta(days=1)
#: Planned runs that are drawn of one DAG, and DAGs whose schedules are asked.
PLANNED: Final = 50
DAGS_ASKED: Final = 300

#: Each arm by the partial index of its states.
_SPANS: Final = " UNION ALL ".join(
    f"(SELECT dag_id, run_id, state, coalesce(start_date, queued_at, run_after) AS begun, end_date"
    f" FROM scheduler_dag_run WHERE dag_id IN (SELECT dag_id FROM visible) AND {which} ORDER BY 4 DESC LIMIT %(most)s)"
    for which in (
        "state = 'running' AND start_date < %(until)s",
        "state = 'queued' AND backfill_id IS NULL AND run_after < %(until)s",
        "state = 'queued' AND backfill_id IS NOT NULL AND run_after < %(until)s",
        "state = 'success' AND start_date >= %(begun)s AND start_date < %(until)s AND end_date >= %(since)s",
        "state = 'failed' AND start_date >= %(begun)s AND start_date < %(until)s AND end_date >= %(since)s",
    )
)


@dataclass(frozen=True, slots=True)
class Span:
    """A run from its start (queued: from when it was queued) to its end; without an end it goes on."""

    dag_id: str
    run_id: str
    state: str
    begun: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Planned:
    """A slot of a schedule, and the seconds that a run of it usually takes (None while none succeeded)."""

    dag_id: str
    due: datetime
    seconds: float | None


def spans(dags: QuerySet[DagModel], since: datetime, until: datetime) -> tuple[list[Span], bool]:
    """The runs of these DAGs that touch that time, by DAG and start, and whether there are too many. One query."""
    visible, params = dags.order_by().values("dag_id").distinct().query.sql_with_params()
    names = {f"p{place}": value for place, value in enumerate(params)}
    sql = visible % tuple(f"%({name})s" for name in names)
    records = db.fetch(
        f"WITH visible AS MATERIALIZED ({sql}) {_SPANS}",
        names | {"since": since, "until": until, "begun": since - LOOK_BACK, "most": RUNS + 1},
    )
    newest = sorted((Span(*record) for record in records), key=lambda span: span.begun, reverse=True)
    return sorted(newest[:RUNS], key=lambda span: (span.dag_id, span.begun)), len(newest) > RUNS


def planned(dags: QuerySet[DagModel], now: datetime, until: datetime) -> list[Planned]:
    """What the schedules of the first :data:`DAGS_ASKED` of these DAGs plan from now to then. Two queries."""
    due = dags.filter(is_paused=False, next_dagrun_run_after__lt=until).order_by("next_dagrun_run_after", "dag_id")
    rows = list(due.distinct()[:DAGS_ASKED])
    usual = _usual([dag.dag_id for dag in rows])
    found: list[Planned] = []
    for dag in rows:
        try:
            timetable = timetables.from_doc(dag.timetable or {"kind": "null"})
            plans = run_plans.preview(timetable, schedules.schedule_facts(dag, now), PLANNED)
        except ValueError:  # a timetable that only the child of its file can answer for
            continue
        found += [Planned(dag.dag_id, plan.due, usual.get(dag.dag_id)) for plan in plans if now <= plan.due < until]
    return found


def _usual(dag_ids: list[str]) -> dict[str, float]:
    """The median seconds of each DAG's newest successful runs. One query."""
    return dict(
        db.fetch(
            """
            SELECT w.dag_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM r.end_date - r.start_date))
            FROM unnest(%s::text[]) AS w(dag_id) CROSS JOIN LATERAL (
                SELECT start_date, end_date FROM scheduler_dag_run
                WHERE dag_id = w.dag_id AND state = 'success' ORDER BY run_after DESC, id DESC LIMIT %s
            ) r GROUP BY w.dag_id
            """,
            [dag_ids, USUAL_OF],
        )
    )


def groups(dag_ids: Collection[str], by: str) -> dict[str, str]:
    """DAG → the name of its group: its first tag or its owners; "" for none of them. One query, none without groups."""
    if by == "tag":
        tagged: dict[str, str] = {}
        for dag_id, name in DagTag.objects.filter(dag_id__in=dag_ids).order_by("name").values_list("dag_id", "name"):
            tagged.setdefault(dag_id, name)
        return tagged
    if by == "owner":
        return dict(DagModel.objects.filter(pk__in=dag_ids).values_list("dag_id", "owners"))
    return {}
