"""When an outcome is written: as soon as nothing of the task runs any more, not when its process is put away."""

from __future__ import annotations

import pytest

from runner.conftest import Place, ti_of, until
from scheduler_app import process_tree
from scheduler_app.executors.inline import InlineExecutor
from scheduler_app.models import DagRun
from scheduler_app.runner import loop
from tests import rows
from tests.shapes import shape

pytestmark = [pytest.mark.django_db, pytest.mark.processes]

#: The process stays when it should go.
STAYS = """
@task
def work():
    os._exit = lambda code: time.sleep(1000)
    {last}
work()
"""


def started(place: Place, executor: InlineExecutor, body: str) -> DagRun:
    (run,) = rows.trigger(place.stored(shape("work"), place.file(body)))
    executor.accept(place.queued(run))
    return run


def test_a_success_is_written_while_the_process_is_still_being_put_away(
    place: Place, executor: InlineExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_LINGER_SECONDS", 0.5)
    run = started(place, executor, STAYS.format(last="return 'done'"))
    until(executor.step, lambda: rows.states(run) == {"work": "success"})
    (zygote,) = executor.children.zygotes
    assert zygote.pid is not None
    (pid,) = process_tree.children(zygote.pid)
    assert process_tree.is_alive(pid)
    assert executor.slots_available() == 7, "its process still takes the slot"
    executor.drain()
    assert not process_tree.is_alive(pid)
    assert executor.slots_available() == 8
    assert rows.states(run) == {"work": "success"}


def test_a_failure_is_written_when_its_process_is_gone(place: Place, executor: InlineExecutor) -> None:
    run = started(place, executor, STAYS.format(last="raise ValueError('no')"))
    until(executor.step, lambda: "The task failed: no" in place.log(ti_of(run, "work"), 1))
    for _ in range(3):
        executor.step()
    assert rows.states(run) == {"work": "running"}
    (zygote,) = executor.children.zygotes
    process_tree.kill_tree(process_tree.children(zygote.pid or 0)[0])
    executor.drain()
    reason = "ValueError: no\nTry 1 of 1 failed; no try is left."
    assert (ti_of(run, "work").state, ti_of(run, "work").reason) == ("failed", reason)


def test_a_task_whose_thread_goes_on_has_not_succeeded_yet(place: Place, executor: InlineExecutor) -> None:
    body = """
    @task
    def work():
        import threading
        def upload():
            print("uploading")
            while not os.path.exists(__file__ + ".go"):
                time.sleep(0.01)
            print("uploaded")
        threading.Thread(target=upload).start()
    work()
    """
    run = started(place, executor, body)
    until(executor.step, lambda: "uploading" in place.log(ti_of(run, "work"), 1))
    for _ in range(3):
        executor.step()
    assert rows.states(run) == {"work": "running"}
    place.dags.joinpath("dag.py.go").touch()
    executor.drain()
    assert rows.states(run) == {"work": "success"}
    assert "uploaded" in place.log(ti_of(run, "work"))
