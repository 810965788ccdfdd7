"""What is old and nobody needs goes, a batch at a time; what something refers to stays."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.sessions.models import Session

from scheduler_app.conf import Conf
from scheduler_app.dag_processor import retention
from scheduler_app.dag_processor.retention import Retention
from scheduler_app.log_store.pieces import ATTEMPT, Piece
from scheduler_app.log_store.stores import RemoteStore
from scheduler_app.models import (
    Asset,
    AssetEvent,
    AssetQueuedEvent,
    Audit,
    BundleVersion,
    Callback,
    DagRun,
    Deadline,
    Job,
    LogPiece,
    SourceBlob,
    Trigger,
)
from tests import rows
from tests.executors.conftest import bundle
from tests.rows import T0
from tests.shapes import shape

pytestmark = pytest.mark.django_db

NOW = T0 + timedelta(days=100)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def run_all(values: Conf, clock: Callable[[], float] | None = None) -> int:
    """Everything that is due now."""
    made = Retention(values, clock or Clock())
    return sum(made.step(NOW) for _ in range(12))


def test_old_pieces_callbacks_and_audit_rows_go_by_their_own_settings() -> None:
    for age in (1, 50):
        at = NOW - timedelta(days=age)
        LogPiece.objects.create(log="x", name=f"{age}", content=b"", created_at=at)
        Audit.objects.create(when=at, event=f"{age}")
        for state in ("success", "failed", "pending"):
            Callback.objects.create(
                kind="k", dedupe_key=f"{state}{age}", dag_id="d", state=state, next_at=at, created_at=at, finished_at=at
            )
    assert run_all(Conf(log_days=0, callback_days=0, audit_days=0, bundle_days=0)) == 0
    assert run_all(Conf(log_days=30, callback_days=0, audit_days=0)) == 1
    assert set(LogPiece.objects.values_list("name", flat=True)) == {"1"}
    assert run_all(Conf(log_days=0, callback_days=30, audit_days=0)) == 2
    assert set(Callback.objects.values_list("dedupe_key", flat=True)) == {
        "success1",
        "failed1",
        "pending1",
        "pending50",
    }
    assert run_all(Conf(log_days=0, callback_days=0, audit_days=30)) == 1
    assert set(Audit.objects.values_list("event", flat=True)) == {"1"}


def test_ended_processes_missed_deadlines_and_sessions_go_by_age() -> None:
    (run,) = rows.trigger(rows.store(shape("a")))
    for age in (1, 50):
        at = NOW - timedelta(days=age)
        for state in ("running", "failed"):
            end = None if state == "running" else at
            Job.objects.create(job_type=f"{state}{age}", state=state, start_date=at, latest_heartbeat=at, end_date=end)
        for missed in (at, None):
            Deadline.objects.create(
                dag_id="dag", dag_run=run, kind="run", name=f"{age}", due_at=at, created_at=at, missed_at=missed
            )
        Session.objects.create(session_key=f"{age}", session_data="", expire_date=at)
    values = Conf(log_days=0, callback_days=0, bundle_days=0, job_days=30, deadline_days=30)
    assert run_all(values) == 3
    assert Session.objects.values_list("session_key", flat=True).get() == "1"  # a login may run out a day ago
    assert set(Job.objects.values_list("job_type", flat=True)) == {"running1", "running50", "failed1"}
    assert Deadline.objects.filter(missed_at=None).count() == 2
    assert Deadline.objects.exclude(missed_at=None).values_list("name", flat=True).get() == "1"


def test_an_asset_event_goes_once_nobody_waits_for_it() -> None:
    dag = rows.store(shape("a"))
    (run,) = rows.trigger(dag)
    asset = Asset.objects.create(name="x", uri="x://y", created_at=T0, updated_at=T0)
    for number, age in enumerate((1, 50, 50)):
        event = AssetEvent.objects.create(asset=asset, timestamp=NOW - timedelta(days=age), source_task_id=f"t{number}")
        event.created_dagruns.add(run)
    AssetQueuedEvent.objects.create(asset=asset, dag=dag, event=event, created_at=NOW)
    off = Conf(log_days=0, callback_days=0, bundle_days=0, job_days=0, deadline_days=0)
    assert run_all(off) == 0
    assert run_all(replace(off, asset_event_days=30)) == 1
    assert list(AssetEvent.objects.order_by("pk").values_list("source_task_id", flat=True)) == ["t0", "t2"]


def test_of_every_table_it_is_written_how_its_rows_go_again() -> None:
    models = {model.__name__ for model in apps.get_app_config("scheduler_app").get_models()}
    assert models == set(retention.HOW_ROWS_GO)
    named = {word for text in retention.HOW_ROWS_GO.values() for word in re.findall(r"\w+_days", text)}
    assert named <= {field.name for field in fields(Conf)}


def test_a_full_batch_is_followed_soon_and_a_part_of_one_an_hour_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_BATCH", 2)
    for number in range(3):
        LogPiece.objects.create(log="x", name=f"{number}", content=b"", created_at=T0)
    clock = Clock()
    made = Retention(Conf(callback_days=0, bundle_days=0, log_days=30), clock)
    assert (made.step(NOW), made.step(NOW)) == (2, 0)
    clock.now += 6
    assert (made.step(NOW), made.step(NOW)) == (1, 0)
    LogPiece.objects.create(log="x", name="late", content=b"", created_at=T0)
    clock.now += 60
    assert sum(made.step(NOW) for _ in range(8)) == 0
    clock.now += 3600
    assert sum(made.step(NOW) for _ in range(8)) == 1


def test_versions_that_a_dag_a_run_or_a_trigger_refers_to_stay_with_their_files() -> None:
    versions = {
        name: bundle({"dag.py": name, "shared.py": "same"})
        for name in ("dag", "runs", "ended", "trigger", "old", "last")
    }
    dag = rows.store(shape("a"), bundle_version=versions["dag"])
    going, ended = rows.trigger(dag, 2)
    DagRun.objects.filter(pk=going.pk).update(bundle_version=versions["runs"])
    DagRun.objects.filter(pk=ended.pk).update(bundle_version=versions["ended"], end_date=NOW - timedelta(days=40))
    Trigger.objects.create(classpath="a.B", created_date=T0, bundle_version=versions["trigger"])
    assert run_all(Conf(log_days=0, callback_days=0, bundle_days=30)) == 2
    kept = {name for name, version in versions.items() if BundleVersion.objects.filter(version=version).exists()}
    assert kept == {"dag", "runs", "trigger", "last"}
    contents = {bytes(content).decode() for content in SourceBlob.objects.values_list("content", flat=True)}
    assert contents == {"dag", "runs", "trigger", "last", "same"}


def test_a_young_version_stays_and_so_does_the_run_that_ended_lately() -> None:
    old, last = bundle({"dag.py": "old"}), bundle({"dag.py": "last"})
    (run,) = rows.trigger(rows.store(shape("a"), bundle_version=last))
    DagRun.objects.filter(pk=run.pk).update(bundle_version=old, end_date=NOW - timedelta(days=10))
    assert run_all(Conf(log_days=0, callback_days=0, bundle_days=30)) == 0
    DagRun.objects.filter(pk=run.pk).update(bundle_version=None)
    assert run_all(Conf(log_days=0, callback_days=0, bundle_days=101)) == 0
    assert run_all(Conf(log_days=0, callback_days=0, bundle_days=30)) == 1


def test_old_objects_of_a_remote_store_go_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setattr(retention, "_BATCH", 4)
    store = RemoteStore(f"file://{tmp_path}/store")
    for number in range(10):
        piece = Piece(1, ATTEMPT, "aaaaaaaa", 0, 1)
        store.put(f"dag_id=d/attempt={number}.log", piece, b"x", NOW)
        age = 50 if number < 7 else 1
        at = (NOW - timedelta(days=age)).timestamp()
        os.utime(tmp_path / "store" / f"dag_id=d/attempt={number}.log" / piece.name, (at, at))
    foreign = tmp_path / "store" / "backup.tar"
    foreign.write_text("not ours")
    os.utime(foreign, (0, 0))
    clock = Clock()
    made = Retention(Conf(log_days=30, callback_days=0, bundle_days=0, log_store=f"file://{tmp_path}/store"), clock)
    gone = 0
    for _ in range(5):
        gone += sum(made.step(NOW) for _ in range(3))
        clock.now += 6
    assert gone == 7
    assert foreign.exists()
    assert [len(store.pieces(f"dag_id=d/attempt={number}.log")) for number in range(10)] == [0] * 7 + [1] * 3
