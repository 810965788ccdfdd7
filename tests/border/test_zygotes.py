"""One import of a DAG file serves its attempts, for as long as it is still the same file."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from border.conftest import Stage
from scheduler_app.supervisor.children import Limits

pytestmark = pytest.mark.processes

TRIVIAL = """
@task
def work():
    return os.getpid()
work()
"""


def test_a_file_is_imported_once_for_many_attempts(stage: Stage) -> None:
    stage.write(TRIVIAL)
    pids = {stage.perform("work").result for _ in range(5)}
    assert len(pids) == 5
    assert stage.imports() == 1


def test_attempts_that_wait_for_the_import_all_start(stage: Stage) -> None:
    stage.write(TRIVIAL)
    started = [stage.begin("work")[1] for _ in range(4)]
    stage.pass_until(lambda: all(seen.exit is not None for seen in started))
    assert [seen.outcome["state"] for seen in started] == ["success"] * 4
    assert stage.imports() == 1


def test_a_changed_file_is_imported_again(stage: Stage) -> None:
    stage.write(TRIVIAL)
    stage.perform("work")
    stage.write(TRIVIAL.replace("os.getpid()", "'new'"))
    assert stage.perform("work").result == "new"
    assert stage.imports() == 2


def test_a_changed_module_beside_the_file_is_imported_again(stage: Stage) -> None:
    module = stage.folder / "beside.py"
    module.write_text("ANSWER = 1\n")
    stage.write("from beside import ANSWER\n@task\ndef work():\n    return ANSWER\nwork()\n")
    assert stage.perform("work").result == 1
    module.write_text("ANSWER = 22\n")
    os.utime(module, ns=(1, 1))
    assert stage.perform("work").result == 22


def test_a_file_whose_import_starts_threads_gets_a_process_for_each_attempt(stage: Stage) -> None:
    stage.write(
        """
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        @task
        def work():
            return threading.active_count()
        work()
        """
    )
    assert [stage.perform("work").result for _ in range(2)] == [2, 2]
    assert stage.imports() == 3  # the zygote that found out, and one for each attempt


def test_a_file_that_cannot_be_imported_fails_its_attempts_with_the_reason_in_the_log(stage: Stage) -> None:
    stage.write("raise RuntimeError('no such luck')\n")
    seen = stage.perform("work")
    assert seen.exit is not None
    assert seen.exit.text == "the DAG file could not be imported: RuntimeError: no such luck"
    assert "raise RuntimeError('no such luck')" in stage.log("work")[0]["event"]
    stage.write(TRIVIAL)
    assert stage.perform("work").outcome["state"] == "success"


def test_a_dag_that_is_gone_from_the_file_fails_its_attempt(stage: Stage) -> None:
    stage.write(TRIVIAL).write_text("")
    outcome = stage.perform("work").outcome
    assert outcome["error"]["message"] == "The file does not define the DAG 'dag'; it has: none."


def test_a_dead_zygote_loses_its_attempts_at_once_and_is_replaced(stage: Stage) -> None:
    stage.write(TRIVIAL + "\n@task\ndef slow():\n    time.sleep(60)\nslow()\n")
    child, seen = stage.begin("slow")
    stage.pass_until(lambda: child.pid is not None)
    (zygote,) = stage.children.zygotes
    assert zygote.pid is not None
    os.kill(zygote.pid, signal.SIGKILL)
    stage.pass_until(lambda: seen.exit is not None, seconds=2)
    assert seen.exit is not None
    assert seen.exit.text == (
        "the process that forks this file's tasks is gone: its process was killed by signal 9 (SIGKILL)"
    )
    assert stage.perform("work").outcome["state"] == "success"
    assert stage.imports() == 2


def test_a_dead_base_loses_all_attempts_and_is_replaced(stage: Stage) -> None:
    stage.write(TRIVIAL + "\n@task\ndef slow():\n    time.sleep(60)\nslow()\n")
    child, seen = stage.begin("slow")
    stage.pass_until(lambda: child.pid is not None)
    assert stage.children.base_pid is not None
    os.kill(stage.children.base_pid, signal.SIGKILL)
    stage.pass_until(lambda: seen.exit is not None, seconds=2)
    assert stage.perform("work").outcome["state"] == "success"


def test_a_task_that_kills_itself_is_told_apart_from_one_that_fails(stage: Stage) -> None:
    stage.write("@task\ndef work():\n    os.kill(os.getpid(), signal.SIGKILL)\nwork()\n")
    seen = stage.perform("work")
    assert seen.exit is not None
    assert seen.exit.text == "its process was killed by signal 9 (SIGKILL)"


class TestLimits:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(import_timeout_seconds=1.0)

    def test_an_import_that_takes_too_long_is_ended(self, stage: Stage) -> None:
        stage.write("time.sleep(60)\n")
        seen = stage.perform("work")
        assert seen.exit is not None
        assert "its import took longer than 1 s" in seen.exit.text


class TestMemory:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(zygote_memory_bytes=1)

    def test_idle_zygotes_beyond_the_memory_limit_go(self, stage: Stage) -> None:
        stage.write(TRIVIAL)
        stage.perform("work")
        assert len(stage.children.zygotes) == 1
        stage.children.tidy()
        stage.pass_until(lambda: not stage.children.zygotes)
        assert stage.perform("work").outcome["state"] == "success"


def test_a_task_user_that_does_not_exist_is_named(stage: Stage, settings: Any) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "task_user": "no_such_user"}
    stage.write(TRIVIAL)
    with pytest.raises(
        OSError, match="There is no system user 'no_such_user': create it, or change SCHEDULER_TASK_USER"
    ):
        stage.begin("work")


class TestAge:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(zygote_max_age_seconds=0.0)

    def test_an_old_file_is_imported_again_and_its_idle_zygote_goes(self, stage: Stage) -> None:
        stage.write(TRIVIAL)
        stage.perform("work")
        stage.perform("work")
        assert stage.imports() == 2
        stage.children.tidy()
        stage.pass_until(lambda: not stage.children.zygotes)
