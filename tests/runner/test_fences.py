"""An attempt acts under its fence alone; whoever moved its row meanwhile wins, and its process ends."""

from __future__ import annotations

import pytest

from runner.conftest import Place, ti_of, until, xcom_of
from scheduler_app import process_tree
from scheduler_app.executors.base import HandOut
from scheduler_app.executors.inline import InlineExecutor
from scheduler_app.models import Callback, DagRun, TaskInstance, TaskInstanceHistory, db, transitions
from scheduler_app.runner import claims, outcomes
from tests import rows
from tests.shapes import shape

pytestmark = [pytest.mark.django_db, pytest.mark.processes]

SLOW = """
@task
def work(ti=None):
    ti.xcom_push("half", "way")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen("sleep 1006 & sleep 1007", shell=True)
    print("ready")
    while not os.path.exists(__file__ + ".go"):
        time.sleep(0.01)
    return "late"
work()
"""


def slow_run(place: Place, executor: InlineExecutor) -> tuple[DagRun, TaskInstance, list[int]]:
    """A run whose task is half way, and the processes of it."""
    path = place.file(SLOW)
    dag = shape("work", tasks={"work": {"callbacks": ("success", "failure", "retry")}})
    (run,) = rows.trigger(place.stored(dag, path))
    executor.accept(place.queued(run))
    until(executor.step, lambda: ti_of(run, "work").pid is not None)
    ti = ti_of(run, "work")
    assert ti.pid is not None
    until(executor.step, lambda: "ready" in place.log(ti) and len(process_tree.descendants(ti.pid)) == 3)
    return run, ti, [ti.pid, *process_tree.descendants(ti.pid)]


@pytest.mark.parametrize("verb", ["mark_success", "mark_failed", "mark_skipped"])
def test_a_mark_ends_the_process_and_stays(place: Place, executor: InlineExecutor, verb: str) -> None:
    run, ti, pids = slow_run(place, executor)
    transitions.tasks(verb, [ti.pk], db.clock(), reason="marked by ann")
    executor.drain()
    marked = ti_of(run, "work")
    assert (marked.state, marked.reason) == (verb.removeprefix("mark_").replace("skipped", "skipped"), "marked by ann")
    assert [pid for pid in pids if process_tree.is_alive(pid)] == []
    assert xcom_of(run, "work") == "nothing"
    assert not Callback.objects.exists()
    assert "its task instance has moved on: marked by ann." in place.log(ti)


def test_a_clear_ends_the_process_and_goes_on_as_the_next_try(place: Place, executor: InlineExecutor) -> None:
    run, ti, pids = slow_run(place, executor)
    transitions.tasks("restart", [ti.pk], db.clock(), max_tries=1)
    executor.drain()
    cleared = ti_of(run, "work")
    assert (cleared.state, cleared.reason) == ("up_for_retry", "It was cleared while it ran.")
    assert cleared.next_at <= db.clock()
    assert [pid for pid in pids if process_tree.is_alive(pid)] == []
    assert list(TaskInstanceHistory.objects.values_list("try_number", "state")) == [(1, "failed")]
    assert not Callback.objects.exists()


def test_an_attempt_that_counts_as_lost_writes_nothing_when_it_comes_back(
    place: Place, executor: InlineExecutor
) -> None:
    run, ti, _ = slow_run(place, executor)
    now = db.clock()
    transitions.tasks("retry", [ti.pk], now, fences=[ti.fence], reason="silent", next_at=now)
    place.dags.joinpath("dag.py.go").touch()
    executor.drain()
    lost = ti_of(run, "work")
    assert (lost.state, lost.reason) == ("up_for_retry", "silent")
    assert xcom_of(run, "work") == "nothing"
    assert "its task instance has moved on" in place.log(ti)


def test_a_hand_out_starts_at_most_once(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        @task
        def work():
            with open(__file__ + ".ledger", "a") as ledger:
                ledger.write("x")
        work()
        """
    )
    (run,) = rows.trigger(place.stored(shape("work"), path))
    (hand_out,) = place.queued(run)
    executor.accept([hand_out, hand_out])
    executor.drain()
    executor.accept([hand_out])
    executor.drain()
    assert path.with_name("dag.py.ledger").read_text() == "x"


def test_a_hand_out_of_an_older_fence_does_not_start(place: Place, executor: InlineExecutor) -> None:
    path = place.file("@task\ndef work(): pass\nwork()\n")
    (run,) = rows.trigger(place.stored(shape("work"), path))
    (old,) = place.queued(run)
    now = db.clock()
    transitions.tasks("unqueue", [old.ti_id], now)
    transitions.tasks("queue", [old.ti_id], now)
    executor.accept([old])
    executor.drain()
    assert (ti_of(run, "work").state, ti_of(run, "work").fence) == ("queued", 2)
    executor.accept([HandOut(old.ti_id, 2)])
    executor.drain()
    assert ti_of(run, "work").state == "success"


def test_an_old_outcome_matches_nothing_after_the_next_hand_out(place: Place) -> None:
    path = place.file("")
    dag = shape("work >> after", tasks={"work": {"callbacks": ("success",)}})
    (run,) = rows.trigger(place.stored(dag, path))
    (hand_out,) = place.queued(run, "work")
    now = db.clock()
    worker = claims.Worker(1, "here", "me")
    (old,) = claims.claim([hand_out.ti_id], [hand_out.fence], now, worker)
    transitions.tasks("retry", [old.ti_id], now, reason="silent", next_at=now)
    (again,) = place.queued(run, "work")
    (new,) = claims.claim([again.ti_id], [again.fence], now, worker)
    late = outcomes.Report(old, {"op": "outcome", "state": "success", "skip": ["after"]})
    late.buffer.push("return_value", "late", None)
    assert outcomes.write([late], now) == {}
    assert rows.states(run) == {"work": "running", "after": None}
    assert xcom_of(run, "work") == "nothing"
    assert not Callback.objects.exists()
    fresh = outcomes.Report(new, {"op": "outcome", "state": "success"})
    fresh.buffer.push("return_value", "fresh", None)
    assert [decision.verb for decision in outcomes.write([late, fresh], now).values()] == ["succeed"]
    assert xcom_of(run, "work") == "fresh"


def test_the_number_of_statements_does_not_grow_with_the_batch(place: Place, django_assert_num_queries: object) -> None:
    names = [f"t{n}" for n in range(20)]
    (run,) = rows.trigger(place.stored(shape("; ".join(["one", *names])), place.file("")))
    worker = claims.Worker(1, "here", "me")
    now = db.clock()
    for batch in (place.queued(run, "one"), place.queued(run, *names)):
        ids, fences = [item.ti_id for item in batch], [item.fence for item in batch]
        with django_assert_num_queries(1):  # the start, which answers with all that is read
            claimed = claims.claim(ids, fences, now, worker)
        reports = [outcomes.Report(item, {"op": "outcome", "state": "success"}) for item in claimed]
        for report in reports:
            report.buffer.push("return_value", 1, None)
        with django_assert_num_queries(4):  # savepoint and release, move, XComs with NOTIFY
            assert len(outcomes.write(reports, now)) == len(batch)
