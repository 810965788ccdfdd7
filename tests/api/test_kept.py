"""What is kept beside runs: favourites of people, state of tasks and assets, partitions of runs."""

from __future__ import annotations

from datetime import timedelta

import airflow_client.client as airflow
import pytest
from airflow_client.client.exceptions import ApiException

from scheduler_app.models import Asset, AssetState, Audit, DagRun, TaskInstance, TaskState
from scheduler_app.models.state_store import QUESTION_KEY
from tests import rows
from tests.rows import T0
from tests.shapes import shape

STORE = "dags/etl/dagRuns/run0/taskInstances/load/state-store"


def events() -> list[str]:
    return list(Audit.objects.order_by("id").values_list("event", flat=True))


def test_a_favourite_is_one_persons_and_may_be_wished_for_twice(client, etl, as_role):
    api = airflow.DAGApi(client)
    rows.store(shape("a", "other"))
    for _ in range(2):
        api.favorite_dag("etl")
    assert [dag.dag_id for dag in api.get_dags(is_favorite=True).dags] == ["etl"]
    assert [dag.dag_id for dag in api.get_dags(is_favorite=False).dags] == ["other"]
    assert api.get_dag_details("etl").is_favorite is True
    stranger = as_role("Viewer")
    assert stranger.get("dags?is_favorite=true").json()["total_entries"] == 0
    assert stranger.get("dags/etl/details").json()["is_favorite"] is False
    api.unfavorite_dag("etl")
    with pytest.raises(ApiException) as caught:
        api.unfavorite_dag("etl")
    assert caught.value.status == 409
    assert events() == ["favorite_dag", "unfavorite_dag"]


def test_a_value_of_a_task_is_set_read_changed_and_deleted(http, run):
    assert http.get(f"{STORE}/a/b").status_code == 404
    assert http("PUT", f"{STORE}/a/b", {"value": {"n": 1}, "expires_at": None}).status_code == 204
    assert http("PUT", f"{STORE}/c", {"value": "x"}).status_code == 204
    assert http.patch(f"{STORE}/a/b", {"value": [2]}).status_code == 200
    listed = http.get(STORE).json()
    assert [(one["key"], one["value"]) for one in listed["task_state_store"]] == [("a/b", [2]), ("c", "x")]
    assert http.get(f"{STORE}/a/b").json()["expires_at"] is None
    kept = TaskState.objects.get(key="c")
    assert kept.expires_at - kept.updated_at == timedelta(days=30)
    assert http.delete(f"{STORE}/a/b").status_code == 204
    assert http.delete(f"{STORE}/a/b").status_code == 204
    assert http.delete(STORE).status_code == 204
    assert not TaskState.objects.exists()
    assert events() == [
        "set_task_state_store",
        "set_task_state_store",
        "patch_task_state_store",
        "delete_task_state_store",
        "delete_task_state_store",
    ]


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("PATCH", f"{STORE}/nope", {"value": 1}, 404),
        ("PUT", f"{STORE}/k", {"value": None}, 422),
        ("PUT", f"{STORE}/k", {}, 422),
        ("PUT", f"{STORE}/k", {"value": 1, "expires_at": "soon"}, 422),
        ("PUT", f"{STORE}/{'k' * 513}", {"value": 1}, 422),
        ("PUT", f"{STORE}/{QUESTION_KEY}", {"value": 1}, 400),
        ("DELETE", f"{STORE}/{QUESTION_KEY}", None, 400),
        ("PUT", f"{STORE}/k?map_index=4", {"value": 1}, 404),
        ("GET", f"{STORE}?map_index=-2", None, 422),
        ("GET", STORE.replace("load", "nope"), None, 404),
        ("DELETE", STORE.replace("load", "nope") + "?all_map_indices=true", None, 404),
    ],
)
def test_a_state_that_cannot_be_is_refused(http, run, method, path, body, code):
    assert http(method, path, body).status_code == code
    assert not TaskState.objects.exists()


def test_a_question_to_a_person_is_no_state_and_an_expired_value_is_gone(http, run):
    own = {"dag_run": run, "dag_id": "etl", "task_id": "load", "updated_at": T0}
    TaskState.objects.create(**own, key=QUESTION_KEY, value={"subject": "?"})
    TaskState.objects.create(**own, key="old", value=1, expires_at=T0)
    assert http.get(STORE).json() == {"task_state_store": [], "total_entries": 0}
    http.delete(STORE)
    http.delete(f"{STORE}?all_map_indices=true")
    assert [row.key for row in TaskState.objects.all()] == [QUESTION_KEY]


def test_a_value_of_an_asset_says_who_wrote_it_last(http):
    asset = Asset.objects.create(name="lake", uri="s3://lake", created_at=T0, updated_at=T0)
    by = {"dag_id": "etl", "run_id": "run0", "task_id": "load", "map_index": -1}
    AssetState.objects.create(asset=asset, key="mark", value=1, updated_at=T0, updated_by=by)
    store = f"assets/{asset.pk}/state-store"
    assert http.get(f"{store}/mark").json()["last_updated_by"] == {"kind": "task", **by}
    assert http("PUT", f"{store}/mark", {"value": 2}).status_code == 204
    written = http.get(store).json()["asset_state_store"][0]
    assert (written["value"], written["last_updated_by"]["kind"], written["last_updated_by"]["dag_id"]) == (
        2,
        "api",
        None,
    )
    assert http.delete(store).status_code == 204
    assert http.get(f"{store}/mark").status_code == 404
    assert http("PUT", "assets/999/state-store/x", {"value": 2}).status_code == 404


def test_runs_leave_their_partition_after_a_count_of_what_would(client, etl):
    api = airflow.DagRunApi(client)
    first, second = rows.trigger(etl, 2, partition_key="2026-03-01")
    other = rows.trigger(etl, 1, prefix="other", partition_key="2026-03-02")[0]
    body = {"partition_key": "2026-03-01", "clear_task_instances": True}
    counted = api.clear_dag_run_partitions("etl", airflow.ClearPartitionsBody(**body))
    assert (counted.dag_runs_cleared, counted.task_instances_cleared, counted.dry_run) == (2, 8, True)
    assert DagRun.objects.filter(partition_key="2026-03-01").count() == 2
    done = api.clear_dag_run_partitions("etl", airflow.ClearPartitionsBody(**body, dry_run=False))
    assert (done.dag_runs_cleared, done.task_instances_cleared, done.dry_run) == (2, 8, False)
    assert list(DagRun.objects.order_by("pk").values_list("partition_key", flat=True)) == [None, None, "2026-03-02"]
    assert TaskInstance.objects.filter(dag_run__in=[first, second]).count() == 8
    again = api.clear_dag_run_partitions("etl", airflow.ClearPartitionsBody(run_id=other.run_id, dry_run=False))
    assert (again.dag_runs_cleared, again.task_instances_cleared) == (1, 0)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, 422),
        ({"run_id": "run0", "partition_key": "p"}, 422),
        ({"partition_date_start": "2026-03-01T00:00:00Z"}, 400),
    ],
)
def test_what_names_no_runs_changes_none(http, run, body, code):
    DagRun.objects.update(partition_key="p")
    assert http.post("dags/etl/clearPartitions", {**body, "dry_run": False}).status_code == code
    assert http.post("dags/nope/clearPartitions", {"run_id": "x"}).status_code == 404
    assert DagRun.objects.filter(partition_key="p").count() == 1
