"""Two people at the same moment."""

from __future__ import annotations

import threading

import pytest

from scheduler_app.access import system
from scheduler_app.actions import clear, selection, trigger
from scheduler_app.models import DagRun, TaskInstanceHistory, db, transitions
from tests import rows
from tests.rows import T0, at
from tests.shapes import shape

ANN = system("command", "ann")


def at_once(count, act):
    """Calls ``act(n)`` in so many threads that start together; what each returned or raised, by n."""
    gate, found = threading.Barrier(count), {}

    def one(n):
        try:
            gate.wait(10)
            found[n] = act(n)
        except Exception as error:
            found[n] = error
        finally:
            db.close()

    threads = [threading.Thread(target=one, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return [found[n] for n in range(count)]


@pytest.mark.django_db(transaction=True)
def test_a_logical_date_is_taken_once_however_many_ask_for_it():
    rows.default_pool()
    rows.store(shape("a", "etl"))
    found = at_once(6, lambda n: trigger.trigger_run(ANN, "etl", T0, run_id=f"r{n}", logical_date=T0))
    assert sorted(type(one).__name__ for one in found) == ["Conflict"] * 5 + ["DagRun"]
    assert DagRun.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_clears_of_the_same_try_end_it_once():
    rows.default_pool()
    row = rows.store(shape("a", "etl"))
    (run,) = rows.trigger(row)
    key = run.task_instances.get().pk
    for verb in ("schedule", "queue", "start", "fail"):
        transitions.tasks(verb, [key], at(1))
    wanted = selection.Wanted("etl", runs=[run.run_id], only_failed=True)
    shown = [one.pk for one in selection.chosen(ANN, wanted)]
    found = at_once(4, lambda n: clear.clear(ANN, wanted, at(2), expect=shown))
    assert sorted(type(one).__name__ for one in found) == ["Cleared", "Conflict", "Conflict", "Conflict"]
    assert TaskInstanceHistory.objects.count() == 1
