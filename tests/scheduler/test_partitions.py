"""Runs of DAGs that wait for partitions of assets."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from scheduler_app.access import system
from scheduler_app.actions.assets import create_event
from scheduler_app.models import Asset, AssetQueuedEvent, AssetUse, DagModel, DagRun
from scheduler_app.models.asset import PartitionEvent
from tests.rows import T0
from tests.scheduler.scene import Scene

pytestmark = pytest.mark.django_db

HOUR = {"class": "StartOfHourMapper"}
DAY = {"class": "StartOfDayMapper"}


def asset(name: str) -> Asset:
    return Asset.objects.get_or_create(name=name, uri=f"x://{name}", defaults={"created_at": T0, "updated_at": T0})[0]


def leaf(name: str) -> dict[str, Any]:
    return {"asset": {"name": name, "uri": f"x://{name}"}}


def waiting(scene: Scene, *names: str, dag_id: str = "down", **timetable: Any) -> DagModel:
    document = {"kind": "partitioned", "condition": {"all": [leaf(name) for name in names]}, **timetable}
    dag = scene.dag("t", dag_id, timetable=document, row={"timetable": document})
    for name in names:
        AssetUse.objects.create(dag=dag, asset=asset(name), kind="schedule", created_at=T0)
    return dag


def update(scene: Scene, name: str, key: str | None) -> None:
    create_event(system("command", "test"), asset(name).pk, scene.now, partition_key=key)
    scene.phase("create_asset_runs")
    scene.wait(1)


def keys(dag: DagModel) -> list[str | None]:
    return list(DagRun.objects.filter(dag=dag).order_by("pk").values_list("partition_key", flat=True))


def test_each_partition_runs_once_all_its_assets_have_it(scene: Scene) -> None:
    dag = waiting(scene, "a", "b", default_mapper=HOUR)
    update(scene, "a", "2024-03-15T10:05:00")
    update(scene, "b", "2024-03-15T11:00:00")
    assert keys(dag) == []
    update(scene, "b", "2024-03-15T10:59:00")
    assert keys(dag) == ["2024-03-15T10"]
    run = DagRun.objects.get()
    assert (run.run_type, run.triggered_by, run.logical_date, run.state) == ("asset_triggered", "asset", None, "queued")
    assert sorted(event.partition_key or "" for event in run.consumed_asset_events.all()) == [
        "2024-03-15T10:05:00",
        "2024-03-15T10:59:00",
    ]
    assert list(PartitionEvent.objects.values_list("partition_key", "source_key")) == [
        ("2024-03-15T11", "2024-03-15T11:00:00")
    ]


def test_a_partition_that_is_made_again_runs_again(scene: Scene) -> None:
    dag = waiting(scene, "a")
    for _ in range(2):
        update(scene, "a", "us")
    assert keys(dag) == ["us", "us"]


def test_events_without_a_fitting_partition_start_nothing_and_stop_nobody(scene: Scene) -> None:
    dag = waiting(scene, "a", default_mapper={"class": "AllowedKeyMapper", "allowed_keys": ["us"]})
    for key in (None, "mars", "us"):
        update(scene, "a", key)
    assert keys(dag) == ["us"]
    assert (AssetQueuedEvent.objects.count(), PartitionEvent.objects.count()) == (0, 0)


def test_mappers_of_single_assets_count_before_the_default(scene: Scene) -> None:
    ref = {"ref": {"name": "b"}}
    dag = waiting(scene, "a", "b", mappers=[[ref, HOUR]], default_mapper=DAY)
    update(scene, "a", "2024-03-15T10:00:00")
    update(scene, "b", "2024-03-15T10:00:00")
    assert keys(dag) == []
    assert set(PartitionEvent.objects.values_list("partition_key", flat=True)) == {"2024-03-15", "2024-03-15T10"}


def test_a_rollup_waits_for_its_window_or_for_as_much_of_it_as_is_asked(scene: Scene) -> None:
    rollup = {"class": "RollupMapper", "upstream_mapper": DAY, "window": {"class": "DayWindow", "direction": "forward"}}
    whole = waiting(scene, "a", default_mapper={**rollup, "wait_policy": {"class": "WaitForAll"}})
    some = waiting(
        scene, "a", dag_id="some", default_mapper={**rollup, "wait_policy": {"class": "MinimumCount", "count": -20}}
    )
    for hour in range(23):
        update(scene, "a", f"2024-03-15T{hour:02d}:00:00")
    update(scene, "a", "2024-03-15T10:00:00")
    assert (keys(whole), keys(some)[:1]) == ([], ["2024-03-15"])
    update(scene, "a", "2024-03-15T23:00:00")
    assert keys(whole) == ["2024-03-15"]


def test_one_event_fans_out_to_many_partitions(scene: Scene) -> None:
    fan_out = {
        "class": "FanOutMapper",
        "upstream_mapper": {"class": "StartOfWeekMapper"},
        "window": {"class": "WeekWindow", "direction": "forward"},
        "downstream_mapper": DAY,
    }
    dag = waiting(scene, "a", default_mapper=fan_out)
    update(scene, "a", "2024-03-13T00:00:00")
    assert keys(dag) == [f"2024-03-{day}" for day in range(11, 18)]


def test_a_paused_dag_takes_no_partitions(scene: Scene) -> None:
    dag = waiting(scene, "a")
    DagModel.objects.update(is_paused=True)
    update(scene, "a", "us")
    assert (keys(dag), AssetQueuedEvent.objects.count()) == ([], 0)


def test_a_schedule_of_partitions_gives_each_run_its_key(scene: Scene) -> None:
    document = {
        "kind": "cron_trigger",
        "expression": "0 * * * *",
        "timezone": "Europe/Berlin",
        "partition": {"format": "%Y-%m-%dT%H", "offset": -1},
    }
    dag = scene.dag("t", timetable=document, row={"timetable": document, "next_dagrun_run_after": scene.now})
    scene.phase("create_runs")
    run = DagRun.objects.get(dag=dag)
    local = run.run_after.astimezone(ZoneInfo("Europe/Berlin"))
    assert run.partition_key == f"{local:%Y-%m-%dT}{local.hour - 1:02d}"
