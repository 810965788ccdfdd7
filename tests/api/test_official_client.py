"""What a user's script does with apache-airflow-client; each answer is read by the client's own models."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import airflow_client.client as airflow
import pytest
from airflow_client.client.exceptions import ApiException

from scheduler_app import attempt_log
from scheduler_app.conf import conf
from scheduler_app.models import AssetEvent, Audit, DagModel, DagRun, Job, TaskInstance, Wake, XCom, transitions
from tests import rows
from tests.rows import T0, at
from tests.shapes import shape

DAY = datetime(2024, 3, 15, 10, 20, 30, 456000, tzinfo=UTC)


def status(call) -> int:
    with pytest.raises(ApiException) as caught:
        call()
    return caught.value.status


def finish(run: DagRun, **states: str) -> None:
    """Runs the tasks named to an end, one after the other."""
    for task_id, state in states.items():
        ids = list(TaskInstance.objects.filter(dag_run=run, task_id=task_id).values_list("pk", flat=True))
        if state == "upstream_failed":
            transitions.tasks("upstream_fail", ids, at(5))
            continue
        for verb in ("schedule", "queue", "start"):
            transitions.tasks(verb, ids, at(5))
        if state != "running":
            transitions.tasks({"success": "succeed", "failed": "fail", "skipped": "skip"}[state], ids, at(9))


def test_a_dag_is_listed_with_its_tags_and_owners_and_found_by_each_filter(client, etl):
    api = airflow.DAGApi(client)
    page = api.get_dags()
    assert page.total_entries == 1
    dag = page.dags[0]
    assert (dag.dag_id, dag.dag_display_name, dag.owners) == ("etl", "E, T and L", ["ann", "bob"])
    assert [tag.name for tag in dag.tags] == ["nightly"]
    for wanted in (
        {"tags": ["nightly", "other"]},
        {"owners": ["ann"]},
        {"dag_id_pattern": "T"},
        {"dag_id_prefix_pattern": "et"},
        {"paused": False},
        {"has_import_errors": False},
        {"tags": ["nightly"], "tags_match_mode": "all"},
        {"order_by": ["-last_run_start_date", "dag_id"]},
    ):
        assert api.get_dags(**wanted).total_entries == 1, wanted
    for wanted in (
        {"tags": ["nightly", "other"], "tags_match_mode": "all"},
        {"owners": ["eve"]},
        {"dag_id_pattern": "x%l"},
        {"paused": True},
        {"last_dag_run_state": airflow.DagRunState.FAILED},
        {"is_favorite": True},
        {"has_asset_schedule": True},
    ):
        assert api.get_dags(**wanted).total_entries == 0, wanted


def test_details_show_what_the_file_says(client, etl):
    found = airflow.DAGApi(client).get_dag_details("etl")
    assert found.dag_run_timeout == "PT2H"
    assert found.params["n"]["value"] == 1
    assert found.concurrency == 16
    assert found.latest_dag_version.version_number == 1


def test_pausing_and_unpausing_is_audited_and_wakes_the_runs_that_waited(client, etl, run):
    api = airflow.DAGApi(client)
    Wake.objects.all().delete()
    assert api.patch_dag("etl", airflow.DAGPatchBody(is_paused=True)).is_paused is True
    assert Wake.objects.count() == 0
    assert api.patch_dag("etl", airflow.DAGPatchBody(is_paused=False)).is_paused is False
    assert list(Wake.objects.values_list("dag_run_id", "reason")) == [(run.pk, "dag_unpaused")]
    logged = list(Audit.objects.order_by("id").values_list("event", "owner", "before", "after"))
    assert logged == [
        ("patch_dag", "ada", {"is_paused": False}, {"is_paused": True}),
        ("patch_dag", "ada", {"is_paused": True}, {"is_paused": False}),
    ]


def test_many_dags_are_paused_by_one_request(client, etl):
    answer = airflow.DAGApi(client).patch_dags(airflow.DAGPatchBody(is_paused=True), dag_id_pattern="~")
    assert [dag.is_paused for dag in answer.dags] == [True]


def test_a_run_is_triggered_with_conf_and_read_back(client, etl):
    api = airflow.DagRunApi(client)
    body = airflow.TriggerDAGRunPostBody(dag_run_id="mine", logical_date=DAY, conf={"n": 3}, note="by hand")
    made = api.trigger_dag_run("etl", body)
    assert (made.dag_run_id, made.state.value, made.run_type.value) == ("mine", "queued", "manual")
    assert made.logical_date == made.data_interval_start == made.data_interval_end == DAY
    assert (made.conf, made.note, made.triggering_user_name) == ({"n": 3}, "by hand", "ada")
    assert made.triggered_by.value == "rest_api"
    assert api.get_dag_run("etl", "mine").dag_versions[0].version_number == 1
    assert TaskInstance.objects.filter(dag_run__run_id="mine").count() == 4


def test_an_id_is_made_up_from_the_logical_date(client, etl):
    body = airflow.TriggerDAGRunPostBody(logical_date=DAY)
    assert airflow.DagRunApi(client).trigger_dag_run("etl", body).dag_run_id == f"manual__{DAY.isoformat()}"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"dag_run_id": "run0", "logical_date": None}, 409),
        ({"dag_run_id": "new", "logical_date": "2024-03-15T10:20:30.456Z"}, 409),
        ({"dag_run_id": "null-1", "logical_date": None}, 200),
        ({"dag_run_id": "a/b", "logical_date": None}, 400),
        ({"dag_run_id": "x" * 251, "logical_date": None}, 422),
        ({"dag_run_id": "", "logical_date": None}, 200),
        ({"dag_run_id": "naive", "logical_date": "2024-06-01T00:00:00"}, 422),
        ({"dag_run_id": "scheduled__2026-03-02T00:00:00+00:00", "logical_date": None}, 400),
        ({"dag_run_id": "no-date"}, 422),
        ({"dag_run_id": "more", "logical_date": None, "bogus": 1}, 422),
        ({"logical_date": None, "conf": {"n": 10}}, 400),
        ({"logical_date": None, "conf": {"n": "one"}}, 400),
        ({"logical_date": None, "conf": [1]}, 422),
        ({"logical_date": None, "conf": {"other": 1}}, 200),
        ({"logical_date": "soon"}, 422),
        ({"logical_date": None, "data_interval_start": "2024-01-01T00:00:00Z"}, 422),
        ({"logical_date": None, "note": "n" * 1001}, 422),
        ({"logical_date": None, "conf": {"a": "\x00"}}, 422),
    ],
)
def test_what_cannot_be_triggered_is_refused_as_airflow_does(http, etl, run, body, code):
    DagRun.objects.filter(pk=run.pk).update(logical_date=DAY)
    before = DagRun.objects.count()
    answer = http.post("dags/etl/dagRuns", body)
    assert answer.status_code == code, answer.content
    assert DagRun.objects.count() - before == (code == 200)
    assert "detail" in answer.json() or code == 200


def test_runs_without_a_logical_date_may_be_many(client, etl):
    api = airflow.DagRunApi(client)
    made = {api.trigger_dag_run("etl", airflow.TriggerDAGRunPostBody(logical_date=None)).dag_run_id for _ in range(3)}
    assert len(made) == 3


def test_runs_are_listed_across_dags_filtered_and_in_a_stable_order(client, etl):
    rows.trigger(etl, 5)
    api = airflow.DagRunApi(client)
    assert [run.dag_run_id for run in api.get_dag_runs("~", order_by=["-run_after"], limit=2).dag_runs] == [
        "run4",
        "run3",
    ]
    assert [run.dag_run_id for run in api.get_dag_runs("etl", order_by=["state"], offset=3).dag_runs] == [
        "run3",
        "run4",
    ]
    assert api.get_dag_runs("etl", state=["success"]).total_entries == 0
    assert api.get_dag_runs("etl", run_type=["manual"], run_id_pattern="n3").total_entries == 1
    assert api.get_dag_runs("~", run_after_lt=at(-3)).total_entries == 2
    batch = api.get_list_dag_runs_batch("~", airflow.DAGRunsBatchBody(dag_ids=["etl"], states=["queued"], page_limit=2))
    assert (len(batch.dag_runs), batch.total_entries) == (2, 5)


def test_a_cursor_walks_all_runs_both_ways(client, etl):
    rows.trigger(etl, 5)
    api = airflow.DagRunApi(client)
    first = api.get_dag_runs("etl", cursor="", limit=2, order_by=["-run_after"])
    second = api.get_dag_runs("etl", cursor=first.next_cursor, limit=2, order_by=["-run_after"])
    third = api.get_dag_runs("etl", cursor=second.next_cursor, limit=2, order_by=["-run_after"])
    walked = [[run.dag_run_id for run in page.dag_runs] for page in (first, second, third)]
    assert walked == [["run4", "run3"], ["run2", "run1"], ["run0"]]
    assert (first.previous_cursor, third.next_cursor) == (None, None)
    back = api.get_dag_runs("etl", cursor=third.previous_cursor, limit=2, order_by=["-run_after"])
    assert [run.dag_run_id for run in back.dag_runs] == ["run2", "run1"]


def test_task_instances_are_listed_and_read_one_by_one(client, etl, run):
    finish(run, extract="success", clean="failed")
    api = airflow.TaskInstanceApi(client)
    page = api.get_task_instances("etl", "run0", order_by=["id"])
    assert {ti.task_id: ti.state.value if ti.state else None for ti in page.task_instances} == {
        "extract": "success",
        "clean": "failed",
        "check": None,
        "load": None,
    }
    one = api.get_task_instance("etl", "run0", "load")
    assert (one.task_display_name, one.dag_display_name, one.try_number) == ("Load it", "E, T and L", 0)
    assert api.get_task_instances("~", "~", state=["failed"]).task_instances[0].task_id == "clean"
    assert api.get_task_instances("~", "~", state=["none"]).total_entries == 2
    assert api.get_task_instances("etl", "run0", operator=["BashOperator"]).total_entries == 1
    body = airflow.TaskInstancesBatchBody(dag_ids=["etl"], state=["failed", None])
    assert api.get_task_instances_batch("~", "~", body).total_entries == 3


def test_mapped_task_instances_have_lists_and_addresses_of_their_own(client, etl, run):
    from scheduler_app.models.creation import expand

    expand([(run.pk, "clean", 3)])
    api = airflow.TaskInstanceApi(client)
    assert status(lambda: api.get_task_instance("etl", "run0", "clean")) == 404
    assert [ti.map_index for ti in api.get_mapped_task_instances("etl", "run0", "clean").task_instances] == [0, 1, 2]
    assert api.get_mapped_task_instance("etl", "run0", "clean", 2).map_index == 2
    assert status(lambda: api.get_mapped_task_instance("etl", "run0", "clean", 3)) == 404


def test_clearing_failed_tasks_previews_and_does_the_same(client, etl, run):
    finish(run, extract="success", check="success", clean="failed", load="upstream_failed")
    transitions.runs("start", [run.pk], at(1))
    transitions.runs("fail", [run.pk], at(9))
    api = airflow.TaskInstanceApi(client)
    dry = api.post_clear_task_instances("etl", airflow.ClearTaskInstancesBody(dag_run_id="run0", only_failed=True))
    would = sorted(ti.task_id for ti in dry.task_instances)
    assert would == ["clean", "load"]
    assert rows.states(run)["clean"] == "failed"
    assert Audit.objects.count() == 0
    body = airflow.ClearTaskInstancesBody(dag_run_id="run0", only_failed=True, dry_run=False)
    assert sorted(ti.task_id for ti in api.post_clear_task_instances("etl", body).task_instances) == would
    assert rows.states(run) == {"check": "success", "clean": None, "extract": "success", "load": None}
    run.refresh_from_db()
    assert (run.state, run.clear_number, run.first_start_date) == ("queued", 1, at(1))
    cleared = TaskInstance.objects.get(dag_run=run, task_id="clean")
    assert (cleared.try_number, cleared.max_tries) == (1, 3)
    assert list(Audit.objects.values_list("event", "run_id")) == [("post_clear_task_instances", "run0")]


def test_tries_show_the_ended_one_and_the_present_one(client, etl, run):
    finish(run, second="success", extract="failed")
    api = airflow.TaskInstanceApi(client)
    api.post_clear_task_instances("etl", airflow.ClearTaskInstancesBody(dag_run_id="run0", dry_run=False))
    assert [
        (t.try_number, t.state.value) for t in api.get_task_instance_tries("etl", "run0", "extract").task_instances
    ] == [(1, "failed")]
    finish(run, extract="success")
    tries = api.get_task_instance_tries("etl", "run0", "extract").task_instances
    assert [(t.try_number, t.state.value) for t in tries] == [(1, "failed"), (2, "success")]
    assert api.get_task_instance_try_details("etl", "run0", "extract", 1).state.value == "failed"
    assert status(lambda: api.get_task_instance_try_details("etl", "run0", "extract", 9)) == 404


def test_clearing_a_running_task_tells_it_to_restart_or_is_refused(client, etl, run):
    finish(run, extract="running")
    api = airflow.TaskInstanceApi(client)
    careful = airflow.ClearTaskInstancesBody(
        dag_run_id="run0",
        only_failed=False,
        dry_run=False,
        task_ids=[airflow.ClearTaskInstancesBodyTaskIdsInner("extract")],
        prevent_running_task=True,
    )
    assert status(lambda: api.post_clear_task_instances("etl", careful)) == 409
    careful.prevent_running_task = False
    api.post_clear_task_instances("etl", careful)
    assert rows.states(run)["extract"] == "restarting"


@pytest.mark.parametrize(
    ("wanted", "picked"),
    [
        ({"task_ids": ["clean"]}, ["clean"]),
        ({"task_ids": ["clean"], "include_upstream": True}, ["clean", "extract"]),
        ({"task_ids": ["clean"], "include_downstream": True}, ["clean", "load"]),
        ({"task_ids": [["clean", -1]]}, ["clean"]),
        ({"task_ids": [["clean", 4]]}, []),
        ({"only_running": True}, ["check"]),
        ({}, ["check", "clean", "extract", "load"]),
    ],
)
def test_what_a_clear_selects(http, etl, run, wanted, picked):
    finish(run, extract="success", check="running")
    body = {"dag_run_id": "run0", "only_failed": False, **wanted}
    answer = http.post("dags/etl/clearTaskInstances", body)
    assert sorted(ti["task_id"] for ti in answer.json()["task_instances"]) == picked


def test_past_and_future_follow_the_logical_date(http, etl):
    made = rows.trigger(etl, 3)
    for day, one in enumerate(made):
        DagRun.objects.filter(pk=one.pk).update(logical_date=DAY.replace(day=10 + day))
    body = {"dag_run_id": "run1", "only_failed": False, "task_ids": ["load"]}
    for flags, runs in (
        ({}, ["run1"]),
        ({"include_past": True}, ["run0", "run1"]),
        ({"include_future": True}, ["run1", "run2"]),
        ({"include_past": True, "include_future": True}, ["run0", "run1", "run2"]),
    ):
        answer = http.post("dags/etl/clearTaskInstances", {**body, **flags}).json()
        assert [ti["dag_run_id"] for ti in answer["task_instances"]] == runs


def test_marking_a_task_as_success_lets_the_run_go_on_from_there(client, etl, run):
    finish(run, extract="success", check="success", clean="failed", load="upstream_failed")
    transitions.runs("start", [run.pk], at(1))
    transitions.runs("fail", [run.pk], at(9))
    api = airflow.TaskInstanceApi(client)
    body = airflow.PatchTaskInstanceBody(new_state="success")
    dry = api.patch_task_instance_dry_run("etl", "run0", "clean", body)
    assert [ti.task_id for ti in dry.task_instances] == ["clean"]
    assert rows.states(run)["clean"] == "failed"
    assert [ti.state.value for ti in api.patch_task_instance("etl", "run0", "clean", body).task_instances] == [
        "success"
    ]
    assert rows.states(run) == {"check": "success", "clean": "success", "extract": "success", "load": None}
    run.refresh_from_db()
    assert run.state == "queued"
    assert status(lambda: api.patch_task_instance("etl", "run0", "clean", body)) == 409
    assert (
        status(
            lambda: api.patch_task_instance("etl", "run0", "clean", airflow.PatchTaskInstanceBody(new_state="running"))
        )
        == 422
    )


def test_notes_of_runs_and_tasks(client, etl, run):
    noted = airflow.TaskInstanceApi(client).patch_task_instance(
        "etl", "run0", "clean", airflow.PatchTaskInstanceBody(note="see ticket 7")
    )
    assert [ti.note for ti in noted.task_instances] == ["see ticket 7"]
    patched = airflow.DagRunApi(client).patch_dag_run("etl", "run0", airflow.DAGRunPatchBody(note="hm"))
    assert (patched.note, patched.state.value) == ("hm", "queued")


def test_marking_a_run_by_hand_stops_what_runs_and_skips_what_had_not_started(client, etl, run):
    transitions.runs("start", [run.pk], at(1))
    finish(run, extract="success", clean="running")
    api = airflow.DagRunApi(client)
    assert api.patch_dag_run("etl", "run0", airflow.DAGRunPatchBody(state="failed")).state.value == "failed"
    assert rows.states(run) == {"check": "skipped", "clean": "failed", "extract": "success", "load": "skipped"}
    assert api.patch_dag_run("etl", "run0", airflow.DAGRunPatchBody(state="queued")).state.value == "queued"


def test_a_running_run_is_deleted_only_after_it_was_marked(client, etl, run):
    transitions.runs("start", [run.pk], at(1))
    api = airflow.DagRunApi(client)
    assert status(lambda: api.delete_dag_run("etl", "run0")) == 409
    api.patch_dag_run("etl", "run0", airflow.DAGRunPatchBody(state="failed"))
    api.delete_dag_run("etl", "run0")
    assert status(lambda: api.get_dag_run("etl", "run0")) == 404
    assert TaskInstance.objects.count() == 0


def test_a_run_is_cleared_as_a_whole(client, http, etl, run):
    finish(run, extract="success", clean="failed")
    api = airflow.DagRunApi(client)
    # Read raw: the client's own model cannot tell the two kinds of items of a preview apart.
    dry = http.post("dags/etl/dagRuns/run0/clear", {"only_failed": True}).json()
    assert [ti["task_id"] for ti in dry["task_instances"]] == ["clean"]
    done = api.clear_dag_run("etl", "run0", airflow.DAGRunClearBody(dry_run=False))
    assert done.actual_instance.dag_run_id == "run0"
    assert set(rows.states(run).values()) == {None}


def test_waiting_answers_with_the_state_and_the_results(http, etl, run):
    transitions.runs("start", [run.pk], at(1))
    transitions.runs("succeed", [run.pk], at(2))
    XCom.objects.create(dag_run=run, dag_id="etl", task_id="load", key="return_value", value=[1, 2], timestamp=T0)
    answer = http.get("dags/etl/dagRuns/run0/wait?interval=1&result=load")
    assert json.loads(answer.getvalue()) == {"state": "success", "results": {"load": [1, 2]}}
    assert http.get("dags/etl/dagRuns/run0/wait").status_code == 422


def test_waiting_leaves_threads_for_everybody_else(http, etl, run):
    from api.resources.runs import _seats

    waiting = [http.get("dags/etl/dagRuns/run0/wait?interval=60") for _ in range(4)]
    assert [answer.status_code for answer in waiting] == [200] * 4
    assert http.get("dags/etl/dagRuns/run0/wait?interval=60").status_code == 503
    for answer in waiting:
        answer.close()
    assert _seats._value == 4


def write_log(run: DagRun, task_id: str, number: int, *events: str) -> None:
    file = attempt_log.path(conf().log_folder, run.dag_id, run.run_id, task_id, -1, number)
    fd = attempt_log.open_for_append(file)
    writer = attempt_log.LogWriter(fd, lambda: T0)
    for event in events:
        writer.write("info", "task", event)


def test_a_log_is_read_whole_by_token_and_as_lines(client, http, etl, run):
    finish(run, extract="running")
    write_log(run, "extract", 1, "one", "two")
    api = airflow.TaskInstanceApi(client)
    first = api.get_log("etl", "run0", "extract", 1, full_content=True)
    assert [line.event for line in first.content.actual_instance] == ["one", "two"]
    write_log(run, "extract", 1, "three")
    rest = api.get_log("etl", "run0", "extract", 1, token=first.continuation_token)
    assert [line.event for line in rest.content.actual_instance] == ["three"]
    transitions.tasks("succeed", [TaskInstance.objects.get(task_id="extract").pk], at(9))
    assert api.get_log("etl", "run0", "extract", 1).continuation_token is None
    lines = http.get("dags/etl/dagRuns/run0/taskInstances/extract/logs/1", Accept="application/x-ndjson")
    assert [json.loads(line)["event"] for line in lines.getvalue().splitlines()] == ["one", "two", "three"]
    assert status(lambda: api.get_log("etl", "run0", "extract", 2)) == 404
    assert http.get("dags/etl/dagRuns/run0/taskInstances/extract/logs/1?token=forged").status_code == 400


def test_tasks_of_a_dag(client, etl):
    api = airflow.TaskApi(client)
    assert [task.task_id for task in api.get_tasks("etl").tasks] == ["check", "clean", "extract", "load"]
    task = api.get_task("etl", "clean")
    assert (task.retries, task.downstream_task_ids, task.retry_delay.seconds) == (2, ["load"], 300)
    assert status(lambda: api.get_task("etl", "nope")) == 404


def test_xcoms_are_made_read_changed_and_deleted(client, etl, run):
    api = airflow.XComApi(client)
    made = api.create_xcom_entry("etl", "load", "run0", airflow.XComCreateBody(key="k/1", value={"a": [1]}))
    assert made.value == {"a": [1]}
    assert (
        status(lambda: api.create_xcom_entry("etl", "load", "run0", airflow.XComCreateBody(key="k/1", value=1))) == 409
    )
    assert [entry.key for entry in api.get_xcom_entries("etl", "run0", "~").xcom_entries] == ["k/1"]
    assert api.get_xcom_entry("etl", "load", "run0", "k/1").actual_instance.value == {"a": [1]}
    assert api.get_xcom_entry("etl", "load", "run0", "k/1", stringify=True).actual_instance.value == "{'a': [1]}"
    assert api.update_xcom_entry("etl", "load", "run0", "k/1", airflow.XComUpdateBody(value="x")).value == "x"
    api.delete_xcom_entry("etl", "load", "run0", "k/1")
    assert status(lambda: api.get_xcom_entry("etl", "load", "run0", "k/1")) == 404


def test_pools(client, etl, run):
    api = airflow.PoolApi(client)
    assert api.post_pool(airflow.PoolBody(name="small", slots=2)).open_slots == 2
    assert status(lambda: api.post_pool(airflow.PoolBody(name="small", slots=2))) == 409
    assert api.patch_pool("small", airflow.PoolPatchBody(pool="small", slots=5, include_deferred=True)).slots == 5
    finish(run, extract="running")
    shared = next(pool for pool in api.get_pools().pools if pool.name == "default_pool")
    assert (shared.running_slots, shared.occupied_slots, shared.open_slots) == (1, 1, 127)
    assert status(lambda: api.delete_pool("default_pool")) == 400
    api.delete_pool("small")
    assert status(lambda: api.get_pool("small")) == 404


def test_variables_hide_the_values_of_secrets(client):
    api = airflow.VariableApi(client)
    assert api.post_variable(airflow.VariableBody(key="a/b", value="plain")).value == "plain"
    assert api.post_variable(airflow.VariableBody(key="db_password", value="hunter2")).value == "***"
    assert (
        api.post_variable(airflow.VariableBody(key="doc", value={"token": "t", "n": 1})).value
        == '{"token": "***", "n": 1}'
    )
    assert status(lambda: api.post_variable(airflow.VariableBody(key="a/b", value="x"))) == 409
    assert api.patch_variable("a/b", airflow.VariableBody(key="a/b", value="new")).value == "new"
    assert [row.key for row in api.get_variables(order_by=["key"]).variables] == ["a/b", "db_password", "doc"]
    api.delete_variable("a/b")
    assert status(lambda: api.get_variable("a/b")) == 404
    assert "hunter2" not in json.dumps(list(Audit.objects.values("before", "after", "extra")))


def test_connections_never_show_their_secrets_and_keep_them_when_a_mask_comes_back(client):
    from scheduler_app import secrets
    from scheduler_app.models import Connection

    api = airflow.ConnectionApi(client)
    body = airflow.ConnectionBody(
        connection_id="pg",
        conn_type="postgres",
        host="h",
        port=5432,
        password="hunter2",
        extra='{"token": "t", "n": 1}',
    )
    made = api.post_connection(body)
    assert (made.password, made.extra) == ("***", '{"token": "***", "n": 1}')
    back = airflow.ConnectionBody(
        connection_id="pg", conn_type="postgres", host="other", password=made.password, extra=made.extra
    )
    assert api.patch_connection("pg", back).host == "other"
    row = Connection.objects.get(connection_id="pg")
    assert secrets.decrypt(row.password_encrypted) == "hunter2"
    assert json.loads(secrets.decrypt(row.extra_encrypted)) == {"token": "t", "n": 1}
    assert status(lambda: api.post_connection(body)) == 409
    assert api.get_connections().total_entries == 1
    api.delete_connection("pg")
    assert status(lambda: api.get_connection("pg")) == 404


@pytest.fixture
def lake(etl):
    from scheduler_app.models import Asset, AssetUse

    asset = Asset.objects.create(name="lake", uri="s3://lake", created_at=T0, updated_at=T0)
    AssetUse.objects.create(dag=etl, asset=asset, kind="schedule", created_at=T0)
    AssetUse.objects.create(dag=etl, asset=asset, kind="outlet", task_id="load", created_at=T0)
    return asset


def test_assets_their_events_and_what_waits(client, lake):
    api = airflow.AssetApi(client)
    found = api.get_assets().assets[0]
    assert ([dag.dag_id for dag in found.scheduled_dags], [task.task_id for task in found.producing_tasks]) == (
        ["etl"],
        ["load"],
    )
    event = api.create_asset_event(airflow.CreateAssetEventsBody(asset_id=lake.pk, extra={"n": 1}))
    assert event.extra == {"n": 1, "from_rest_api": True}
    assert api.get_asset(lake.pk).last_asset_event.id == event.id
    assert api.get_asset_events(asset_id=lake.pk).total_entries == 1
    assert api.get_dag_asset_queued_events("etl").total_entries == 1
    assert api.get_asset_queued_events(lake.pk).queued_events[0].dag_id == "etl"
    assert api.get_dag_asset_queued_event("etl", lake.pk).asset_id == lake.pk
    api.delete_dag_asset_queued_events("etl")
    assert status(lambda: api.delete_dag_asset_queued_events("etl")) == 404
    assert status(lambda: api.get_dag_asset_queued_event("etl", lake.pk)) == 404
    assert AssetEvent.objects.count() == 1


def test_a_run_shows_the_events_it_was_started_for(client, lake, run):
    event = AssetEvent.objects.create(asset=lake, timestamp=T0)
    event.created_dagruns.add(run)
    found = airflow.DagRunApi(client).get_upstream_asset_events("etl", "run0").asset_events
    assert [one.created_dagruns[0].run_id for one in found] == ["run0"]


def test_import_errors_warnings_jobs_and_audit_are_read(client, etl):
    from scheduler_app.models import DagWarning, ParseError, db

    error = ParseError.objects.create(timestamp=T0, filename="bad.py", stack_trace="SyntaxError")
    DagWarning.objects.create(dag=etl, warning_type="non-existent pool", message="no pool x", timestamp=T0)
    Job.objects.create(job_type="SchedulerJob", start_date=T0, latest_heartbeat=db.clock())
    airflow.DAGApi(client).patch_dag("etl", airflow.DAGPatchBody(is_paused=True))
    assert airflow.ImportErrorApi(client).get_import_errors(filename_pattern="bad").total_entries == 1
    assert airflow.ImportErrorApi(client).get_import_error(error.pk).stack_trace == "SyntaxError"
    assert airflow.DagWarningApi(client).list_dag_warnings().dag_warnings[0].message == "no pool x"
    assert airflow.JobApi(client).get_jobs(is_alive=True).total_entries == 1
    log = airflow.EventLogApi(client).get_event_logs(event="patch_dag").event_logs[0]
    assert (log.owner, log.dag_id) == ("ada", "etl")
    assert airflow.EventLogApi(client).get_event_log(log.event_log_id).event == "patch_dag"


def test_versions_sources_tags_and_statistics(client, etl, run):
    import hashlib

    from scheduler_app.models import DagVersion, SourceBlob

    digest = hashlib.sha256(b"print('hi')").hexdigest()
    SourceBlob.objects.create(sha256=digest, content=b"print('hi')")
    DagVersion.objects.update(source_sha256=digest)
    assert airflow.DagVersionApi(client).get_dag_versions("etl").dag_versions[0].version_number == 1
    assert airflow.DagVersionApi(client).get_dag_version("etl", 1).dag_display_name == "E, T and L"
    assert airflow.DagSourceApi(client).get_dag_source("etl").content == "print('hi')"
    assert airflow.DAGApi(client).get_dag_tags().tags == ["nightly"]
    stats = airflow.DagStatsApi(client).get_dag_stats().dags[0].stats
    assert {one.state.value: one.count for one in stats} == {"queued": 1, "running": 0, "success": 0, "failed": 0}


def test_health_and_version_need_no_login():
    from tests.api.conftest import Http

    nobody = Http(None)
    assert nobody.get("version").json()["version"].startswith("3.")


def test_health_tells_a_living_scheduler_from_a_dead_one(client, db):
    from datetime import timedelta

    from scheduler_app.models import db as database

    now = database.clock()
    Job.objects.create(job_type="SchedulerJob", start_date=T0, latest_heartbeat=now)
    Job.objects.create(job_type="DagProcessorJob", start_date=T0, latest_heartbeat=now - timedelta(minutes=5))
    health = airflow.MonitorApi(client).get_health()
    assert (health.scheduler.status, health.dag_processor.status, health.triggerer.status) == (
        "healthy",
        "unhealthy",
        None,
    )


def test_a_dag_is_deleted_with_its_runs_unless_tasks_are_running(client, etl, run):
    api = airflow.DAGApi(client)
    finish(run, extract="running")
    assert status(lambda: api.delete_dag("etl")) == 409
    transitions.tasks("succeed", [TaskInstance.objects.get(task_id="extract").pk], at(9))
    api.delete_dag("etl")
    assert (DagModel.objects.count(), DagRun.objects.count()) == (0, 0)
    assert Audit.objects.filter(event="delete_dag", dag_id="etl").count() == 1


def test_a_file_is_parsed_again_on_request(client, etl):
    from scheduler_app.models import DagFile

    DagFile.objects.create(bundle_name="dags", relative_path="etl.py")
    token = airflow.DAGApi(client).get_dag("etl").file_token
    airflow.DAGParsingApi(client).reparse_dag_file(token)
    assert DagFile.objects.get().parse_requested_at is not None
    assert status(lambda: airflow.DAGParsingApi(client).reparse_dag_file("forged")) == 404


def test_an_unknown_path_is_a_404_in_json(http):
    answer = http.get("nothing/here")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})


def test_a_secret_of_another_key_spoils_no_list(client, settings):
    from cryptography.fernet import Fernet

    api = airflow.VariableApi(client)
    api.post_variable(airflow.VariableBody(key="old", value="1"))
    settings.SCHEDULER = {**settings.SCHEDULER, "fernet_keys": (Fernet.generate_key().decode(),)}
    api.post_variable(airflow.VariableBody(key="new", value="2"))
    assert {row.key: row.value for row in api.get_variables().variables} == {"old": None, "new": "2"}


def test_the_operator_of_a_decorated_task_is_shown_as_people_write_it(client):
    fields = {"operator_name": "_PythonDecoratedOperator", "operator_display_name": "@task"}
    run = rows.trigger(rows.store(shape("load", "flow", tasks={"load": fields})), 1)[0]
    task = airflow.TaskApi(client).get_task("flow", "load")
    assert (task.operator_name, task.class_ref["class_name"]) == ("@task", "_PythonDecoratedOperator")
    instance = airflow.TaskInstanceApi(client).get_task_instance("flow", run.run_id, "load")
    assert (instance.operator, instance.operator_name) == ("_PythonDecoratedOperator", "@task")
