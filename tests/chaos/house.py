"""A house full of real processes: schedulers with runners and zygotes, a DAG processor, one database, one ledger."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from scheduler_app import proc

ROOT = Path(__file__).resolve().parents[2]
DAGS = Path(__file__).parent / "dags"

#: Short leases, so that what is lost is found in seconds.
ENVIRONMENT = {
    "SCHEDULER_HEARTBEAT_SECONDS": "0.5",
    "SCHEDULER_LEASE_SECONDS": "4",
    "SCHEDULER_TASK_HEARTBEAT_SECONDS": "0.5",
    "SCHEDULER_TASK_HEARTBEAT_TIMEOUT_SECONDS": "5",
    "SCHEDULER_QUEUED_TIMEOUT_SECONDS": "10",
    "SCHEDULER_DAG_DIR_SCAN_SECONDS": "1",
    "SCHEDULER_LOAD_EXAMPLES": "false",
    "SCHEDULER_PARALLELISM": "16",
}
#: Name of a process, without its number → its command.
ROLES = {
    "scheduler": ["runscheduler", "--no-dag-processor"],
    "processor": ["rundagprocessor"],
    "triggerer": ["runtriggerer"],
}
#: Time in which a killed process's descendants must be gone (I3).
GONE_SECONDS = 2.0


class House:
    """Starts, kills and restarts processes. ``database_url`` names a migrated database that is ours alone."""

    def __init__(
        self,
        folder: Path,
        database_url: str,
        *,
        tasks: int,
        seconds: float,
        broker: str = "",
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        #: of this database alone, on a broker that others may use too; the same in each play, as the DAG names it
        self.queue = urlsplit(database_url).path.strip("/").replace("_", "-")
        self.broker = broker
        self.ledger = folder / "ledger"
        self.ledger.touch()
        self.environ = {
            **os.environ,
            **ENVIRONMENT,
            "DATABASE_URL": database_url,
            "SCHEDULER_HOME": str(folder / "home"),
            "SCHEDULER_DAGS_FOLDER": str(DAGS),
            "LEDGER_FILE": str(self.ledger),
            "LEDGER_TASKS": str(tasks),
            "LEDGER_SECONDS": str(seconds),
            "LEDGER_QUEUE": self.queue,
            **(more or {}),
        }
        if broker:
            self.environ |= {"SCHEDULER_EXECUTOR": "CeleryExecutor", "SCHEDULER_CELERY_BROKER_URL": broker}
        (folder / "home").mkdir(exist_ok=True)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """``scheduler…``, ``worker…`` (of Celery), ``triggerer…`` or ``processor``, as a process of its own."""
        command, environ = self._command(name)
        parent = os.getpid()
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # nothing outlives the test that started it, however that ends
                preexec_fn=lambda: proc.die_with_parent(parent),
            )

    def _command(self, name: str) -> tuple[list[str], dict[str, str]]:
        """Arguments of Python, and the environment, of a process of that name."""
        if not name.startswith("worker"):
            return [str(ROOT / "manage.py"), *ROLES[name.rstrip("0123456789")]], self.environ
        # Another machine: it has neither our home nor our DAG files.
        home = str(self.folder / name)
        command = ["-m", "celery", "-A", "scheduler_app", "worker", "-n", name, "-Q", self.queue, "-c", "8"]
        return command, self.environ | {"SCHEDULER_HOME": home, "SCHEDULER_DAGS_FOLDER": f"{home}/none"}

    def children(self, name: str) -> list[psutil.Process]:
        try:
            return children_of(psutil.Process(self.processes[name].pid))
        except psutil.NoSuchProcess:
            return []

    def runner(self, name: str) -> psutil.Process:
        """The runner of a scheduler's local executor, or of a worker."""
        return self._child(name, "scheduler_app.runner.process")

    def zygote(self, name: str) -> psutil.Process:
        """The process that imported the DAG file and forks its attempts."""
        theirs = [process for process in self.children(name) if "usercode" in command_of(process)]
        return max(theirs, key=lambda process: len(children_of(process, recursive=False)))

    def attempt(self, name: str, rng: random.Random) -> psutil.Process:
        """One of the processes in which a task runs now, below a scheduler or a worker. LookupError: there is none."""
        ours = [process for process in self.children(name) if "usercode" in command_of(process)]
        # base → zygote → attempt
        zygotes = {child for one in _tops(ours) for child in children_of(one, recursive=False)}
        attempts = sorted({child for one in zygotes for child in children_of(one)}, key=lambda one: one.pid)
        if not attempts:
            raise LookupError(f"{name} runs nothing")
        return rng.choice(attempts)

    def _child(self, name: str, program: str) -> psutil.Process:
        for process in self.children(name):
            if program in command_of(process):
                return process
        raise LookupError(f"{name} has no child {program}")

    def kill(self, victims: Iterable[psutil.Process], descendants_of: Iterable[psutil.Process] = ()) -> None:
        """``kill -9``, and proof that no descendant outlives its executor by more than two seconds."""
        doomed = list(victims)
        below = {child for process in descendants_of for child in children_of(process)}
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        for popen in self.processes.values():
            popen.poll()
        wait_for(lambda: not [p for p in below if alive(p)], GONE_SECONDS, f"descendants to be gone: {below}")

    def check(self) -> None:
        """Nobody ends but by our hand. AssertionError names who did."""
        gone = {name: one.returncode for name, one in self.processes.items() if one.poll() is not None}
        assert not gone, f"these ended by themselves (exit codes): {gone}"

    def kill_with_children(self, process: psutil.Process) -> None:
        self.kill([process], [process])

    def kill_process(self, name: str) -> None:
        process = psutil.Process(self.processes[name].pid)
        self.kill([process], [process])
        self.processes[name].wait()

    def stop(self) -> None:
        """Everything that is still there ends; nothing may be left afterwards."""
        below = {child for name in self.processes for child in self.children(name)}
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        wait_for(lambda: not [p for p in below if alive(p)], GONE_SECONDS, "the children of stopped processes to end")

    # ── what the tasks wrote ─────────────────────────────────────────────────────────────────────────────────────────
    def lines(self, what: str) -> Counter[tuple[str, int]]:
        """(task, try) → how often it said so."""
        return Counter((task_id, number) for kind, task_id, number, _ in self.entries() if kind == what)

    def entries(self) -> Iterator[tuple[str, str, int, float]]:
        """(what, task, try, when) of each line."""
        for line in self.ledger.read_text().splitlines():
            kind, task_id, number, moment = line.split()
            yield kind, task_id, int(number), float(moment)

    def logs(self) -> str:
        """The last lines of every process, for a failure's message."""
        return "\n".join(f"== {path.name}\n{path.read_text()[-3000:]}" for path in sorted(self.folder.glob("*.log")))


def _tops(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that descend from none of the others."""
    below = {child.pid for process in processes for child in children_of(process)}
    return [process for process in processes if process.pid not in below]


def children_of(process: psutil.Process, *, recursive: bool = True) -> list[psutil.Process]:
    try:
        return process.children(recursive=recursive)
    except psutil.NoSuchProcess:
        return []


def command_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Polls until the condition holds. AssertionError names what did not come in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s for {what}")
        time.sleep(0.05)
