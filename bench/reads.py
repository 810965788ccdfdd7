"""How long a person or a client waits: ``python -m bench.reads [--dags 1000] [--task-instances 1000000]``.

Every list endpoint with the filters and orders that people use, its first page and a deep one, and every page of the
dashboard, in process as an administrator. One JSON line each: p50 and p95 in ms, the CPU of the web process and of the
database's, and the number of statements (docs/performance.md explains the figures). It uses a
throw-away database on DATABASE_URL, else an embedded one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import Any

from cryptography.fernet import Fernet

from bench.database import Server, reexec_with_embedded, throwaway
from bench.statements import watch

#: ms within which 95 of 100 answers are there
GOAL = {"api": 50.0, "page": 150.0, "drawing": 500.0}
ALL_RUNS = "dags/~/dagRuns"
ALL_TASKS = "dags/~/dagRuns/~/taskInstances"
#: what each list is asked for; {dag}, {run}, {task}, {old} and {deep} are filled in
LISTS = (
    "dags",
    "dags?limit=100&offset=900",
    "dags?order_by=-last_run_start_date&tags=hourly",
    "dags?dag_id_pattern=dag7&paused=false",
    "dags?last_dag_run_state=failed",
    "dags/{dag}/details",
    "dags/{dag}/tasks",
    "dags/{dag}/dagVersions",
    "dags/~/dagVersions",
    "dagTags",
    "dagStats",
    "dagStats?dag_ids={dag}",
    "dagWarnings",
    ALL_RUNS,
    f"{ALL_RUNS}?order_by=-run_after&limit=100",
    f"{ALL_RUNS}?order_by=-start_date",
    f"{ALL_RUNS}?order_by=-end_date&state=failed",
    f"{ALL_RUNS}?order_by=-logical_date",
    f"{ALL_RUNS}?state=running",
    f"{ALL_RUNS}?run_after_gte={{old}}&order_by=run_after",
    f"{ALL_RUNS}?start_date_gte={{old}}&order_by=-start_date",
    f"{ALL_RUNS}?run_type=manual&order_by=-id",
    f"{ALL_RUNS}?dag_id_pattern=dag77&order_by=-run_after",
    f"{ALL_RUNS}?offset={{deep}}&order_by=-run_after",
    f"{ALL_RUNS}?cursor=&order_by=-run_after",
    "dags/{dag}/dagRuns?order_by=-run_after",
    "dags/{dag}/dagRuns?state=failed&order_by=-start_date",
    ALL_TASKS,
    f"{ALL_TASKS}?limit=100&order_by=-start_date",
    f"{ALL_TASKS}?order_by=-id",
    f"{ALL_TASKS}?order_by=-end_date",
    f"{ALL_TASKS}?state=failed&order_by=-start_date",
    f"{ALL_TASKS}?state=running",
    f"{ALL_TASKS}?state=skipped&order_by=-end_date",
    f"{ALL_TASKS}?state=removed",
    f"{ALL_TASKS}?state=none&state=scheduled&state=queued",
    f"{ALL_TASKS}?start_date_gte={{old}}&order_by=-start_date",
    f"{ALL_TASKS}?end_date_gte={{old}}&state=failed",
    f"{ALL_TASKS}?order_by=-run_after",
    f"{ALL_TASKS}?offset={{deep}}&order_by=-start_date",
    f"{ALL_TASKS}?cursor=&order_by=-start_date",
    "dags/{dag}/dagRuns/~/taskInstances",
    "dags/{dag}/dagRuns/~/taskInstances?state=failed&order_by=-start_date",
    "dags/{dag}/dagRuns/~/taskInstances?task_id={task}&order_by=-start_date",
    "dags/{dag}/dagRuns/{run}/taskInstances",
    "dags/{wide}/dagRuns/{wide_run}/taskInstances?limit=100",
    "dags/{dag}/dagRuns/{run}/taskInstances/{task}/tries",
    "dags/{dag}/dagRuns/{run}/taskInstances/{task}/dependencies",
    "dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries",
    "dags/~/dagRuns/~/taskInstances/~/xcomEntries",
    "dags/{dag}/dagRuns/~/taskInstances/~/xcomEntries",
    "pools",
    "variables",
    "variables?limit=100&offset=400",
    "connections",
    "assets",
    "assets/aliases",
    "assets/events",
    "assets/events?order_by=-timestamp&source_dag_id={dag}",
    "assets/events?offset={deep}",
    "importErrors",
    "eventLogs",
    "eventLogs?order_by=-when",
    "eventLogs?dag_id={dag}&order_by=-when",
    "eventLogs?event=clear&order_by=-id",
    "eventLogs?offset={deep}&order_by=-when",
    "jobs",
    "config",
    "providers",
    "plugins",
    "monitor/health",
)
PAGES = (
    "/",
    "/dags/",
    "/dags/?page=20",
    "/dags/?q=dag7&chip=failed",
    "/dags/?order=latest",
    "/dags/{dag}/",
    "/dags/{dag}/grid/",
    "/dags/{dag}/graph/",
    "/dags/{dag}/runs/",
    "/dags/{dag}/code/",
    "/dags/{dag}/details/",
    "/dags/{dag}/events/",
    "/dags/{dag}/trigger/",
    "/dags/{dag}/clear/?run={run}",
    "/dags/{dag}/runs/{run}/",
    "/dags/{wide}/runs/{wide_run}/",
    "/dags/{dag}/runs/{run}/graph/",
    "/dags/{dag}/runs/{run}/tasks/{task}/",
    "/dags/{dag}/runs/{run}/tasks/{task}/?tab=details",
    "/dags/{open}/runs/{open_run}/",
    "/dags/{open}/runs/{open_run}/tasks/{waiting}/",
    "/runs/",
    "/runs/?state=failed",
    "/runs/?q=dag77",
    "/runs/?type=manual",
    "/runs/?page=200",
    "/pools/",
    "/jobs/",
    "/dags/{dag}/calendar/",
    "/dags/{dag}/runs/{run}/compare/",
    "/dags/{dag}/tasks/{task}/?runs=365",
    "/timeline/",
    "/timeline/?hours=24&group=tag",
    "/task-instances/",
    "/task-instances/?q=dag&task=task",
    "/task-instances/?state=success&hours=168&task=nothing",
    "/failures/",
    "/callbacks/",
    "/callbacks/?state=failed",
    "/deadlines/",
    "/backfills/",
    "/backfills/{backfill}/",
    "/backfills/{backfill}/?show=waiting&page=100",
    "/dags/{dag}/backfills/",
    "/import-errors/",
    "/audit/",
    "/audit/?owner=owner3",
    "/audit/?page=200",
    "/audit/?event=clear&since=7d",
    "/live/?page=dags&token=x",
    "/live/?page=run:{dag}/{run}&token=x",
    "/healthz",
)
#: thousands of cells, and the layout of a large graph
DRAWINGS = ("/dags/{wide}/grid/", "/dags/{wide}/grid/?runs=100", "/dags/{wide}/graph/")


def names_of_rows(now: Any) -> dict[str, str]:
    """Ids that exist, for the paths."""
    from datetime import timedelta
    from urllib.parse import quote

    from scheduler_app.models import Backfill, DagRun, TaskInstance

    runs = DagRun.objects.order_by("-run_after", "id")
    plain = runs.filter(state="failed", dag__dag_id__endswith="7").first() or runs[0]
    wide = runs.filter(dag_id="team0_dag0").first() or plain
    going = runs.filter(state="running").first() or plain
    waiting = TaskInstance.objects.filter(dag_run=going).order_by("-id").first()
    return {
        "dag": plain.dag_id,
        "run": quote(plain.run_id),
        "task": str(TaskInstance.objects.filter(dag_run=plain).order_by("id").values_list("task_id", flat=True)[4]),
        "wide": wide.dag_id,
        "wide_run": quote(wide.run_id),
        "open": going.dag_id,
        "open_run": quote(going.run_id),
        "waiting": waiting.task_id if waiting else "t9",
        "backfill": str(Backfill.objects.order_by("id").values_list("pk", flat=True).first()),
        "old": quote((now - timedelta(hours=6)).isoformat()),
        "deep": str(min(10_000, DagRun.objects.count() // 2)),
    }


def measure(client: Any, kind: str, path: str, repeat: int) -> dict[str, Any]:
    """Times one address: the first answer warms caches and is not counted."""
    with watch() as seen:
        answer = client.get(path)
    if answer.status_code not in (200, 204) and path != "/healthz":  # which is 503: no scheduler runs here
        raise SystemExit(f"{path}: {answer.status_code} {answer.content[:300]!r}")
    server = Server()
    taken, cpu, server_cpu = [], time.process_time(), server.seconds()
    for _ in range(repeat):
        began = time.perf_counter()
        client.get(path).getvalue()
        taken.append((time.perf_counter() - began) * 1000)
    p95 = statistics.quantiles(taken, n=20, method="inclusive")[-1]
    return {
        "kind": kind,
        "path": path,
        "p50_ms": round(statistics.median(taken), 1),
        "p95_ms": round(p95, 1),
        "cpu_ms": round((time.process_time() - cpu) / repeat * 1000, 1),
        "db_cpu_ms": None if server_cpu is None else round((server.seconds() - server_cpu) / repeat * 1000, 1),
        "queries": sum(map(len, seen.values())),
        "bytes": len(answer.getvalue()),
        "ok": p95 <= GOAL[kind],
    }


def measure_all(repeat: int, only: str) -> list[dict[str, Any]]:
    """Every address that holds one of the texts of ``only``, as an administrator with a session."""
    from django.contrib.auth.models import User
    from django.test import Client

    from scheduler_app.models import db

    user, _ = User.objects.get_or_create(username="bench", defaults={"is_superuser": True, "is_staff": True})
    client = Client()
    client.force_login(user)
    names = names_of_rows(db.clock())
    addresses = [("api", f"/api/v2/{path}") for path in LISTS] + [("page", path) for path in PAGES]
    addresses += [("drawing", path) for path in DRAWINGS]
    found = []
    for kind, template in addresses:
        path = template.format(**names)
        if any(part in path for part in only.split(",")):
            found.append(measure(client, kind, path, repeat))
            print(json.dumps(found[-1]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dags", type=int, default=1000)
    parser.add_argument("--task-instances", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=20, help="measurements an address")
    parser.add_argument("--only", default="", help="only addresses that hold one of these texts, separated by commas")
    args = parser.parse_args()
    reexec_with_embedded("bench.reads")
    with throwaway("reads", fernet_keys=(Fernet.generate_key().decode(),)):
        from django.conf import settings

        from bench.reads_seed import seed
        from scheduler_app import wsgi  # noqa: F401  (loads what a web process loads, and keeps it)
        from scheduler_app.models import db

        settings.ALLOWED_HOSTS = ["testserver"]
        began = time.perf_counter()
        seed(args.dags, args.task_instances, db.clock())
        print(f"seeded in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        results = measure_all(args.repeat, args.only)
    slow = [result for result in results if not result["ok"]]
    print(f"{len(slow)} of {len(results)} addresses are slower than their goal", file=sys.stderr)


if __name__ == "__main__":
    main()
