"""A year in the life of a busy installation, made by the database itself in seconds.

Chains of ten tasks and, every hundredth DAG, a wide one of a hundred; hourly runs of which one in twenty failed; the
newest run of one DAG in ten is still running. Beside the task instances: their rendered fields, XComs, ended tries,
asset events and the audit trail.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import AutoField, Model

CHAIN, WIDE = 10, 100
#: every so many DAGs a wide one
WIDE_EVERY = 100


def seed(dags: int, task_instances: int, now: datetime) -> None:
    """Fills an empty, migrated database."""
    from scheduler_app.models import db

    runs = max(1, task_instances // (dags * CHAIN + max(1, dags // WIDE_EVERY) * (WIDE - CHAIN)))
    _dags(dags, now)
    _runs(runs, now)
    _task_instances(now)
    _hangs_on_tasks()
    _records(dags, now)
    _told_and_late(now)
    _backfills(dags, now)
    _small_tables(now)
    db.execute("VACUUM (ANALYZE)")


def insert_select(model: type[Model], source: str, params: tuple[Any, ...] = (), **columns: str) -> int:
    """``INSERT … SELECT``: the columns given as SQL over ``source``, all others by their field's default."""
    from scheduler_app.models import db

    given = dict(columns)
    defaults: list[Any] = []
    for field in model._meta.concrete_fields:
        if field.column in given or (isinstance(field, AutoField) and field.primary_key):
            continue
        default = field.get_default()
        if default is None:
            continue
        given[field.column] = "%s"
        defaults.append(field.get_db_prep_save(default, db.connection()))
    names = ", ".join(f'"{name}"' for name in given)
    values = ", ".join(given.values())
    return db.execute(
        f"INSERT INTO {model._meta.db_table} ({names}) SELECT {values} FROM {source}", [*defaults, *params]
    )


def _dags(count: int, now: datetime) -> None:
    from scheduler_app.models import DagModel, DagTag, DagVersion
    from scheduler_app.models.dag import SourceBlob
    from tests import rows, shapes

    SourceBlob.objects.create(sha256="0" * 64, content=b"from airflow.sdk import dag\n" * 60)
    for n in range(count):
        name = f"team{n % 20}_dag{n}"
        dag = shapes.wide(WIDE - 2, name) if n % WIDE_EVERY == 0 else shapes.chain(CHAIN, name)
        rows.store(
            dag,
            owners=f"owner{n % 20}",
            is_paused=n % 10 == 9,
            relative_fileloc=f"team{n % 20}/dag{n}.py",
            fileloc=f"/dags/team{n % 20}/dag{n}.py",
            timetable={"kind": "cron_trigger", "expression": "0 * * * *", "timezone": "UTC"},
            timetable_summary="0 * * * *",
            next_dagrun_run_after=now + timedelta(minutes=n % 60),
            next_dagrun_logical_date=now + timedelta(minutes=n % 60),
        )
    DagVersion.objects.update(source_sha256="0" * 64)
    source = f"{DagModel._meta.db_table} d, unnest(ARRAY['hourly', 'team' || mod(length(d.dag_id), 7), d.owners]) t"
    insert_select(DagTag, source, dag_id="d.dag_id", name="t")


def _runs(per_dag: int, now: datetime) -> None:
    """Run 0 is the newest. State follows from DAG and number, so that a second seeding makes the same rows."""
    from scheduler_app.models import DagModel, DagRun

    number = "hashtext(d.dag_id || n)::bigint & 1023"
    state = (
        f"CASE WHEN n = 0 AND mod(hashtext(d.dag_id), 10) = 0 THEN 'running' WHEN ({number}) < 51 THEN 'failed'"
        " ELSE 'success' END"
    )
    slot = "t.now - n * interval '1 hour' - (hashtext(d.dag_id)::bigint & 2047) * interval '1 second'"
    insert_select(
        DagRun,
        f"generate_series({per_dag - 1}, 0, -1) n, (SELECT %s::timestamptz AS now) t, {DagModel._meta.db_table} d",
        (now,),
        dag_id="d.dag_id",
        run_id=f"'scheduled__' || to_char({slot}, 'YYYY-MM-DD\"T\"HH24:MI:SS')",
        run_type="CASE WHEN mod(n, 20) = 3 THEN 'manual' ELSE 'scheduled' END",
        state=state,
        logical_date=slot,
        data_interval_start=slot,
        data_interval_end=slot,
        run_after=slot,
        queued_at=slot,
        start_date=f"{slot} + interval '1 second'",
        end_date=f"CASE {state} WHEN 'running' THEN NULL ELSE {slot} + (({number}) + 60) * interval '1 second' END",
        last_scheduling_decision=f"{slot} + interval '2 minutes'",
        dag_version_id="d.latest_version_id",
    )


def _task_instances(now: datetime) -> None:
    """In a failed run the fifth task failed and the rest never ran; in a running one the fifth runs."""
    from scheduler_app.models import TaskInstance

    state = (
        "CASE r.state WHEN 'success' THEN CASE WHEN k = 3 AND mod(r.id, 11) = 0 THEN 'skipped' ELSE 'success' END"
        " WHEN 'failed' THEN CASE WHEN k < 4 THEN 'success' WHEN k = 4 THEN 'failed' ELSE 'upstream_failed' END"
        " ELSE CASE WHEN k < 4 THEN 'success' WHEN k = 4 THEN 'running' END END"
    )
    began = "CASE WHEN r.state = 'success' OR k <= 4 THEN r.start_date + k * interval '5 seconds' END"
    ended = (
        "CASE WHEN r.state = 'success' OR (r.state = 'failed' AND k <= 4) OR k < 4"
        " THEN r.start_date + (k * 5 + 3 + mod(r.id, 7)) * interval '1 second'"
        " WHEN r.state = 'failed' THEN r.end_date END"
    )
    insert_select(
        TaskInstance,
        "scheduler_dag_run r JOIN scheduler_dag_version v ON v.id = r.dag_version_id,"
        " jsonb_array_elements(v.document -> 'tasks') WITH ORDINALITY AS task(doc, place),"
        " LATERAL (SELECT place::int - 1 AS k) p ORDER BY r.id, k",
        dag_run_id="r.id",
        dag_version_id="v.id",
        dag_id="r.dag_id",
        task_id="task.doc ->> 'task_id'",
        state=state,
        try_number="CASE WHEN r.state = 'success' OR k <= 4 THEN 1 + (k = 4)::int ELSE 0 END",
        operator_name="CASE WHEN mod(k, 3) = 0 THEN 'BashOperator' ELSE 'PythonOperator' END",
        pool="CASE WHEN mod(k, 5) = 0 THEN 'pool' || mod(k, 10) ELSE 'default_pool' END",
        scheduled_when="r.start_date",
        queued_when="r.start_date",
        start_date=began,
        end_date=ended,
        first_start_date=began,
        hostname="'worker-1'",
    )


def _hangs_on_tasks() -> None:
    from scheduler_app.models import RenderedFields, TaskInstanceHistory, XCom

    ended = "scheduler_task_instance ti WHERE ti.state IN ('success', 'failed')"
    insert_select(
        RenderedFields,
        f"{ended} AND mod(ti.id, 4) = 0",
        task_instance_id="ti.id",
        fields="jsonb_build_object('bash_command', 'load --day ' || ti.start_date)",
    )
    insert_select(
        XCom,
        f"{ended} AND mod(ti.id, 5) = 0",
        dag_run_id="ti.dag_run_id",
        dag_id="ti.dag_id",
        task_id="ti.task_id",
        key="'return_value'",
        value="to_jsonb(ti.id)",
        timestamp="ti.end_date",
    )
    insert_select(
        TaskInstanceHistory,
        "scheduler_task_instance ti WHERE ti.try_number = 2",
        task_instance_id="ti.id",
        dag_run_id="ti.dag_run_id",
        dag_version_id="ti.dag_version_id",
        dag_id="ti.dag_id",
        task_id="ti.task_id",
        state="'failed'",
        try_number="1",
        start_date="ti.start_date",
        end_date="ti.start_date",
    )


def _records(dags: int, now: datetime) -> None:
    from scheduler_app.models import Asset, AssetEvent, AssetUse, Audit

    assets = max(1, dags // 5)
    insert_select(
        Asset,
        f"generate_series(1, {assets}) n",
        (),
        name="'asset' || n",
        uri="'s3://lake/asset' || n",
        created_at="'2026-01-01'::timestamptz",
        updated_at="'2026-01-01'::timestamptz",
    )
    insert_select(
        AssetEvent,
        "scheduler_dag_run r WHERE mod(r.id, 3) = 0",
        asset_id=f"1 + mod(r.id, {assets})",
        source_dag_id="r.dag_id",
        source_run_id="r.run_id",
        source_task_id="'t9'",
        source_map_index="-1",
        timestamp="coalesce(r.end_date, r.start_date)",
    )
    insert_select(
        AssetUse,
        "scheduler_dag d",
        dag_id="d.dag_id",
        asset_id=f"1 + mod((hashtext(d.dag_id)::bigint & 65535), {assets})",
        kind="CASE WHEN mod(hashtext(d.dag_id), 2) = 0 THEN 'outlet' ELSE 'inlet' END",
        task_id="'t9'",
        created_at="d.created_at",
    )
    insert_select(
        Audit,
        "scheduler_dag_run r, (VALUES ('trigger'), ('clear')) e(name)",
        when="r.run_after",
        event="e.name",
        owner="'owner' || mod(r.id, 20)",
        dag_id="r.dag_id",
        run_id="r.run_id",
    )


def _told_and_late(now: datetime) -> None:
    """A callback for each failed run, one in fifty of which was given up, and a deadline that each of them missed."""
    from scheduler_app.models import Callback, Deadline

    insert_select(
        Callback,
        "scheduler_dag_run r WHERE r.state = 'failed'",
        kind="'dag_failure'",
        dedupe_key="'run ' || r.id",
        dag_id="r.dag_id",
        dag_run_id="r.id",
        state="CASE WHEN mod(r.id, 50) = 0 THEN 'failed' ELSE 'success' END",
        next_at="r.run_after",
        created_at="r.run_after",
        finished_at="r.run_after",
    )
    insert_select(
        Deadline,
        "scheduler_dag_run r WHERE r.state = 'failed'",
        dag_id="r.dag_id",
        dag_run_id="r.id",
        kind="'run'",
        due_at="r.run_after",
        created_at="r.run_after",
        missed_at="r.run_after",
    )


def _backfills(dags: int, now: datetime) -> None:
    """One for every DAG, of a hundred slots; the first has as many as a backfill may have."""
    from scheduler_app.models import Backfill, BackfillSlot

    insert_select(
        Backfill,
        "scheduler_dag d",
        dag_id="d.dag_id",
        from_date="d.created_at",
        to_date="d.created_at",
        created_at="d.created_at",
        updated_at="d.created_at",
    )
    insert_select(
        BackfillSlot,
        "scheduler_backfill b, LATERAL generate_series(1, CASE WHEN b.id = (SELECT min(id) FROM scheduler_backfill)"
        " THEN 20000 ELSE 100 END) n LEFT JOIN LATERAL (SELECT id FROM scheduler_dag_run r WHERE r.dag_id = b.dag_id"
        " ORDER BY r.id OFFSET n LIMIT 1) run ON n <= 50",
        backfill_id="b.id",
        ordinal="n",
        run_after="b.created_at",
        logical_date="b.created_at",
        outcome="CASE WHEN run.id IS NOT NULL THEN 'created' END",
        dag_run_id="run.id",
    )


def _small_tables(now: datetime) -> None:
    from scheduler_app.models import Connection, DagWarning, Job, ParseError, Pool, Variable
    from scheduler_app.secrets import encrypt

    secret = encrypt('{"token": "x"}')
    Variable.objects.bulk_create(Variable(key=f"var{n}", value_encrypted=secret) for n in range(500))
    Connection.objects.bulk_create(
        Connection(connection_id=f"conn{n}", conn_type="http", extra_encrypted=secret) for n in range(200)
    )
    Pool.objects.bulk_create(Pool(pool=f"pool{n}", slots=32) for n in range(10))
    ParseError.objects.bulk_create(
        ParseError(timestamp=now, filename=f"broken{n}.py", stack_trace="SyntaxError\n" * 20) for n in range(20)
    )
    insert_select(
        DagWarning,
        "scheduler_dag d WHERE mod(hashtext(d.dag_id), 20) = 0",
        dag_id="d.dag_id",
        warning_type="'non-existent pool'",
        message="'There is no pool gpu.'",
        timestamp="d.created_at",
    )
    Job.objects.bulk_create(
        Job(job_type="SchedulerJob", start_date=now - timedelta(hours=n), latest_heartbeat=now) for n in range(200)
    )
