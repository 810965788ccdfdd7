"""What many deferred tasks cost one triggerer: ``python -m bench.triggerer [--triggers N] [--seconds S]``.

N deferred tasks wait in a triggerer that is a process of its own (``manage.py runtriggerer``). One JSON line: how long
it takes to hold them all, its memory with and without them, how late its loop comes round while they wait and while all
of them fire at once, and how long a second triggerer takes to hold them when the first is killed with ``kill -9``.
It uses a throw-away database on DATABASE_URL, else an embedded one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.database import reexec_with_embedded, throwaway

ROOT = Path(__file__).resolve().parents[1]

#: Waits for a file to appear, as a trigger that polls something does; the probe writes down how late its loop is.
MODULE = """
import asyncio
import os
import time


class Event:
    def __init__(self, payload):
        self.payload = payload


class Waits:
    def __init__(self, go):
        self.go = go

    async def run(self):
        while not os.path.exists(self.go):
            await asyncio.sleep(1.0)
        yield Event(1)


class Probe:
    def __init__(self, out, go):
        self.out, self.go = out, go

    async def run(self):
        with open(self.out, "w") as file:
            while True:
                before = time.monotonic()
                await asyncio.sleep(0.02)
                late = time.monotonic() - before - 0.02
                file.write(f"{int(os.path.exists(self.go))} {1000 * late:.3f}\\n")
                file.flush()
        yield Event(None)
"""


def defer(count: int, folder: Path, go: Path, lag: Path) -> None:
    """`count` task instances that wait for triggers, and one that waits for the probe."""
    from psycopg2.extras import Json

    from scheduler_app.models import TaskInstance, Trigger, db, transitions
    from scheduler_app.models.effect import NewTrigger
    from tests import rows
    from tests.shapes import parallel

    rows.default_pool()
    dag = rows.store(parallel(count + 1, "waits"), fileloc=str(folder / "waits.py"), relative_fileloc="waits.py")
    (run,) = rows.trigger(dag, now=db.clock())
    ids = list(TaskInstance.objects.filter(dag_run=run).order_by("id").values_list("id", flat=True))
    now = db.clock()
    for verb in ("schedule", "queue", "start"):
        transitions.tasks(verb, ids, now)
    with db.atomic():
        new = [NewTrigger("things.Waits", {"go": str(go)}, "waits") for _ in range(count)]
        new.append(NewTrigger("things.Probe", {"out": str(lag), "go": str(go)}, "waits"))
        triggers = Trigger.objects.add(new, now)
        kwargs = [Json({}) for _ in ids]
        transitions.tasks("defer", ids, now, trigger_id=triggers, next_method="done", next_kwargs=kwargs)


def start(environ: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as handle:
        command = [sys.executable, str(ROOT / "manage.py"), "runtriggerer"]
        return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=handle, stderr=handle)


def memory_mb(pid: int) -> float:
    """Of the process and all below it, what they share counted once (PSS)."""
    import psutil

    top = psutil.Process(pid)
    return round(sum(one.memory_full_info().pss for one in (top, *top.children(recursive=True))) / 2**20, 1)


def seconds_until(condition: Callable[[], bool], limit: float, process: subprocess.Popen[bytes], log: Path) -> float:
    began = time.monotonic()
    while not condition():
        if process.poll() is not None or time.monotonic() - began > limit:
            raise SystemExit(f"the triggerer did not get there:\n{log.read_text()[-3000:]}")
        time.sleep(0.02)
    return round(time.monotonic() - began, 2)


def lateness(file: Path, fired: bool) -> dict[str, float]:
    rows = [line.split() for line in file.read_text().splitlines() if line.count(" ") == 1]
    found = sorted(float(late) for when, late in rows if (when == "1") == fired)
    if not found:
        return {}
    return {
        "p50": round(statistics.median(found), 2),
        "p95": round(found[int(0.95 * (len(found) - 1))], 2),
        "max": round(found[-1], 2),
    }


def measure(count: int, wait_seconds: float, folder: Path) -> dict[str, Any]:
    from scheduler_app.models import Job, TaskInstance, Trigger

    go, lag, log = folder / "go", folder / "lag", folder / "triggerer.log"
    (folder / "things.py").write_text(MODULE)
    environ = {**os.environ, "SCHEDULER_HOME": str(folder), "SCHEDULER_TRIGGERER_CAPACITY": str(2 * count)}
    first = start(environ, log)
    second = None
    try:
        alive = Job.objects.filter(job_type="TriggererJob", state="running")
        seconds_until(alive.exists, 60, first, log)
        time.sleep(2)
        found: dict[str, Any] = {"bench": "triggerer", "triggers": count, "idle_mb": memory_mb(first.pid)}
        job = alive.get().pk
        defer(count, folder, go, lag)
        held = Trigger.objects.filter(triggerer_id=job)
        found["held_s"] = seconds_until(lambda: held.count() == count + 1 and lag.exists(), 60, first, log)
        time.sleep(wait_seconds)
        found["waiting_mb"] = memory_mb(first.pid)
        found["kb_per_trigger"] = round(1024 * (found["waiting_mb"] - found["idle_mb"]) / count, 1)
        found["lag_ms_waiting"] = lateness(lag, fired=False)
        first.kill()
        first.wait()
        lag.unlink()
        second = start(environ, log)
        taken = Trigger.objects.exclude(triggerer_id=job).exclude(triggerer_id=None)
        found["held_elsewhere_s"] = seconds_until(lambda: taken.count() == count + 1 and lag.exists(), 90, second, log)
        time.sleep(3)
        go.touch()
        resumed = TaskInstance.objects.filter(state="scheduled")
        found["all_resumed_s"] = seconds_until(lambda: resumed.count() == count, 90, second, log)
        found["lag_ms_firing"] = lateness(lag, fired=True)
        return found
    finally:
        for process in (first, second):
            if process is not None and process.poll() is None:
                process.terminate()
                process.wait(30)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.triggerer", description=__doc__)
    parser.add_argument("--triggers", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=10, help="how long they wait while the loop is watched")
    args = parser.parse_args()
    reexec_with_embedded("bench.triggerer")
    with tempfile.TemporaryDirectory(prefix="bench-") as name, throwaway("triggerer"):
        print(json.dumps(measure(args.triggers, args.seconds, Path(name))))


if __name__ == "__main__":
    main()
