"""Assets, ``@asset``, events that tasks read, triggers, partitions, questions to people."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import pytest
import time_machine

from scheduler_app.engine.assets import AssetKey
from scheduler_app.sdk import DAG, Asset, AssetAlias, Dataset, asset, task
from scheduler_app.sdk import EmptyOperator as Empty
from scheduler_app.sdk.operators.hitl import ApprovalOperator, HITLBranchOperator, HITLOperator
from scheduler_app.sdk.operators.latest_only import LatestOnlyOperator
from scheduler_app.sdk.partition_timetables import CronPartitionTimetable, PartitionedAssetTimetable
from scheduler_app.sdk.partitions import (
    AllowedKeyMapper,
    DayWindow,
    FanOutMapper,
    IdentityMapper,
    MinimumCount,
    PartitionMapper,
    ProductMapper,
    RollupMapper,
    StartOfDayMapper,
    StartOfWeekMapper,
    WeekWindow,
    Window,
)
from scheduler_app.sdk.runtime import set_port
from scheduler_app.sdk.serialize import serialize
from scheduler_app.sdk.triggers.external_task import WorkflowTrigger
from scheduler_app.sdk.triggers.file import FileDeleteTrigger, FileTrigger
from scheduler_app.sdk.triggers.hitl import HITLTrigger
from scheduler_app.sdk.triggers.temporal import DateTimeTrigger
from scheduler_app.timetables import from_doc

from .memory_port import MemoryPort, attempt, utc


def test_one_text_is_name_and_uri() -> None:
    assert (Asset("x://a").name, Asset("x://a").uri) == ("x://a", "x://a")
    assert Asset(name="n", uri="x://a") == Asset(uri="x://a", name="n") != Asset("x://a")
    assert Dataset("x://a", {"k": 1}).extra == {"k": 1}


@pytest.mark.parametrize("bad", ["", "  ", "x" * 1501, "airflow://reserved"])
def test_a_text_that_can_be_no_asset_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"asset|scheme"):
        Asset(bad)


def test_an_asset_function_is_a_dag_of_one_task_with_its_arguments_as_inlets() -> None:
    @asset(schedule="@daily", uri="conf://made", tags=["t"])
    def made(self: Any, context: Any, source: Any) -> list[Any]:
        return [self.uri, context["ti"].task_id, source.name]

    document = serialize(made.dag)
    only = document["tasks"][0]
    assert (document["dag_id"], document["tags"], only["task_id"]) == ("made", ["t"], "made")
    assert only["outlets"] == [{"name": "made", "uri": "conf://made", "group": "asset", "extra": {}}]
    assert only["inlets"] == [{"ref": {"name": "source"}}]
    port = MemoryPort()
    outcome = attempt(made.dag, "made", port)
    assert port.xcoms["made", -1, "return_value"] == ["conf://made", "made", "source"]
    assert outcome["asset_events"][0]["uri"] == "conf://made"


def test_triggering_events_are_found_by_asset_uri_and_alias() -> None:
    event = {
        "asset": {"name": "a", "uri": "conf://a"},
        "extra": {"rows": 3},
        "timestamp": "2024-03-15T10:00:00+00:00",
        "aliases": ["x"],
        "source_dag_id": "s",
    }
    port = MemoryPort()
    with DAG("d") as dag:

        @task
        def seen(triggering_asset_events: Any = None) -> Any:
            by_asset = triggering_asset_events[Asset(name="a", uri="conf://a")]
            by_alias = triggering_asset_events.for_asset_alias("x")
            return [by_asset[0].extra, by_alias[0].source_dag_id, len(triggering_asset_events)]

        seen()
    attempt(dag, "seen", port, run={"consumed_asset_events": [event]})
    assert port.xcoms["seen", -1, "return_value"] == [{"rows": 3}, "s", 2]


def test_inlet_events_are_fetched_when_looked_at() -> None:
    source, alias = Asset("conf://a"), AssetAlias("x")
    port = MemoryPort()
    port.events = [{"asset": {"name": "conf://a", "uri": "conf://a"}, "extra": {"n": n}} for n in (1, 2)]
    with DAG("d") as dag:

        @task(inlets=[source, alias])
        def read(inlet_events: Any = None) -> Any:
            return [inlet_events[source][-1].extra, len(inlet_events[alias]), inlet_events[0].limit(1)[0].extra]

        read()
    attempt(dag, "read", port)
    assert port.xcoms["read", -1, "return_value"] == [{"n": 2}, 2, {"n": 1}]
    assert [name for name, _ in port.questions] == ["get_asset_events", "get_asset_alias_events", "get_asset_events"]


def first_event(trigger: Any) -> Any:
    async def take() -> Any:
        async for event in trigger.run():
            return event.payload
        return None

    return asyncio.run(take())


def test_a_date_trigger_that_is_due_fires_at_once_and_serialises_its_moment() -> None:
    trigger = DateTimeTrigger(utc(2020, 1, 1))
    assert trigger.serialize()[1] == {"moment": utc(2020, 1, 1), "end_from_trigger": False}
    assert first_event(trigger) == utc(2020, 1, 1)
    with pytest.raises(ValueError, match="time zone"):
        DateTimeTrigger(dt.datetime(2020, 1, 1))


def test_file_triggers_find_and_delete(tmp_path: Any) -> None:
    path = tmp_path / "flag"
    path.touch()
    assert first_event(FileTrigger(filepath=str(path))) is True
    assert first_event(FileDeleteTrigger(filepath=str(path))) is True
    assert not path.exists()


@pytest.mark.parametrize(("state", "status"), [("success", "success"), ("failed", "failed"), ("skipped", "skipped")])
def test_a_workflow_trigger_tells_how_the_other_task_ended(state: str, status: str) -> None:
    port = MemoryPort()
    port.ti_states = {"a": state}
    set_port(port)
    try:
        trigger = WorkflowTrigger(
            external_dag_id="o",
            external_task_ids=["a"],
            logical_dates=[utc(2024, 1, 1)],
            failed_states=["failed"],
            skipped_states=["skipped"],
        )
        assert first_event(trigger) == {"status": status}
    finally:
        set_port(None)


@pytest.mark.parametrize(
    ("mapper", "key", "keys"),
    [
        (IdentityMapper(), "k", "k"),
        (StartOfDayMapper(), "2024-03-15T10:20:30", "2024-03-15"),
        (ProductMapper(IdentityMapper(), StartOfDayMapper()), "us|2024-03-15T10:00:00", "us|2024-03-15"),
        (
            FanOutMapper(upstream_mapper=StartOfWeekMapper(), window=WeekWindow(direction=Window.Direction.BACKWARD)),
            "2024-03-13T00:00:00",
            [f"2024-03-{day:02d}" for day in range(5, 12)],
        ),
    ],
)
def test_partition_mappers_map_keys(mapper: Any, key: str, keys: Any) -> None:
    assert mapper.to_downstream(key) == keys


def test_a_key_that_is_not_allowed_is_named() -> None:
    with pytest.raises(ValueError, match="'mars'"):
        AllowedKeyMapper(["us", "eu"]).to_downstream("mars")


def hitl(kind: Any, **kwargs: Any) -> DAG:
    with DAG("d") as dag:
        ask = kind(task_id="ask", subject="{{ ds }}?", **kwargs)
        ask >> [Empty(task_id="a"), Empty(task_id="b")]
    return dag


def answer(dag: DAG, event: dict[str, Any], port: MemoryPort | None = None) -> dict[str, Any]:
    return attempt(dag, "ask", port, ti={"next_method": "execute_complete", "next_kwargs": {"event": event}})


def test_a_question_is_stored_and_waited_for() -> None:
    port = MemoryPort()
    outcome = attempt(hitl(HITLOperator, options=["x", "y"]), "ask", port)
    assert (port.state["hitl_question"]["subject"], port.state["hitl_question"]["options"]) == (
        "2024-03-15?",
        ["x", "y"],
    )
    assert outcome["defer"]["classpath"] == "airflow.providers.standard.triggers.hitl.HITLTrigger"
    port.state["hitl_response"] = {"chosen_options": ["x"]}
    set_port(port)
    try:
        assert first_event(HITLTrigger(scope={}, options=["x"])) == {"chosen_options": ["x"], "timedout": False}
    finally:
        set_port(None)


def test_answers_branch_approve_or_fail() -> None:
    branch = hitl(HITLBranchOperator, options=["one", "b"], options_mapping={"one": "a"})
    assert answer(branch, {"chosen_options": ["one"]})["skip"] == ["b"]
    assert answer(hitl(ApprovalOperator), {"chosen_options": ["Reject"]})["skip"] == ["a", "b"]
    assert answer(hitl(ApprovalOperator), {"chosen_options": ["Approve"]})["state"] == "success"
    late = answer(hitl(HITLOperator, options=["x"]), {"error": "late", "error_type": "timeout"})
    assert late["error"]["type"].endswith("HITLTimeoutError")
    assert "'z'" in answer(hitl(HITLOperator, options=["x"]), {"chosen_options": ["z"]})["error"]["message"]


@pytest.mark.parametrize(
    ("run_type", "now", "skipped"),
    [
        ("manual", "2030-01-01T00:00:00+00:00", None),
        ("scheduled", "2024-03-15T12:00:00+00:00", None),
        ("scheduled", "2024-03-17T00:00:00+00:00", ["child"]),
    ],
)
def test_latest_only_skips_its_children_in_old_scheduled_runs(run_type: str, now: str, skipped: Any) -> None:
    with DAG("d", schedule="@daily", start_date=utc(2024, 1, 1), end_date=utc(2024, 3, 15)) as dag:
        LatestOnlyOperator(task_id="latest") >> Empty(task_id="child")
    day = "2024-03-15T00:00:00+00:00"
    run = {"run_type": run_type, "data_interval_start": day, "data_interval_end": day}
    with time_machine.travel(now, tick=False):
        assert attempt(dag, "latest", logical_date=day, run=run).get("skip") == skipped


def test_an_asset_may_be_an_xcom() -> None:
    port = MemoryPort()
    with DAG("d") as dag:

        @task
        def give() -> Any:
            return [Asset(name="n", uri="conf://a", extra={"k": 1}), AssetAlias("x")]

        give()
    attempt(dag, "give", port)
    found, alias = port.xcoms["give", -1, "return_value"]
    assert (found, found.extra, alias) == (Asset(name="n", uri="conf://a"), {"k": 1}, AssetAlias("x"))


def test_a_watcher_is_described_with_its_trigger() -> None:
    from scheduler_app.sdk import AssetWatcher

    watched = Asset("x://a", watchers=[AssetWatcher(name="w", trigger=FileDeleteTrigger(filepath="/tmp/f"))])
    kwargs = {"filepath": "/tmp/f", "poke_interval": 5.0}
    trigger = {"classpath": "airflow.providers.standard.triggers.file.FileDeleteTrigger", "kwargs": kwargs}
    assert watched.to_doc()["watchers"] == [{"name": "w", "trigger": trigger}]


def test_a_partitioned_schedule_is_a_document_that_the_scheduler_can_read() -> None:
    day, ref = Asset("daily"), Asset.ref(name="hourly")
    rollup = RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow(), wait_policy=MinimumCount(-4))
    schedule = PartitionedAssetTimetable(assets=day & ref, partition_mapper_config={ref: rollup})
    timetable = from_doc(schedule.to_doc())
    hourly, daily = AssetKey("hourly", "x"), AssetKey("daily", "daily")
    assert timetable.keys_of(hourly, "2024-03-15T10:00:00") == ["2024-03-15"]
    hours = [f"2024-03-15T{hour:02d}:00:00" for hour in range(20)]
    received = {daily: ["2024-03-15"], hourly: hours}
    assert timetable.is_ready("2024-03-15", received, {})
    assert not timetable.is_ready("2024-03-15", {**received, hourly: hours[1:]}, {})


def test_a_mapper_of_ones_own_loads_with_a_warning() -> None:
    class Mine(PartitionMapper):
        def to_downstream(self, key: str) -> str:
            return key

    with pytest.warns(UserWarning, match="starts no run by itself"):
        document = PartitionedAssetTimetable(assets=Asset("a"), default_partition_mapper=Mine()).to_doc()
    assert (document["kind"], document["can_be_scheduled"]) == ("custom", False)


def test_a_cron_of_partitions_says_how_its_keys_are_written() -> None:
    schedule = CronPartitionTimetable("0 6 * * *", timezone="Europe/Berlin", key_format="%Y-%m-%d", run_offset=-1)
    timetable = from_doc(schedule.to_doc())
    assert timetable.partition_key(utc(2024, 3, 15, 5)) == "2024-03-14"
    moved = CronPartitionTimetable("0 6 * * *", run_offset=dt.timedelta(hours=1)).to_doc()
    assert from_doc(moved).partition_key(utc(2024, 3, 15, 6)) == "2024-03-15T07:00:00"
