"""Who clears or marks a running task does not wait for its next heartbeat: the runner hears of it at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from runner.conftest import Place, ti_of
from runner.test_local_executor import own_environment, wait_for
from scheduler_app import access, process_tree
from scheduler_app.actions import clear, mark, runs, selection
from scheduler_app.conf import Conf
from scheduler_app.executors.base import HandOut
from scheduler_app.executors.local import LocalExecutor
from scheduler_app.models import DagRun, db, transitions
from scheduler_app.scheduler import lost
from tests import rows
from tests.shapes import shape

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]
__all__ = ["own_environment"]

#: Without a hint the runner would look after this long: no test waits for it.
HEARTBEAT_SECONDS = "300"
PROMPT_SECONDS = 5.0

ANN = access.system("person", "ann")
SLEEPS = "@task\ndef work():\n    print('ready')\n    time.sleep(1000)\nwork()\n"


@pytest.fixture
def local(
    knobs: Conf, own_environment: None, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LocalExecutor]:
    monkeypatch.setenv("SCHEDULER_TASK_HEARTBEAT_SECONDS", HEARTBEAT_SECONDS)
    made = LocalExecutor(replace(knobs, parallelism=4))
    made.start(0)
    yield made
    made.stop(0)


def at_work(place: Place, local: LocalExecutor) -> tuple[DagRun, HandOut, int]:
    """A run whose only task is in the middle of its work: the run, the hand-out, the attempt's process."""
    dag = shape("work", tasks={"work": {"retries": 1, "retry_delay": 600.0}})
    (run,) = rows.trigger(place.stored(dag, place.file(SLEEPS)))
    transitions.runs("start", [run.pk], db.clock())
    (hand_out,) = place.queued(run)
    local.accept([hand_out])
    wait_for(lambda: local.slots_available() == 3 and "ready" in place.log(ti_of(run, "work"), 1))
    runner = local.describe()["runner_pid"]
    (attempt,) = [pid for pid in process_tree.descendants(runner) if not process_tree.descendants(pid)]
    return run, hand_out, attempt


def _clear(run: DagRun, now: datetime) -> Any:
    return clear.clear(ANN, selection.Wanted("dag", runs=[run.run_id], tasks=["work"]), now)


def _mark(run: DagRun, now: datetime) -> Any:
    return mark.mark(ANN, selection.Wanted("dag", runs=[run.run_id], tasks=["work"]), "success", now)


def _mark_run(run: DagRun, now: datetime) -> Any:
    return runs.mark_run(ANN, "dag", run.run_id, "failed", now)


@pytest.mark.parametrize(
    ("action", "state"), [(_clear, "up_for_retry"), (_mark_run, "failed")], ids=["clear", "mark the run"]
)
def test_a_running_attempt_is_stopped_long_before_its_next_heartbeat(
    place: Place, local: LocalExecutor, action: Callable[[DagRun, datetime], Any], state: str
) -> None:
    run, _, attempt = at_work(place, local)
    action(run, db.clock())
    wait_for(lambda: not process_tree.is_alive(attempt), PROMPT_SECONDS)
    wait_for(lambda: local.slots_available() == 4, PROMPT_SECONDS)
    assert rows.states(run) == {"work": state}
    assert local.lost() == []


def test_what_is_said_while_the_connection_is_broken_is_read_from_the_row(place: Place, local: LocalExecutor) -> None:
    run, _, attempt = at_work(place, local)
    listeners = db.fetch(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND query NOT LIKE '%%scheduler_wake%%'"
    )
    assert len(listeners) == 1
    with db.atomic():
        _mark(run, db.clock())
        db.fetch("SELECT pg_terminate_backend(%s)", listeners[0])
    wait_for(lambda: not process_tree.is_alive(attempt), PROMPT_SECONDS)
    assert rows.states(run) == {"work": "success"}


def test_an_attempt_that_nobody_touched_goes_on_when_its_neighbour_is_stopped(
    place: Place, local: LocalExecutor
) -> None:
    body = "for name in ('one', 'two'):\n    BashOperator(task_id=name, bash_command='echo ready; sleep 1000')\n"
    (run,) = rows.trigger(place.stored(shape("one; two"), place.file(body)))
    local.accept(place.queued(run))
    wait_for(lambda: all("ready" in place.log(ti_of(run, name), 1) for name in ("one", "two")))
    mark.mark(ANN, selection.Wanted("dag", runs=[run.run_id], tasks=["one"]), "failed", db.clock())
    wait_for(lambda: local.slots_available() == 3, PROMPT_SECONDS)
    assert rows.states(run) == {"one": "failed", "two": "running"}


@pytest.fixture
def told() -> Iterator[Callable[[], int]]:
    """How often runners were told since the last time."""
    db.execute(f"LISTEN {db.STOP_CHANNEL}")
    raw = db.connection().connection

    def count() -> int:
        raw.poll()
        found = len(raw.notifies)
        raw.notifies.clear()
        return found

    yield count
    db.execute(f"UNLISTEN {db.STOP_CHANNEL}")


def test_the_writer_tells_runners_only_of_rows_whose_process_may_live(told: Callable[[], int]) -> None:
    """A report (it brings its fence) and a move of a row that waits tell nobody; many rows tell once."""
    (run,) = rows.trigger(rows.store(shape("waits; runs; runs_too; ends")))
    waits, running, too, ends = (ti_of(run, name).pk for name in ("waits", "runs", "runs_too", "ends"))
    now = db.clock()
    for verb in ("schedule", "queue", "start"):
        transitions.tasks(verb, [running, too, ends], now)
    transitions.tasks("succeed", [ends], now, fences=[1])
    transitions.tasks("mark_failed", [waits, ends], now)
    assert told() == 0
    transitions.tasks("skip", [running, too], now)
    assert told() == 1


def test_runners_are_told_of_an_attempt_whose_try_the_scheduler_ends(told: Callable[[], int]) -> None:
    """Its run took too long (``timed_out_running_tasks=failed``), or it was silent: it may live all the same."""
    (run,) = rows.trigger(rows.store(shape("late; silent")))
    late, silent = (ti_of(run, name).pk for name in ("late", "silent"))
    now = db.clock()
    for verb in ("schedule", "queue", "start"):
        transitions.tasks(verb, [late, silent], now)
    assert lost.fail_for_good([lost.Hopeless(late, "The run took too long.")], now) == 1
    assert told() == 1
    assert lost.end_attempts([lost.Gone(silent, 1, "It was silent.")], now) == 1
    assert told() == 1
    assert rows.states(run) == {"late": "failed", "silent": "failed"}
