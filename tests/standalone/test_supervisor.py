from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from scheduler_app.standalone import supervisor

pytestmark = pytest.mark.processes
ROOT = Path(__file__).resolve().parents[2]


class World:
    """A supervisor process whose output is read line by line."""

    def __init__(self, *kinds: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.standalone.world", *kinds], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        self.seen: list[str] = []

    def line(self, pattern: str) -> re.Match[str]:
        """The next line that fits."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.seen.append(line.rstrip("\n"))
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"{pattern!r} did not come; there was {self.seen}")

    def pid(self, kind: str, word: str = "up") -> int:
        return int(self.line(rf"^{kind} +\| {word} (\d+)").group(1))

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)


@pytest.fixture
def world() -> Iterator[type[World]]:
    worlds: list[World] = []

    class Kept(World):
        def __init__(self, *kinds: str) -> None:
            super().__init__(*kinds)
            worlds.append(self)

    yield Kept
    for one in worlds:
        one.process.kill()
        one.process.wait()
        one.process.stdout.close()


def gone(*pids: int) -> bool:
    """Whether none of the processes lives five seconds from now."""
    alive = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    return not psutil.wait_procs(alive, timeout=5)[1]


def test_a_stop_signal_stops_all_and_leaves_no_process(world) -> None:
    one = world("patient", "patient")
    pids = [one.pid("patient"), one.pid("patient")]
    assert one.stop() == 0
    assert gone(*pids)
    assert one.process.stdout.read().splitlines() == [
        "standalone | SIGTERM: stopping (again to kill)",
        "standalone | patient stopped",
        "standalone | patient stopped",
    ]


def test_what_dies_is_started_again_after_a_growing_delay(world) -> None:
    one = world("short")
    first = one.pid("short")
    assert 0.3 < float(one.line(r"short ended with code 3; next start in ([\d.]+) s").group(1)) < 0.7
    assert one.pid("short") != first
    assert 0.7 <= float(one.line(r"short ended with code 3; next start in ([\d.]+) s").group(1)) < 1.3
    assert one.stop() == 0


def test_what_is_killed_is_started_again_and_the_others_live_on(world) -> None:
    one = world("patient", "deaf")
    pids = [one.pid("(?:patient|deaf)"), one.pid("(?:patient|deaf)")]
    victim = next(pid for pid in pids if psutil.Process(pid).name() == "patient")
    psutil.Process(victim).kill()
    one.line(r"patient was ended by SIGKILL; next start in")
    assert one.pid("patient") != victim
    assert all(psutil.pid_exists(pid) for pid in pids if pid != victim)


def test_a_component_that_raises_shows_its_traceback(world) -> None:
    one = world("broken")
    one.line(r"^broken +\| RuntimeError: no luck")
    one.line(r"broken ended with code 1")


def test_what_does_not_stop_in_time_is_killed(world) -> None:
    one = world("deaf")
    pid = one.pid("deaf")
    assert one.stop() == 1
    assert gone(pid)
    assert "standalone | deaf did not stop in time: killed" in one.process.stdout.read().splitlines()


def test_a_second_signal_does_not_wait(world) -> None:
    one = world("--stop-seconds=60", "deaf")
    pid = one.pid("deaf")
    one.process.send_signal(signal.SIGINT)
    one.line("SIGINT: stopping")
    for _ in range(100):
        one.process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            # one signal more may meet an interpreter that is about to leave, and handles none any more
            assert one.process.wait(0.1) in (1, -signal.SIGINT)
            break
    assert gone(pid)


def test_a_signal_that_comes_twice_at_once_is_one(world) -> None:
    one = world("--stop-seconds=60", "patient")
    one.pid("patient")
    one.process.send_signal(signal.SIGINT)
    one.process.send_signal(signal.SIGTERM)
    assert one.process.wait(10) == 0
    assert one.process.stdout.read().splitlines()[-1] == "standalone | patient stopped"


def test_a_descendant_in_a_session_of_its_own_is_ended_too(world) -> None:
    one = world("parent")
    stray = one.pid("parent", "stray")
    one.pid("parent")
    assert one.stop() == 0
    assert gone(stray)


def test_S_64_the_children_of_a_killed_supervisor_die_with_it(world) -> None:
    one = world("patient", "deaf")
    pids = [one.pid("(?:patient|deaf)"), one.pid("(?:patient|deaf)")]
    one.process.kill()
    assert gone(*pids)


def test_a_component_inherits_no_file_but_those_of_the_metrics(tmp_path: Path) -> None:
    kept, gone = tmp_path / f"counter_{os.getpid()}.db", tmp_path / "other.db"
    with kept.open("wb") as metrics, gone.open("wb") as other:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                supervisor._close_inherited(os.getppid())
                os.fstat(metrics.fileno())
                with contextlib.suppress(OSError):
                    os.fstat(other.fileno())
                    os._exit(2)
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
