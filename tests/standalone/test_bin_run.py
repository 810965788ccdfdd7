"""``bin/run`` as a person starts it: the real script, a home of its own, a free port."""

from __future__ import annotations

import os
import queue
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import psutil
import pytest
import requests

from scheduler_app.embedded_db import NESTED, remove

pytestmark = pytest.mark.processes
ROOT = Path(__file__).resolve().parents[2]


class Run:
    """One start of ``bin/run``."""

    started_here: ClassVar[list[Run]] = []

    def __init__(self, home: Path, port: int) -> None:
        hidden = (NESTED, "DATABASE_URL", "SCHEDULER_TEST_DATABASE", "DJANGO_SETTINGS_MODULE")
        env = {key: value for key, value in os.environ.items() if key not in hidden}
        env |= {"SCHEDULER_HOME": str(home), "SCHEDULER_PORT": str(port), "SCHEDULER_LOAD_EXAMPLES": "off"}
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [ROOT / "bin/run"], cwd="/", env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        Run.started_here.append(self)
        self.seen: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def line(self, pattern: str) -> re.Match[str]:
        """The next line that fits."""
        while (line := self._lines.get(timeout=60)) is not None:
            self.seen.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"{pattern!r} did not come; there was {''.join(self.seen)}")

    def end(self) -> int:
        """Waits for the end; the exit code."""
        code = self.process.wait(60)
        self._reader.join(60)
        self.process.stdout.close()
        return code

    def postmaster(self) -> psutil.Process:
        return next(one for one in psutil.Process(self.process.pid).children() if one.name() == "postgres")

    def stop(self, number: signal.Signals) -> tuple[int, list[psutil.Process]]:
        """The exit code, and what is left alive of everything that it had started."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(number)
        return self.end(), psutil.wait_procs(family, timeout=10)[1]


def log_in(url: str, password: str) -> requests.Response:
    return requests.post(f"{url}/auth/token", json={"username": "admin", "password": password}, timeout=10)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A folder with a space in its name; what a failed test left running there is ended."""
    home = tmp_path / "a home"
    yield home
    for run in Run.started_here:
        run.process.kill()
        run.process.wait()
    Run.started_here.clear()
    remove(home)


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_it_starts_twice_in_a_row_and_leaves_no_process(home: Path, port: int) -> None:
    first = Run(home, port)
    password = first.line(r"Log in as admin with the password (\S+)").group(1)
    url = first.line(r"Ready: (\S+)").group(1)
    token = log_in(url, password)
    assert token.status_code == 201
    headers = {"Authorization": f"Bearer {token.json()['access_token']}"}
    assert requests.get(f"{url}/api/v2/dags", headers=headers, timeout=10).json()["total_entries"] == 0
    assert first.stop(signal.SIGINT) == (0, [])
    assert (home / "admin_password").read_text() == password + "\n"

    second = Run(home, port)
    second.line("Ready: ")
    assert not [line for line in second.seen if password in line]
    assert time.monotonic() - second.started < 10
    again = requests.get(f"{url}/api/v2/dags", headers=headers, timeout=10)
    assert again.status_code == 200  # the same secret key: the token is still good
    assert second.stop(signal.SIGTERM) == (0, [])


def test_a_second_start_in_the_same_home_names_the_first(home: Path, port: int) -> None:
    first = Run(home, port)
    first.line("Ready: ")
    second = Run(home, port)
    second.line(r"Process \d+ already runs the database of .*a home\. Stop it, or choose another SCHEDULER_HOME")
    assert second.end() == 1
    assert first.process.poll() is None
    assert first.stop(signal.SIGINT) == (0, [])


def test_a_taken_port_starts_nothing(home: Path, port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        run = Run(home, port)
        run.line(rf"cannot listen on 127\.0\.0\.1, port {port}: Address already in use\. Nothing was started")
        assert run.end() == 1
    assert not (home / "pg/server.json").exists()


def test_a_database_that_is_killed_comes_back_and_the_pages_with_it(home: Path, port: int) -> None:
    run = Run(home, port)
    password = run.line(r"Log in as admin with the password (\S+)").group(1)
    url = run.line(r"Ready: (\S+)").group(1)
    run.postmaster().kill()
    run.line(r"database was ended by SIGKILL; next start in")
    deadline = time.monotonic() + 30
    while log_in(url, password).status_code != 201:
        assert time.monotonic() < deadline
    assert run.stop(signal.SIGINT) == (0, [])


def test_a_stop_while_the_database_is_down_brings_it_back_for_the_last_writes(home: Path, port: int) -> None:
    run = Run(home, port)
    run.line("Ready: ")
    run.postmaster().kill()
    run.line(r"database was ended by SIGKILL; next start in")
    assert run.stop(signal.SIGINT) == (0, [])


def test_nothing_outlives_a_killed_supervisor(home: Path, port: int) -> None:
    run = Run(home, port)
    run.line("Ready: ")
    assert run.stop(signal.SIGKILL) == (-9, [])
