"""What a running task may ask, answered from the rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from scheduler_app import access
from scheduler_app.actions import connections
from scheduler_app.engine.dag import Group
from scheduler_app.models import (
    Asset,
    AssetState,
    DagModel,
    DagRun,
    TaskInstance,
    TaskState,
    Variable,
    XCom,
    db,
    transitions,
)
from scheduler_app.runner import answers, claims
from scheduler_app.runner.buffers import Buffer
from tests import rows
from tests.rows import T0
from tests.shapes import shape

pytestmark = pytest.mark.django_db
KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
ME = access.system("command", "test")


@pytest.fixture(autouse=True)
def _keys(settings: Any) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "fernet_keys": (KEY,)}


class Desk:
    """A running task of the run "run1" of a DAG that has run before, and its requests."""

    def __init__(self) -> None:
        rows.default_pool()
        root = Group(None, children=({"task": "a"}, {"group": "g"}))
        inner = Group("g", parent=None, children=({"task": "g.b"}, {"task": "g.c"}))
        self.dag: DagModel = rows.store(shape("a >> [g.b, g.c]", groups=(root, inner)), fileloc="/d/f.py")
        (self.before,) = rows.trigger(self.dag, prefix="before", logical_date=T0 - timedelta(days=1))
        (self.run,) = rows.trigger(self.dag, logical_date=T0)
        ti = TaskInstance.objects.get(dag_run=self.run, task_id="a")
        now = db.clock()
        transitions.tasks("schedule", [ti.pk], now)
        transitions.tasks("queue", [ti.pk], now)
        (self.claim,) = claims.claim([ti.pk], [1], now, claims.Worker(1, "here", "me"))
        self.buffer = Buffer()

    def ask(self, op: str, **arguments: Any) -> Any:
        request = {"id": 1, "op": op, **arguments}
        return answers.answer(self.claim, self.buffer, request, db.clock())

    def xcom(self, run: DagRun, task_id: str, key: str, value: Any, map_index: int = -1) -> None:
        XCom.objects.create(
            dag_run=run, dag_id="dag", task_id=task_id, key=key, value=value, map_index=map_index, timestamp=T0
        )


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_variable_is_read_written_and_deleted(desk: Desk) -> None:
    assert desk.ask("get_variable", key="v") is None
    desk.ask("set_variable", key="v", value="one", description="why")
    desk.ask("set_variable", key="v", value="two", description=None)
    assert desk.ask("get_variable", key="v") == {"value": "two"}
    assert Variable.objects.get(key="v").description == "why"
    desk.ask("delete_variable", key="v")
    desk.ask("delete_variable", key="v")
    assert desk.ask("get_variable", key="v") is None


def test_a_connection_comes_with_its_secrets_in_the_clear(desk: Desk) -> None:
    connections.create(
        ME, "c", T0, conn_type="postgres", host="h", login="u", password="p", port=5, schema="s", extra='{"a": 1}'
    )
    assert desk.ask("get_connection", conn_id="c") == {
        "conn_id": "c",
        "conn_type": "postgres",
        "description": None,
        "host": "h",
        "schema": "s",
        "login": "u",
        "password": "p",
        "port": 5,
        "extra": '{"a": 1}',
    }
    assert desk.ask("get_connection", conn_id="none") is None


def get_xcom(desk: Desk, task_id: str, **more: Any) -> Any:
    arguments = {"dag_id": "dag", "run_id": "run0", "map_index": -1, "key": "k", "include_prior_dates": False}
    return desk.ask("get_xcom", task_id=task_id, **{**arguments, **more})


def test_an_xcom_of_this_run_or_of_an_earlier_one(desk: Desk) -> None:
    desk.xcom(desk.before, "g.b", "k", "old")
    assert get_xcom(desk, "g.b") == {"found": False, "value": None}
    assert get_xcom(desk, "g.b", include_prior_dates=True) == {"found": True, "value": "old"}
    desk.xcom(desk.run, "g.b", "k", None)
    assert get_xcom(desk, "g.b") == {"found": True, "value": None}
    assert get_xcom(desk, "g.b", include_prior_dates=True) == {"found": True, "value": None}


def test_what_the_attempt_itself_pushed_is_seen_before_it_is_written(desk: Desk) -> None:
    desk.xcom(desk.run, "a", "k", "stored")
    desk.buffer.push("k", "newer", None)
    assert get_xcom(desk, "a") == {"found": True, "value": "newer"}
    desk.buffer.delete("k")
    assert get_xcom(desk, "a") == {"found": False, "value": None}


def test_the_values_of_a_mapped_task_in_order(desk: Desk) -> None:
    for index in (2, 0, 1):
        desk.xcom(desk.run, "g.b", "k", index * 10, map_index=index)
    arguments = {"dag_id": "dag", "run_id": "run0", "task_id": "g.b", "key": "k"}
    assert desk.ask("get_xcoms", **arguments, map_indexes=None) == [[0, 0], [1, 10], [2, 20]]
    assert desk.ask("get_xcoms", **arguments, map_indexes=[2, 0]) == [[0, 0], [2, 20]]


def counted(desk: Desk, op: str, **filters: Any) -> Any:
    names = ("task_ids", "task_group_id", "logical_dates", "run_ids", "states", "map_index")
    return desk.ask(op, **{"dag_id": "dag", **dict.fromkeys(names), **filters})


def test_counts_of_runs_and_task_instances(desk: Desk) -> None:
    assert counted(desk, "get_dr_count", states=["queued"]) == 2
    assert counted(desk, "get_dr_count", logical_dates=[T0.isoformat()]) == 1
    assert counted(desk, "get_ti_count") == 6
    assert counted(desk, "get_ti_count", run_ids=["run0"], states=["running"]) == 1
    assert counted(desk, "get_ti_count", run_ids=["run0"], states=["running", None]) == 3
    assert counted(desk, "get_ti_count", task_group_id="g") == 4
    with pytest.raises(answers.Refusal, match="has no task group 'nope'"):
        counted(desk, "get_ti_count", task_group_id="nope")


def test_states_of_tasks_by_run(desk: Desk) -> None:
    assert counted(desk, "get_task_states", logical_dates=[T0.isoformat()]) == {
        "run0": {"a": "running", "g.b": None, "g.c": None}
    }


def test_the_run_before_this_one(desk: Desk) -> None:
    found = desk.ask("get_previous_run", dag_id="dag", logical_date=T0.isoformat(), state=None)
    assert (found["run_id"], found["state"]) == ("before0", "queued")
    assert desk.ask("get_previous_run", dag_id="dag", logical_date=T0.isoformat(), state="success") is None


def test_the_same_task_before(desk: Desk) -> None:
    arguments = {"dag_id": "dag", "task_id": "a", "logical_date": T0.isoformat(), "map_index": -1}
    assert desk.ask("get_previous_ti", **arguments, state=None)["run_id"] == "before0"
    assert desk.ask("get_previous_ti", **arguments, state="success") is None


def trigger(desk: Desk, **more: Any) -> Any:
    arguments = {"run_id": "child", "logical_date": None, "run_after": None, "conf": {}, "note": None, "reset": False}
    return desk.ask("trigger_dag_run", **{"dag_id": "dag", **arguments, **more})


def test_a_task_triggers_a_run_once_and_may_reset_it(desk: Desk) -> None:
    assert trigger(desk, conf={"a": 1}) == {"run_id": "child", "created": True}
    run = DagRun.objects.get(run_id="child")
    assert (run.state, run.conf, run.triggered_by) == ("queued", {"a": 1}, "operator")
    with pytest.raises(answers.Refusal) as caught:
        trigger(desk)
    assert caught.value.kind == "DagRunAlreadyExists"
    assert trigger(desk, reset=True) == {"run_id": "child", "created": False}
    assert desk.ask("get_dag_run_state", dag_id="dag", run_id="child") == "queued"


def test_a_run_that_cannot_be_triggered_says_why(desk: Desk) -> None:
    with pytest.raises(answers.Refusal) as caught:
        trigger(desk, dag_id="nope")
    assert caught.value.kind == "DagNotFound"
    with pytest.raises(answers.Refusal) as caught:
        trigger(desk, run_id="a/b")
    assert caught.value.kind == "ParamValidation"


def test_a_dag_document(desk: Desk) -> None:
    assert desk.ask("get_dag_document", dag_id="dag")["dag_id"] == "dag"
    assert desk.ask("get_dag_document", dag_id="nope") is None


def test_an_unknown_request_is_refused(desk: Desk) -> None:
    with pytest.raises(answers.Refusal, match="does not know the request 'make_coffee'"):
        desk.ask("make_coffee")


@override_settings()
def test_assets_and_their_events(desk: Desk) -> None:
    from scheduler_app.models import Asset, AssetEvent

    asset = Asset.objects.create(name="orders", uri="s3://o", created_at=T0, updated_at=T0)
    for n in range(3):
        AssetEvent.objects.create(asset=asset, extra={"n": n}, timestamp=T0 + timedelta(hours=n), source_aliases=["al"])
    assert desk.ask("get_asset", name="orders")["uri"] == "s3://o"
    assert desk.ask("get_asset", uri="s3://none") is None
    events = desk.ask("get_asset_events", name="orders", after=(T0 + timedelta(hours=1)).isoformat())
    assert [event["extra"]["n"] for event in events] == [1, 2]
    newest = desk.ask("get_asset_alias_events", alias_name="al", ascending=False, limit=1)
    assert [event["extra"]["n"] for event in newest] == [2]


def scope_of(claim: claims.Claim, **other: Any) -> dict[str, Any]:
    own = {"dag_id": claim.dag_id, "run_id": claim.run_id, "task_id": claim.task_id, "map_index": claim.map_index}
    return {"task": {**own, **other}}


def test_a_task_keeps_values_across_its_tries(desk: Desk) -> None:
    scope = scope_of(desk.claim)
    assert desk.ask("get_state", scope=scope, key="job") is None
    desk.ask("set_state", scope=scope, key="job", value={"id": 7}, expires_after="never")
    desk.ask("set_state", scope=scope, key="job", value={"id": 8}, expires_after=None)
    desk.ask("set_state", scope=scope, key="at", value="noon", expires_after=None)
    assert desk.ask("get_state", scope=scope, key="job") == {"value": {"id": 8}}
    desk.ask("delete_state", scope=scope, key="job")
    assert (desk.ask("get_state", scope=scope, key="job"), TaskState.objects.count()) == (None, 1)
    desk.ask("delete_state", scope=scope, key=None)
    assert TaskState.objects.count() == 0


def test_a_value_is_kept_for_its_time(desk: Desk) -> None:
    scope = scope_of(desk.claim)
    for key, after in (("short", 60.0), ("usual", None), ("ever", "never")):
        desk.ask("set_state", scope=scope, key=key, value=1, expires_after=after)
    kept = {row.key: row.expires_at and row.expires_at - row.updated_at for row in TaskState.objects.all()}
    assert kept == {"short": timedelta(seconds=60), "usual": timedelta(days=30), "ever": None}
    TaskState.objects.filter(key="short").update(expires_at=db.clock())
    assert desk.ask("get_state", scope=scope, key="short") is None
    assert TaskState.objects.delete_expired(db.clock(), 10) == 1


def test_a_task_writes_neither_another_ones_state_nor_its_own_once_it_moved_on(desk: Desk) -> None:
    with pytest.raises(answers.Refusal, match="its own state only"):
        desk.ask("set_state", scope=scope_of(desk.claim, task_id="g.b"), key="k", value=1, expires_after=None)
    transitions.tasks("mark_failed", [desk.claim.ti_id], db.clock())
    with pytest.raises(answers.Refusal, match="no longer that of its task"):
        desk.ask("set_state", scope=scope_of(desk.claim), key="k", value=1, expires_after=None)
    assert TaskState.objects.count() == 0


def test_an_asset_keeps_values_across_runs(desk: Desk) -> None:
    Asset.objects.create(name="orders", uri="s3://orders", created_at=T0, updated_at=T0)
    scope = {"asset": {"name": "orders", "uri": "s3://orders"}}
    assert desk.ask("get_state", scope=scope, key="mark") is None
    desk.ask("set_state", scope=scope, key="mark", value=3, expires_after=None)
    assert desk.ask("get_state", scope=scope, key="mark") == {"value": 3}
    assert AssetState.objects.get().updated_by["task_id"] == "a"
    desk.ask("delete_state", scope=scope, key="mark")
    assert AssetState.objects.count() == 0
    with pytest.raises(answers.Refusal, match="There is no asset 'nope'"):
        desk.ask("get_state", scope={"asset": {"name": "nope", "uri": ""}}, key="mark")
