"""What ended an attempt is said in its row: each way provoked in a real process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from runner.conftest import Place, ti_of, until
from scheduler_app import access
from scheduler_app.actions import clear, mark, selection
from scheduler_app.conf import Conf
from scheduler_app.engine.dag import Dag
from scheduler_app.engine.resources import Resources
from scheduler_app.executors.inline import InlineExecutor
from scheduler_app.models import TaskInstance, TaskInstanceHistory, db
from scheduler_app.runner import endings
from scheduler_app.supervisor.base import Exit
from scheduler_app.supervisor.memory import OutOfMemory
from tests import rows
from tests.shapes import shape

processes = [pytest.mark.django_db, pytest.mark.processes]
NO_TRY_LEFT = "\nTry 1 of 1 failed; no try is left."
ANN = access.system("person", "ann")


def ended(place: Place, executor: InlineExecutor, body: str, dag: Dag | None = None) -> TaskInstance:
    """A task with this body, run to its end."""
    (run,) = rows.trigger(place.stored(dag or shape("work"), place.file(body)))
    executor.accept(place.queued(run))
    executor.drain()
    return ti_of(run, "work")


def work(body: str, arguments: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"@task({arguments})\ndef work():\n{lines}work()\n"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "os._exit(3)",
            (
                "Its process exited with code 3 before its task was over:"
                " user code ended it (os._exit, or a library that does so)."
            ),
        ),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            (
                "Its process was killed by signal 9 (SIGKILL), which the scheduler did not send:"
                " the kernel when memory is short, a limit of its container, or a person does so."
            ),
        ),
        (
            "os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(9)",
            (
                "airflow.exceptions.AirflowTaskTerminated: Task 'work' received SIGTERM."
                " The signal came from outside: the scheduler did not send it."
            ),
        ),
        (
            "import ctypes\nimport resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nctypes.string_at(0)",
            "Its process was killed by signal 11 (SIGSEGV): a crash in native code.",
        ),
    ],
    ids=["exit", "kill", "term", "crash"],
)
@pytest.mark.django_db
@pytest.mark.processes
def test_an_exit_and_a_signal_from_elsewhere_are_said(
    place: Place, executor: InlineExecutor, body: str, reason: str
) -> None:
    ti = ended(place, executor, work(body))
    assert ti.state == "failed"
    assert ti.reason == reason + NO_TRY_LEFT
    assert reason in place.log(ti)


@pytest.mark.parametrize(
    ("limits", "body", "reason"),
    [
        (
            {"memory_mb": 40},
            "data = bytearray(20_000_000)\nmore = bytearray(60_000_000)",
            "MemoryError: out of memory (its memory limit is 40 MB: limits.memory_mb)",
        ),
        (
            {"open_files": 40},
            "files = [open(os.devnull) for n in range(50)]",
            "OSError: [Errno 24] Too many open files: '/dev/null' (it may open 40 files: limits.open_files)",
        ),
        (
            {"cpu_seconds": 1},
            "while True: pass",
            "Task 'work' used more CPU time than its limit of 1 s (limits.cpu_seconds).",
        ),
    ],
    ids=["memory", "files", "cpu"],
)
@pytest.mark.django_db
@pytest.mark.processes
def test_a_task_that_takes_more_than_its_limits_is_told_which(
    place: Place, executor: InlineExecutor, limits: dict[str, int], body: str, reason: str
) -> None:
    ti = ended(place, executor, work(body, f"executor_config={{'limits': {limits}}}"))
    assert ti.state == "failed"
    assert reason in ti.reason


@pytest.mark.django_db
@pytest.mark.processes
def test_a_setting_limits_tasks_that_name_no_limit_themselves(place: Place, knobs: Conf) -> None:
    made = InlineExecutor(replace(knobs, task_open_files=40))
    made.start(0)
    try:
        body = "import resource\nassert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == {}"
        assert ended(place, made, work(body.format(40))).state == "success"
    finally:
        made.stop(0)


def running(place: Place, executor: InlineExecutor) -> TaskInstance:
    body = work("print('ready')\ntime.sleep(1000)")
    (run,) = rows.trigger(place.stored(shape("work"), place.file(body)))
    executor.accept(place.queued(run))
    until(executor.step, lambda: "ready" in place.log(ti_of(run, "work"), 1))
    return ti_of(run, "work")


@pytest.mark.django_db
@pytest.mark.processes
def test_who_cleared_a_running_task_is_said_in_its_history_and_log(place: Place, executor: InlineExecutor) -> None:
    ti = running(place, executor)
    clear.clear(ANN, selection.Wanted(ti.dag_id, tasks=["work"], runs=[ti.dag_run.run_id]), db.clock())
    executor.drain()
    assert TaskInstanceHistory.objects.values_list("try_number", "state", "reason").get() == (
        1,
        "failed",
        "It was cleared by ann while it ran.",
    )
    assert "The task is stopped: it was cleared by ann." in place.log(ti, 1)


@pytest.mark.django_db
@pytest.mark.processes
def test_who_marked_a_running_task_is_said_in_its_row_and_log(place: Place, executor: InlineExecutor) -> None:
    ti = running(place, executor)
    wanted = selection.Wanted(ti.dag_id, tasks=["work"], runs=[ti.dag_run.run_id])
    mark.mark(ANN, wanted, "failed", db.clock(), reason="wrong day")
    executor.drain()
    ti.refresh_from_db()
    assert (ti.state, ti.reason) == ("failed", "marked failed by ann: wrong day")
    assert "its task instance has moved on: marked failed by ann: wrong day." in place.log(ti, 1)


KILLED = Exit(-9, cpu_seconds=4.2, max_rss_kb=204800)


@pytest.mark.parametrize(
    ("exit", "stopped_for", "limits", "out_of_memory", "text"),
    [
        (
            KILLED,
            "",
            Resources(),
            "in its control group /jobs, whose limit is 256 MB",
            (
                "Its process was killed by signal 9 (SIGKILL): the kernel was out of memory"
                " (in its control group /jobs, whose limit is 256 MB; it had used 200 MB)."
            ),
        ),
        (
            KILLED,
            "",
            Resources(cpu_seconds=4),
            "",
            (
                "Its process was killed by signal 9 (SIGKILL): it used more CPU time than its limit of 4 s"
                " (limits.cpu_seconds)."
            ),
        ),
        (KILLED, "it was cleared", Resources(), "x", "It was cleared; its process was killed by signal 9 (SIGKILL)."),
        (Exit(None, "the base is gone"), "the scheduler died", Resources(), "", "The scheduler died."),
        (Exit(None, "it could not be started"), "", Resources(), "", "It could not be started."),
        (
            Exit(-63),
            "",
            Resources(),
            "",
            "Its process was killed by signal 63 (unknown), which the scheduler did not send.",
        ),
    ],
)
def test_the_words_for_the_end_of_a_process(
    exit: Exit, stopped_for: str, limits: Resources, out_of_memory: str, text: str
) -> None:
    assert endings.of_process(exit, stopped_for, limits, out_of_memory=out_of_memory) == text


def test_kills_for_lack_of_memory_are_counted_in_the_own_control_group(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("0::/jobs/a\n")
    group = tmp_path / "groups" / "jobs" / "a"
    group.mkdir(parents=True)
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n")
    (group / "memory.max").write_text(f"{64 * 1024 * 1024}\n")
    memory = OutOfMemory(tmp_path, tmp_path / "groups")
    before = memory.kills()
    assert (before, memory.since(before)) == (1, "")
    (group / "memory.events").write_text("oom_kill 2\n")
    assert memory.since(before) == "in its control group /jobs/a, whose limit is 64 MB"


def test_without_such_a_group_those_of_the_machine_are_counted(tmp_path: Path) -> None:
    (tmp_path / "vmstat").write_text("pgfault 9\noom_kill 4\n")
    memory = OutOfMemory(tmp_path, tmp_path / "groups")
    assert (memory.kills(), memory.since(3), memory.since(4)) == (4, "on this machine", "")
