"""Fills a development database so that the pages can be looked at: ``python -m tests.ui.seed [number of DAGs]``."""

from __future__ import annotations

import os
import random
import sys
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_app.settings")
django.setup()

from django.contrib.auth import get_user_model  # noqa: E402

from scheduler_app.conf import conf  # noqa: E402
from scheduler_app.models import Audit, DagModel, DagRun, ParseError, Pool, TaskInstance, db  # noqa: E402
from tests.ui import factory  # noqa: E402

SHAPE = (
    "[extract_orders, extract_customers, extract_payments] >> [clean_orders, join_customers] >> check_rows"
    " >> load >> notify"
)
SCHEDULES = (
    ("@hourly", "At minute 0"),
    ("@daily", "At 00:00"),
    ("0 2 * * *", "At 02:00"),
    ("Asset", None),
    (None, None),
)
ENDS = {
    "success": {},
    "failed": {"load": "failed", "notify": "upstream_failed"},
    "running": {"load": "running", "notify": None},
    "queued": dict.fromkeys(
        (
            "extract_orders",
            "extract_customers",
            "extract_payments",
            "clean_orders",
            "join_customers",
            "check_rows",
            "load",
            "notify",
        )
    ),
}


def fill(count: int) -> None:
    rng = random.Random(7)
    now = db.clock()
    get_user_model().objects.create_superuser("admin", password="admin")
    Pool.objects.create(pool="warehouse", slots=4, description="Connections to the warehouse")
    for kind in ("SchedulerJob", "DagProcessorJob"):
        factory.make_job(kind, now, latest_heartbeat=now + timedelta(days=2))
    for number in range(count):
        verb, thing = rng.choice(("build", "sync", "train", "report")), rng.choice(("ads", "sales", "churn", "fx"))
        name = f"{verb}_{thing}_{number:04}"
        due = now + timedelta(minutes=rng.randint(-3 if number % 40 == 0 else 2, 900))
        summary, words = rng.choice(SCHEDULES)
        document = factory.grouped(name, 6, 8, rng) if number % 25 == 3 else factory.spec(name, SHAPE)
        dag = factory.make_dag(
            name,
            document,
            now,
            tags=rng.sample(("finance", "daily", "eu", "core", "pii"), 2),
            owners=rng.choice(("data", "ml", "finance")),
            is_paused=rng.random() < 0.2,
            timetable_summary=summary,
            timetable_description=words,
            next_dagrun_run_after=due if summary else None,
            timetable={"kind": "cron_trigger", "expression": f"{number % 60} * * * *", "timezone": "UTC"}
            if summary
            else {"kind": "null"},
            description="Loads what the night's report reads.",
        )
        runs(dag, rng, now)
    extras(now, rng)


def runs(dag: DagModel, rng: random.Random, now: object) -> None:
    total = rng.randint(0, 30)
    names = [task["task_id"] for task in dag.latest_version.document["tasks"]]
    for back in range(total, 0, -1):
        at = db.clock() - timedelta(hours=back)
        state = rng.choices(("success", "failed"), (9, 1))[0]
        if back == 1:
            state = rng.choices(("success", "failed", "running", "queued"), (6, 2, 2, 1))[0]
        states = dict.fromkeys(names, "success") | {k: v for k, v in ENDS[state].items() if k in names}
        if len(names) > 10 and state == "running":
            states |= {
                name: rng.choice(("success", "running", "queued", "scheduled", "up_for_retry", "deferred", None))
                for name in names
            }
        factory.make_run(
            dag,
            f"scheduled__{at:%Y-%m-%dT%H:%M:%S}+00:00",
            state,
            states,
            at,
            rng.uniform(20, 600),
            run_type="scheduled",
        )


def extras(now: object, rng: random.Random) -> None:
    folder = conf().log_folder
    for state in ("failed", "running"):
        for instance in TaskInstance.objects.filter(state=state).select_related("dag_run")[:40]:
            factory.make_log(folder, instance, factory.log_lines(rng.randint(10, 300), instance.start_date))
    TaskInstance.objects.filter(
        state__in=["running", "scheduled"],
        id__in=TaskInstance.objects.filter(state__in=["running", "scheduled"]).values("id")[:12],
    ).update(pool="warehouse")
    trace = 'Traceback (most recent call last):\n  File "/dags/fx_rates.py", line 3, in <module>\n    import ratez'
    ParseError.objects.create(timestamp=now, filename="fx_rates.py", stack_trace=trace)
    for number, run in enumerate(DagRun.objects.filter(state="running")[:6]):
        Audit.objects.create(
            when=now,
            event="patch_dag",
            owner="admin",
            dag_id=run.dag_id,
            before={"is_paused": True},
            after={"is_paused": False},
        )
        if number == 1:
            run.held_at, run.held_by, run.held_why = now, "admin", "the bank's feed is late"
            run.save()


if __name__ == "__main__":
    fill(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
