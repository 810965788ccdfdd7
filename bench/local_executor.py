"""How fast tasks really run on one machine: ``python -m bench.local_executor [--tasks N] [--chain N] [--slots N]``.

The whole way: a DAG file is parsed, a run is made, the scheduler's loop hands out, the local executor forks each
attempt, the runner writes its end. One JSON line for N trivial tasks side by side (tasks_per_s), one for a chain
(gap: from the last line of a task to the first line of its successor, as the tasks themselves see the clock), one for a
file whose import takes 400 ms (imports: how often that was paid).
It uses a throw-away database on DATABASE_URL, else an embedded one. ``--peer FOLDER`` names a virtual environment with
apache-airflow: its LocalExecutor is measured in the same run, on a tenth of the tasks.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.database import reexec_with_embedded, throwaway
from bench.processes import Meter

DAG_FILE = """
import os, time
from airflow.sdk import DAG
from airflow.providers.standard.operators.python import PythonOperator

LEDGER = {ledger!r}


def note(ti):
    began = time.time()
    descriptor = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{{ti.dag_id}} {{ti.task_id}} {{began:.6f}} {{time.time():.6f}}\\n".encode())


with DAG("wide", schedule=None, max_active_tasks=100_000):
    for n in range({tasks}):
        PythonOperator(task_id=f"w{{n}}", python_callable=note)

with DAG("chain", schedule=None):
    last = None
    for n in range({chain}):
        task = PythonOperator(task_id=f"c{{n}}", python_callable=note)
        if last is not None:
            last >> task
        last = task
"""

#: A file that takes 400 ms to import, as one with pandas does; it writes down each time that it is.
SLOW_FILE = """
import os, time
from airflow.sdk import DAG
from airflow.providers.standard.operators.python import PythonOperator

with open({imports!r}, "a") as file:
    file.write(f"{{os.getpid()}}\\n")
time.sleep(0.4)
with DAG("slow_import", schedule=None, max_active_tasks=100_000):
    for n in range({tasks}):
        PythonOperator(task_id=f"s{{n}}", python_callable=lambda: None)
"""


def store_dags(folder: Path) -> None:
    """Parse the files in a child, as the DAG processor does, and store their DAGs."""
    from scheduler_app.engine.dag import from_doc
    from scheduler_app.supervisor.parsing import ParsePool
    from tests import rows

    pool = ParsePool(1, 60.0, 0, environ=os.environ, monotonic=time.monotonic)
    for parse in pool.run([(str(path), str(folder)) for path in sorted(folder.glob("*.py"))]):
        document, path = parse.document or {}, Path(parse.path)
        if document.get("import_error") or not document["dags"]:
            raise SystemExit(f"the DAG file cannot be parsed: {document}")
        for dag in document["dags"]:
            rows.store(from_doc(dag), fileloc=str(path), relative_fileloc=path.name)
    pool.close()


def run_dag(dag_id: str, knobs: Any, tasks: int) -> dict[str, Any]:
    """One run of the DAG through a scheduler process's own loop; seconds until it has succeeded, and whose CPU."""
    from scheduler_app.models import DagModel, DagRun, db
    from scheduler_app.scheduler.process import Options, SchedulerProcess, make_executors
    from tests import rows

    executors = make_executors(knobs, Options())
    dag = DagModel.objects.get(pk=dag_id)
    seen: dict[str, float] = {"next": 0.0, "over": False, "began": 0.0, "ended": 0.0}
    runs: list[DagRun] = []
    meter = Meter()

    def over() -> bool:
        now = time.monotonic()
        executor = next(iter(executors.values()))
        if not runs:
            # The runner's own start is not what is measured: it costs once, not for each task.
            if executor.describe()["runner_job_id"] is None:
                executor.slots_available()
                return False
            meter.start(executor.describe()["runner_pid"])
            runs.extend(rows.trigger(dag, now=db.clock(), prefix=f"bench{time.time_ns()}_"))
            seen["began"] = now
        if seen["over"] or now < seen["next"]:
            return bool(seen["over"])
        seen["next"] = now + 0.02
        state = DagRun.objects.values_list("state", flat=True).get(pk=runs[0].pk)
        seen["ended"] = now
        if state in ("success", "failed"):
            # It is asked again by whoever would begin another life of the process, and must not change its mind.
            seen["over"] = True
            meter.stop()
        return bool(seen["over"])

    process = SchedulerProcess(knobs, Options(until=over, idle_sleep_seconds=0.05), executors)
    process.run()
    state = DagRun.objects.get(pk=runs[0].pk).state
    seconds = seen["ended"] - seen["began"]
    return {"state": state, "seconds": round(seconds, 3), "passes": process.passes, **meter.split(tasks, seconds)}


def gaps(ledger: Path) -> list[float]:
    """Milliseconds from the end of each task of the chain to the start of the next."""
    found = {}
    for line in ledger.read_text().splitlines():
        dag_id, task_id, began, ended = line.split()
        if dag_id == "chain":
            found[int(task_id[1:])] = (float(began), float(ended))
    return [1000 * (found[n + 1][0] - found[n][1]) for n in range(len(found) - 1)]


def gap_percentiles(ledger: Path) -> dict[str, float]:
    found = sorted(gaps(ledger))
    return {
        "gap_ms_p50": round(statistics.median(found), 2),
        "gap_ms_p95": round(found[int(0.95 * (len(found) - 1))], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=400)
    parser.add_argument("--chain", type=int, default=50)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--peer", type=Path, help="virtual environment with apache-airflow, to measure it too")
    options = parser.parse_args()
    reexec_with_embedded("bench.local_executor")
    with tempfile.TemporaryDirectory() as home:
        folder, ledger = Path(home) / "dags", Path(home) / "ledger"
        folder.mkdir()
        (folder / "bench_dag.py").write_text(
            DAG_FILE.format(ledger=str(ledger), tasks=options.tasks, chain=options.chain)
        )
        (folder / "bench_slow_dag.py").write_text(
            SLOW_FILE.format(imports=str(Path(home) / "imports"), tasks=options.tasks // 4)
        )
        os.environ["SCHEDULER_HOME"] = home
        os.environ["SCHEDULER_PARALLELISM"] = str(options.slots)
        with throwaway("local"):
            measure(options, folder, ledger)
    if options.peer is not None:
        with tempfile.TemporaryDirectory(prefix="airflow") as home:
            measure_peer(options, Path(home))


def measure_peer(options: argparse.Namespace, home: Path) -> None:
    from bench import peer

    tasks, chain, ledger = max(1, options.tasks // 10), max(5, options.chain // 5), home / "ledger"
    (home / "dags").mkdir()
    (home / "dags" / "bench_dag.py").write_text(DAG_FILE.format(ledger=str(ledger), tasks=tasks, chain=chain))
    with peer.airflow(options.peer, home, home / "dags", options.slots) as airflow:
        airflow.wait_for_dags("wide", "chain")
        for dag_id, count in (("wide", tasks), ("chain", chain)):
            line = airflow.run(dag_id)
            line |= {"peer": "airflow", "shape": f"{dag_id}_{count}", "slots": options.slots}
            line["tasks_per_s"] = round(count / line["seconds"], 1)
            line["cpu_ms_per_task"] = round(1000 * line.pop("cpu_s") / count)
            if dag_id == "chain":
                line |= gap_percentiles(ledger)
            print(json.dumps(line))


def measure(options: argparse.Namespace, folder: Path, ledger: Path) -> None:
    from scheduler_app.conf import conf
    from tests import rows

    logging.disable(logging.INFO)
    rows.default_pool(1_000_000)
    store_dags(folder)
    wide = run_dag("wide", conf(), options.tasks)
    wide |= {"shape": f"wide_{options.tasks}", "slots": options.slots}
    print(json.dumps(wide | {"tasks_per_s": round(options.tasks / wide["seconds"], 1)}))
    chain = run_dag("chain", conf(), options.chain)
    chain |= {"shape": f"chain_{options.chain}", "tasks_per_s": round(options.chain / chain["seconds"], 1)}
    print(json.dumps(chain | gap_percentiles(ledger)))
    imports = ledger.with_name("imports")
    parsed = len(imports.read_text().splitlines())
    slow = run_dag("slow_import", conf(), options.tasks // 4)
    slow |= {
        "shape": f"import_400ms_{options.tasks // 4}",
        "tasks_per_s": round(options.tasks // 4 / slow["seconds"], 1),
        "imports": len(imports.read_text().splitlines()) - parsed,
    }
    print(json.dumps(slow))


if __name__ == "__main__":
    main()
