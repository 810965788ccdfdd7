"""What goes with the end of a run, in one transaction: its state, its callbacks, its line in the log (F-11, F-24)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from scheduler_app import metrics
from scheduler_app.engine import states
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.outcome import Outcome
from scheduler_app.models import Callback, DagRun, DagWake, transitions
from scheduler_app.models.effect import Wanted
from scheduler_app.models.facts import RunRow

log = logging.getLogger("scheduler_app.scheduler")


def end_runs(ended: Sequence[tuple[RunRow, Graph, Outcome]], now: datetime) -> list[int]:
    """Ends runs and writes what must happen then; returns the keys of those that were still running."""
    moved: set[int] = set()
    for verb, state in (("succeed", states.SUCCESS), ("fail", states.FAILED)):
        ending = sorted((row.id, result.reason) for row, _, result in ended if result.state == state)
        moved.update(
            transitions.runs(verb, [key for key, _ in ending], now, state_reason=[reason for _, reason in ending])
        )
    done = [(row, graph, result) for row, graph, result in ended if row.id in moved]
    _store_callbacks(done, now)
    for row, _, result in done:
        metrics.RUNS_ENDED.labels(result.state).inc()
        log.info("DagRun Finished: dag_id=%s, run_id=%s, state=%s: %s", row.dag_id, row.run_id, *result[::2])
    failed = [row.dag_id for row, _, result in done if result.state == states.FAILED]
    if failed:
        DagWake.objects.add_failed(failed, now)
    return sorted(moved)


def _store_callbacks(done: Sequence[tuple[RunRow, Graph, Outcome]], now: datetime) -> None:
    wanted = [
        (f"dag_{kind}", row, result)
        for row, graph, result in done
        for kind in [("success" if result.state == states.SUCCESS else "failure")]
        if kind in graph.dag.callbacks
    ]
    if not wanted:
        return
    numbers = dict(DagRun.objects.filter(pk__in=[row.id for _, row, _ in wanted]).values_list("pk", "clear_number"))
    Callback.objects.want(
        [
            Wanted(
                kind,
                f"{kind}:{row.id}:{numbers[row.id]}",
                row.dag_id,
                row.id,
                {"reason": result.code, "text": result.reason},
            )
            for kind, row, result in wanted
        ],
        now,
    )
