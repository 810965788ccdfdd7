"""A script as a user of Airflow writes it, with ``apache-airflow-client`` as it is published, against the real product.

Every answer is read by the client's own models: what they cannot read raises.
"""

from __future__ import annotations

import json
from typing import Any

import airflow_client.client as airflow
import pytest
import requests
from airflow_client.client.exceptions import ApiException

from .house import PASSWORD, House

pytestmark = pytest.mark.processes


@pytest.fixture
def client(house: House) -> airflow.ApiClient:
    answer = requests.post(f"{house.url}/auth/token", json={"username": "admin", "password": PASSWORD}, timeout=30)
    configuration = airflow.Configuration(host=house.url)
    configuration.access_token = answer.json()["access_token"]
    return airflow.ApiClient(configuration)


def ended(api: airflow.DagRunApi, dag_id: str, run_id: str) -> str:
    """Waits as the client offers it: one JSON line each interval, the last of which says how it ended."""
    stream = api.wait_dag_run_until_finished_without_preload_content(dag_id, run_id, interval=0.2)
    return str(json.loads(stream.data.decode().splitlines()[-1])["state"])


def states(api: airflow.TaskInstanceApi, run_id: str) -> dict[str, str]:
    found = api.get_task_instances("invoices", run_id, order_by=["map_index"]).task_instances
    return {one.task_id: one.state.value if one.state else "none" for one in found}


def log_of(api: airflow.TaskInstanceApi, run_id: str, task_id: str, number: int) -> str:
    page = api.get_log("invoices", run_id, task_id, number, full_content=True)
    return "\n".join(line.event for line in page.content.actual_instance)


def test_a_users_script_runs_from_list_to_green(client: airflow.ApiClient) -> None:
    dags, runs, tasks = airflow.DAGApi(client), airflow.DagRunApi(client), airflow.TaskInstanceApi(client)

    # find it, look at it, switch it on
    assert [dag.dag_id for dag in dags.get_dags(tags=["billing"]).dags] == ["invoices"]
    assert [task.task_id for task in airflow.TaskApi(client).get_tasks("invoices").tasks] == [
        "archive",
        "book",
        "collect",
    ]
    assert dags.patch_dag("invoices", airflow.DAGPatchBody(is_paused=False)).is_paused is False

    # trigger it with a conf, wait, and see what failed
    body = airflow.TriggerDAGRunPostBody(dag_run_id="march", logical_date=None, conf={"count": 4}, note="by script")
    assert runs.trigger_dag_run("invoices", body).conf == {"count": 4}
    assert ended(runs, "invoices", "march") == "failed"
    assert states(tasks, "march") == {"collect": "success", "book": "failed", "archive": "upstream_failed"}
    assert "collecting 4 invoices" in log_of(tasks, "march", "collect", 1)
    assert "invoice_rate" in log_of(tasks, "march", "book", 1)

    # give it what it lacks
    variables, connections = airflow.VariableApi(client), airflow.ConnectionApi(client)
    assert variables.post_variable(airflow.VariableBody(key="invoice_rate", value="1.5")).value == "1.5"
    bank = airflow.ConnectionBody(connection_id="bank", conn_type="http", host="bank.example", password="hunter2")
    assert connections.post_connection(bank).password == "***"

    # clear what failed, after a look at what that would be
    clear = airflow.ClearTaskInstancesBody(dag_run_id="march", only_failed=True)
    would = {one.task_id for one in tasks.post_clear_task_instances("invoices", clear).task_instances}
    assert would == {"book", "archive"}
    clear.dry_run = False
    assert {one.task_id for one in tasks.post_clear_task_instances("invoices", clear).task_instances} == would
    assert ended(runs, "invoices", "march") == "success"
    tries = tasks.get_task_instance_tries("invoices", "march", "book").task_instances
    assert [(one.try_number, one.state.value) for one in tries] == [(1, "failed"), (2, "success")]
    assert "booking 4 invoices" in log_of(tasks, "march", "book", 2)

    # what it made
    xcoms = airflow.XComApi(client)
    assert xcoms.get_xcom_entry("invoices", "book", "march", "return_value").actual_instance.value == (
        "9.0 at bank.example"
    )
    assert {entry.task_id for entry in xcoms.get_xcom_entries("invoices", "march", "~").xcom_entries} == {
        "collect",
        "book",
    }
    made = xcoms.create_xcom_entry("invoices", "book", "march", airflow.XComCreateBody(key="checked", value=True))
    assert made.value is True
    xcoms.delete_xcom_entry("invoices", "book", "march", "checked")

    # mark by hand
    mark = airflow.PatchTaskInstanceBody(new_state="failed", note="seen by ann")
    assert [
        one.state.value for one in tasks.patch_task_instance("invoices", "march", "archive", mark).task_instances
    ] == ["failed"]
    assert tasks.get_task_instance("invoices", "march", "archive").note == "seen by ann"
    assert runs.patch_dag_run("invoices", "march", airflow.DAGRunPatchBody(state="success")).state.value == "success"

    # pools
    pools = airflow.PoolApi(client)
    assert pools.post_pool(airflow.PoolBody(name="bank_calls", slots=2)).open_slots == 2
    assert pools.patch_pool("bank_calls", airflow.PoolPatchBody(pool="bank_calls", slots=3)).slots == 3
    assert {"bank_calls", "default_pool"} <= {pool.name for pool in pools.get_pools().pools}

    # who did what
    log = airflow.EventLogApi(client).get_event_logs(dag_id="invoices", run_id="march")
    assert {"trigger_dag_run", "post_clear_task_instances", "patch_dag_run"} <= {one.event for one in log.event_logs}

    # and tidy up
    pools.delete_pool("bank_calls")
    variables.delete_variable("invoice_rate")
    connections.delete_connection("bank")
    runs.delete_dag_run("invoices", "march")
    assert gone(lambda: runs.get_dag_run("invoices", "march"))
    dags.patch_dag("invoices", airflow.DAGPatchBody(is_paused=True))


def gone(call: Any) -> bool:
    with pytest.raises(ApiException) as caught:
        call()
    return bool(caught.value.status == 404)
