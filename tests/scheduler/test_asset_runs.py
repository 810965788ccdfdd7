"""Runs by assets: one for the events that it takes, and nobody waits behind DAGs that wait for more (I5)."""

from __future__ import annotations

from typing import Any

from scheduler_app.models import Asset, AssetEvent, AssetQueuedEvent, DagModel, DagRun
from tests.scheduler.scene import Scene
from tests.shapes import shape


def asset(scene: Scene, name: str) -> Asset:
    return Asset.objects.create(name=name, uri=f"x://{name}", created_at=scene.now, updated_at=scene.now)


def on(condition: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "asset", "condition": condition}


def named(name: str) -> dict[str, Any]:
    return {"asset": {"name": name, "uri": f"x://{name}"}}


def event(scene: Scene, of: Asset, *dags: DagModel) -> AssetEvent:
    found = AssetEvent.objects.create(asset=of, timestamp=scene.now)
    for dag in dags:
        AssetQueuedEvent.objects.create(dag=dag, asset=of, event=found, created_at=scene.now)
    return found


def test_BC_103_the_events_of_a_run_are_used_once(scene: Scene) -> None:
    orders = asset(scene, "orders")
    dag = scene.dag(shape("a", timetable=on(named("orders"))))
    events = [event(scene, orders, dag), event(scene, orders, dag)]
    assert scene.phase("create_asset_runs") == 1
    assert scene.phase("create_asset_runs", job=scene.new_job()) == 0
    run = DagRun.objects.get()
    assert (run.run_type, run.state, run.run_after) == ("asset_triggered", "queued", scene.now)
    assert sorted(run.consumed_asset_events.values_list("pk", flat=True)) == [one.pk for one in events]
    assert not AssetQueuedEvent.objects.exists()


def test_BC_133_dags_that_wait_for_more_events_hide_nobody(scene: Scene) -> None:
    one, other = asset(scene, "one"), asset(scene, "other")
    both = on({"all": [named("one"), named("other")]})
    waiting = [scene.dag(shape("a", f"d{number}", timetable=both)) for number in range(9)]
    last = scene.dag(shape("a", "last", timetable=on(named("other"))))
    for dag in waiting:
        event(scene, one, dag)
    event(scene, other, last)
    scene.limit = 4
    assert scene.phase("create_asset_runs") == 1
    assert list(DagRun.objects.values_list("dag_id", flat=True)) == ["last"]
    assert AssetQueuedEvent.objects.count() == 9


def test_I5_a_dag_whose_condition_cannot_be_read_keeps_its_error_and_its_events_until_it_can(scene: Scene) -> None:
    orders = asset(scene, "orders")
    bad = scene.dag(shape("a", "bad", timetable=on(named("orders"))))
    good = scene.dag(shape("a", "good", timetable=on(named("orders"))))
    event(scene, orders, bad, good)
    DagModel.objects.filter(pk="bad").update(timetable={"kind": "no such kind"})
    scene.phase("create_asset_runs")
    assert list(DagRun.objects.values_list("dag_id", flat=True)) == ["good"]
    bad.refresh_from_db()
    assert bad.schedule_failures == 1
    assert "Unknown timetable kind" in (bad.schedule_error or "")
    assert list(AssetQueuedEvent.objects.values_list("dag_id", flat=True)) == ["bad"]
    bad.timetable = good.timetable
    bad.save()
    scene.wait(7200)
    scene.phase("create_asset_runs")
    bad.refresh_from_db()
    assert (bad.runs.count(), bad.schedule_failures, bad.schedule_error, bad.backoff_until) == (1, 0, None, None)
