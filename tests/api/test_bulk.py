"""Bulk requests: each action is all or nothing, and says what it did."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler_app.models import Audit, DagRun, Pool, Variable, transitions
from tests import rows
from tests.rows import T0, at


def test_pools_are_made_changed_and_deleted_by_one_request(http):
    def pool(name, slots):
        return {"name": name, "slots": slots}

    answer = http.patch(
        "pools",
        {
            "actions": [
                {"action": "create", "entities": [pool("a", 1), pool("b", 2)]},
                {"action": "update", "entities": [pool("a", 9)]},
                {"action": "delete", "entities": ["b"]},
            ]
        },
    )
    assert answer.json() == {
        "create": {"success": ["a", "b"], "errors": []},
        "update": {"success": ["a"], "errors": []},
        "delete": {"success": ["b"], "errors": []},
    }
    assert dict(Pool.objects.values_list("pool", "slots")) == {"default_pool": 128, "a": 9}


def test_an_action_that_fails_changes_nothing_and_the_others_are_done(http):
    http.post("variables", {"key": "old", "value": "1"})
    answer = http.patch(
        "variables",
        {
            "actions": [
                {"action": "create", "entities": [{"key": "new", "value": "1"}, {"key": "old", "value": "2"}]},
                {"action": "create", "entities": [{"key": "other", "value": "1"}]},
                {"action": "delete", "entities": ["gone", "old"]},
            ]
        },
    ).json()
    assert answer["create"]["success"] == ["other"]
    assert [error["status_code"] for error in answer["create"]["errors"]] == [409]
    assert [error["status_code"] for error in answer["delete"]["errors"]] == [404]
    assert sorted(Variable.objects.values_list("key", flat=True)) == ["old", "other"]


def test_what_exists_is_skipped_or_overwritten_as_asked(http):
    http.post("variables", {"key": "old", "value": "1"})
    entities = [{"key": "old", "value": "2"}, {"key": "new", "value": "2"}]
    skip = {"action": "create", "entities": entities, "action_on_existence": "skip"}
    assert http.patch("variables", {"actions": [skip]}).json()["create"]["success"] == ["new"]
    assert http.get("variables/old").json()["value"] == "1"
    http.patch("variables", {"actions": [{**skip, "action_on_existence": "overwrite"}]})
    assert http.get("variables/old").json()["value"] == "2"


def test_connections_keep_what_the_mask_leaves_out(http):
    http.post("connections", {"connection_id": "pg", "conn_type": "postgres", "host": "a", "login": "x"})
    entity = {"connection_id": "pg", "conn_type": "http", "host": "b", "login": "y"}
    http.patch("connections", {"actions": [{"action": "update", "entities": [entity], "update_mask": ["host"]}]})
    found = http.get("connections/pg").json()
    assert (found["conn_type"], found["host"], found["login"]) == ("postgres", "b", "x")


def test_a_bulk_request_that_the_role_forbids_in_part_changes_nothing(as_role):
    operator = as_role("User")
    body = {"actions": [{"action": "create", "entities": [{"name": "a", "slots": 1}]}]}
    assert operator.patch("pools", body).status_code == 403
    assert Pool.objects.count() == 1


def test_many_runs_are_marked_and_deleted(http, etl):
    rows.trigger(etl, 3)
    body = {
        "actions": [
            {"action": "update", "entities": [{"dag_run_id": "run0", "state": "failed", "note": "no"}]},
            {"action": "delete", "entities": ["run1", {"dag_run_id": "run2"}]},
        ]
    }
    answer = http.patch("dags/etl/dagRuns", body).json()
    assert answer["update"]["success"] == ["etl.run0"]
    assert answer["delete"]["success"] == ["etl.run1", "etl.run2"]
    assert list(DagRun.objects.values_list("run_id", "state", "note")) == [("run0", "failed", "no")]


def test_many_task_instances_are_marked_and_deleted(http, etl, run):
    body = {
        "actions": [
            {"action": "update", "entities": [{"task_id": "extract", "new_state": "success"}]},
            {"action": "delete", "entities": ["load"]},
        ]
    }
    answer = http.patch("dags/etl/dagRuns/run0/taskInstances", body).json()
    assert answer["update"]["success"] == ["etl.run0.extract[-1]"]
    assert rows.states(run) == {"check": None, "clean": None, "extract": "success"}
    assert set(Audit.objects.values_list("event", flat=True)) == {"patch_task_instance", "delete_task_instance"}


def test_a_task_instance_with_a_process_is_not_deleted(http, etl, run):
    key = run.task_instances.get(task_id="extract").pk
    for verb in ("schedule", "queue", "start"):
        transitions.tasks(verb, [key], T0)
    path = "dags/etl/dagRuns/run0/taskInstances/extract"
    assert http.delete(path).status_code == 409
    transitions.tasks("succeed", [key], T0)
    assert http.delete(path).status_code == 200
    assert "extract" not in rows.states(run)


def test_several_runs_are_cleared_after_a_preview(http, etl):
    for run in rows.trigger(etl, 2):
        transitions.runs("start", [run.pk], T0)
        transitions.runs("fail", [run.pk], T0)
    body = {"dag_runs": [{"dag_run_id": "run0"}, {"dag_run_id": "run1"}]}
    assert http.post("dags/etl/clearDagRuns", body).json()["total_entries"] == 8
    done = http.post("dags/etl/clearDagRuns", {**body, "dry_run": False}).json()
    assert [run["state"] for run in done["dag_runs"]] == ["queued", "queued"]
    assert http.post("dags/etl/clearDagRuns", {}).status_code == 400


def test_an_asset_is_made_by_a_run_of_its_dag(http, etl):
    from scheduler_app.models import Asset, AssetUse

    asset = Asset.objects.create(name="lake", uri="s3://lake", created_at=T0, updated_at=T0)
    assert http.post(f"assets/{asset.pk}/materialize", {}).status_code == 404
    AssetUse.objects.create(dag=etl, asset=asset, kind="outlet", task_id="load", created_at=T0)
    made = http.post(f"assets/{asset.pk}/materialize", {"conf": {"n": 2}}).json()
    assert (made["dag_id"], made["run_type"], made["conf"]) == ("etl", "asset_materialization", {"n": 2})
    assert made["dag_run_id"].startswith("asset_materialization__")


def test_many_runs_are_cleared_by_the_statements_of_one(http, etl):
    rows.trigger(etl, 12)
    keys = list(DagRun.objects.values_list("pk", flat=True))
    transitions.runs("start", keys, at(1))
    transitions.runs("fail", keys, at(2))

    def cost(run_ids):
        body = {"dag_runs": [{"dag_run_id": run_id} for run_id in run_ids], "dry_run": False, "note": "again"}
        with CaptureQueriesContext(connection) as caught:
            answer = http.post("dags/etl/clearDagRuns", body)
        assert answer.json()["total_entries"] == len(run_ids)
        return len(caught)

    few, many = cost(["run0", "run1"]), cost([f"run{n}" for n in range(2, 12)])
    assert many == few
    assert set(DagRun.objects.values_list("state", "note")) == {("queued", "again")}
    assert Audit.objects.filter(event="clear_dag_run").count() == 12


@pytest.mark.parametrize(
    "entity",
    [{"state": "failed"}, {"state": "queued"}, {"note": "seen"}, {"state": "success", "note": "seen"}],
    ids=["fail", "queue", "note", "both"],
)
def test_many_runs_are_changed_by_the_statements_of_one(http, etl, entity):
    rows.trigger(etl, 12)
    transitions.runs("start", list(DagRun.objects.values_list("pk", flat=True)), at(1))

    def cost(numbers):
        entities = [{"dag_run_id": f"run{n}", **entity} for n in numbers]
        with CaptureQueriesContext(connection) as caught:
            answer = http.patch("dags/etl/dagRuns", {"actions": [{"action": "update", "entities": entities}]})
        assert answer.json()["update"]["success"] == [f"etl.run{n}" for n in numbers]
        return len(caught)

    cost(range(1))  # reads the graph, once for all
    few, many = cost(range(1, 2)), cost(range(2, 12))
    assert many == few
    state, note = entity.get("state", "running"), entity.get("note")
    assert set(DagRun.objects.values_list("state", "note")) == {(state, note)}
    assert Audit.objects.filter(event="patch_dag_run").count() == 12 * len(entity)


def test_many_runs_are_deleted_by_the_statements_of_one(http, etl):
    rows.trigger(etl, 12)

    def cost(numbers):
        names = [f"run{n}" for n in numbers]
        with CaptureQueriesContext(connection) as caught:
            http.patch("dags/etl/dagRuns", {"actions": [{"action": "delete", "entities": names}]})
        return len(caught)

    cost(range(1))
    assert cost(range(1, 2)) == cost(range(2, 12))
    assert DagRun.objects.count() == 0
    assert Audit.objects.filter(event="delete_dag_run").count() == 12


def test_a_run_that_is_named_twice_gets_its_changes_in_turn(http, etl):
    rows.trigger(etl, 2)
    entities = [{"dag_run_id": "run0", "state": state} for state in ("failed", "queued", "success")]
    http.patch("dags/etl/dagRuns", {"actions": [{"action": "update", "entities": entities}]})
    assert DagRun.objects.get(run_id="run0").state == "success"
    assert [row.after["state"] for row in Audit.objects.order_by("pk")] == ["failed", "queued", "success"]
    assert DagRun.objects.get(run_id="run1").state == "queued"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "dags/etl/clearTaskInstances", {"only_failed": False, "dry_run": True}),
        ("POST", "dags/etl/clearTaskInstances", {"only_failed": False, "dry_run": False}),
        ("POST", "dags/etl/clearDagRuns", {"dag_runs": [{"dag_run_id": "run0"}], "dry_run": False}),
        ("POST", "dags/etl/dagRuns/run0/clear", {"dry_run": False}),
        (
            "PATCH",
            "dags/etl/dagRuns/run0/taskInstances/extract",
            {"new_state": "failed", "include_downstream": True, "note": "x"},
        ),
    ],
)
def test_an_action_on_more_task_instances_than_one_may_be_about_changes_nothing(
    http, etl, run, settings, method, path, body
):
    settings.SCHEDULER = {**settings.SCHEDULER, "action_task_instances": 3}
    answer = http(method, path, body)
    assert answer.status_code == 400
    assert "more than 3 task instances" in answer.json()["detail"]
    assert "action_task_instances" in answer.json()["detail"]
    assert Audit.objects.count() == 0
    settings.SCHEDULER = {**settings.SCHEDULER, "action_task_instances": 4}
    assert http(method, path, body).status_code == 200
