"""Nobody is left: whatever dies, however far its grandchildren ran."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from border.conftest import Stage
from scheduler_app import process_tree
from scheduler_app.supervisor import leftovers

pytestmark = pytest.mark.processes

#: A shell child, its child, and a daemon that left both session and parent.
FAMILY = """
@task
def family():
    subprocess.Popen("sleep 1002 & sleep 1003", shell=True)
    subprocess.Popen("setsid sh -c 'sleep 1004 & sleep 1005' & exit", shell=True).wait()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready")
    while True:
        time.sleep(0.1)
family()
"""


def living(pids: list[int]) -> list[int]:
    return [pid for pid in pids if process_tree.is_alive(pid)]


def family_of(stage: Stage) -> tuple[list[int], object, object]:
    stage.write(FAMILY)
    child, seen = stage.begin("family")
    stage.pass_until(lambda: any(line["event"] == "ready" for line in stage.log("family")))
    assert child.pid is not None
    stage.pass_until(lambda: len(process_tree.descendants(child.pid)) == 6)
    return [child.pid, *process_tree.descendants(child.pid)], child, seen


def test_a_task_that_ignores_the_request_to_stop_is_killed_with_its_whole_tree(stage: Stage) -> None:
    pids, child, seen = family_of(stage)
    child.stop(stage.clocks.monotonic(), 0.2)
    stage.pass_until(lambda: seen.exit is not None, seconds=3)
    assert seen.exit.text == "its process was killed by signal 9 (SIGKILL)"
    assert living(pids) == []


@pytest.mark.parametrize("victim", ["attempt", "zygote", "base"])
def test_kill_9_leaves_no_descendant(stage: Stage, victim: str) -> None:
    pids, child, seen = family_of(stage)
    number = {"attempt": child.pid, "zygote": stage.children.zygotes[0].pid, "base": stage.children.base_pid}[victim]
    os.kill(number, signal.SIGKILL)
    stage.pass_until(lambda: seen.exit is not None and not living(pids), seconds=2)


def test_stopping_the_supervisor_leaves_no_descendant(stage: Stage) -> None:
    pids, _, seen = family_of(stage)
    stage.children.stop()
    assert living(pids) == []
    assert seen.exit is not None


def test_kill_9_of_the_supervisor_itself_leaves_no_descendant(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        import django
        django.setup()
        from border.conftest import Stage
        from border.test_killing import FAMILY
        from scheduler_app.supervisor.children import Limits
        stage = Stage(Path(sys.argv[1]), dict(os.environ), Limits())
        stage.write(FAMILY)
        stage.begin("family")
        stage.pass_until(lambda: any(line["event"] == "ready" for line in stage.log("family")))
        print("ready", flush=True)
        stage.pass_until(lambda: False, 60)
        """
    )
    root = Path(__file__).resolve().parent.parent.parent
    environ = {
        **os.environ,
        "PYTHONPATH": f"{root}:{root / 'tests'}",
        "DJANGO_SETTINGS_MODULE": "scheduler_app.settings",
    }
    supervisor = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, env=environ, text=True
    )
    try:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == "ready\n"
        everybody = 9  # base, zygote, attempt, and its family of six
        deadline = time.monotonic() + 10
        while len(process_tree.descendants(supervisor.pid)) < everybody and time.monotonic() < deadline:
            time.sleep(0.01)
        pids = process_tree.descendants(supervisor.pid)
        assert len(pids) == everybody
    finally:
        supervisor.kill()
        supervisor.wait()
    deadline = time.monotonic() + 2
    while living(pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert living(pids) == []
    supervisor.stdout.close()


def test_who_survives_when_everybody_is_killed_at_once_is_ended_by_the_next_start(stage: Stage, tmp_path: Path) -> None:
    """Supervisor, base, zygote and attempt die together: nobody is left to end the rest but the next supervisor."""
    program = "import os, subprocess, sys, time; subprocess.Popen(['setsid', 'sleep', '1014']); time.sleep(100)"
    gone = subprocess.Popen(["true"])
    mark = leftovers.mark(gone.pid)
    gone.wait()
    parent = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, leftovers.MARK: mark})
    deadline = time.monotonic() + 5
    while not (found := process_tree.descendants(parent.pid)) and time.monotonic() < deadline:
        time.sleep(0.01)
    stage.write("@task\ndef work():\n    return 1\nwork()\n")
    assert stage.perform("work").result == 1
    assert parent.wait(2) == -signal.SIGKILL
    assert living(found) == []


def test_the_children_of_a_living_supervisor_are_left_alone(stage: Stage) -> None:
    pids, _, _ = family_of(stage)
    assert leftovers.marked().keys() >= set(pids)
    assert leftovers.end_leftovers() == 0
    assert living(pids) == pids
