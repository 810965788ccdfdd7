"""Questions that tasks ask people: listed, read and answered with the official client."""

from __future__ import annotations

from typing import Any

import airflow_client.client as airflow
import pytest
from airflow_client.client.exceptions import ApiException

from scheduler_app.models import Audit, DagRun, TaskInstance, TaskState, transitions
from scheduler_app.models.state_store import ANSWER_KEY, QUESTION_KEY
from tests.rows import T0, at

QUESTION = {
    "subject": "Ship it?",
    "body": "The report of today",
    "options": ["Yes", "No"],
    "defaults": None,
    "multiple": False,
    "params": {"note": ""},
    "assigned_users": [],
}


@pytest.fixture
def asked(run: DagRun) -> TaskInstance:
    """``extract`` of run0 waits for an answer."""
    return ask(run, "extract")


def ask(run: DagRun, task_id: str, **more: Any) -> TaskInstance:
    row = TaskInstance.objects.get(dag_run=run, task_id=task_id)
    for verb in ("schedule", "queue", "start", "defer"):
        transitions.tasks(verb, [row.pk], at(1))
    TaskState.objects.create(
        dag_run=run, dag_id="etl", task_id=task_id, key=QUESTION_KEY, value={**QUESTION, **more}, updated_at=at(2)
    )
    return row


def status(call: Any) -> int:
    with pytest.raises(ApiException) as caught:
        call()
    return int(caught.value.status)


def respond(client: Any, *options: str, task_id: str = "extract", **more: Any) -> Any:
    payload = airflow.UpdateHITLDetailPayload(chosen_options=list(options), **more)
    return airflow.TaskInstanceApi(client).update_hitl_detail("etl", "run0", task_id, -1, payload)


def test_a_question_is_read_with_its_task_instance(client: Any, asked: TaskInstance) -> None:
    found = airflow.TaskInstanceApi(client).get_hitl_detail("etl", "run0", "extract", -1)
    assert (found.subject, found.options, found.response_received) == ("Ship it?", ["Yes", "No"], False)
    assert (found.created_at, found.task_instance.task_id, found.task_instance.state.value) == (
        at(2),
        "extract",
        "deferred",
    )
    assert status(lambda: airflow.TaskInstanceApi(client).get_hitl_detail("etl", "run0", "load", -1)) == 404
    tried = airflow.TaskInstanceApi(client).get_hitl_detail_try_detail("etl", "run0", "extract", -1, 1)
    assert (tried.subject, tried.task_instance.try_number) == ("Ship it?", 1)
    for number in (0, 2):
        assert (
            status(
                lambda n=number: airflow.TaskInstanceApi(client).get_hitl_detail_try_detail(
                    "etl", "run0", "extract", -1, n
                )
            )
            == 404
        )


def test_an_answer_is_stored_for_the_trigger_and_audited(client: Any, asked: TaskInstance) -> None:
    answer = respond(client, "Yes", params_input={"note": "go"})
    assert (answer.chosen_options, answer.params_input) == (["Yes"], {"note": "go"})
    stored = TaskState.objects.get(key=ANSWER_KEY)
    assert (stored.task_id, stored.value["chosen_options"], stored.expires_at) == ("extract", ["Yes"], None)
    assert stored.value["responded_by_user"] == {"id": answer.responded_by.id, "name": answer.responded_by.name}
    audit = Audit.objects.get(event="update_hitl_detail")
    assert (audit.task_id, audit.run_id, audit.after) == ("extract", "run0", {"chosen_options": ["Yes"]})
    shown = airflow.TaskInstanceApi(client).get_hitl_detail("etl", "run0", "extract", -1)
    assert (shown.response_received, shown.responded_at) == (True, answer.responded_at)
    assert status(lambda: respond(client, "No")) == 409


def test_an_answer_that_cannot_be_is_refused(client: Any, run: DagRun, asked: TaskInstance) -> None:
    assert status(lambda: respond(client, "Maybe")) == 422
    assert status(lambda: respond(client, "Yes", "No")) == 422
    assert status(lambda: respond(client, "Yes", task_id="load")) == 404
    ask(run, "check", assigned_users=[{"id": "somebody", "name": "somebody"}])
    assert status(lambda: respond(client, "Yes", task_id="check")) == 403
    transitions.tasks("mark_failed", [asked.pk], at(3))
    assert status(lambda: respond(client, "Yes")) == 409
    assert TaskState.objects.filter(key=ANSWER_KEY).count() == 0


def test_questions_are_listed_and_filtered(client: Any, run: DagRun, asked: TaskInstance) -> None:
    ask(run, "check", subject="Delete it?")
    respond(client, "Yes")
    api = airflow.TaskInstanceApi(client)

    def listed(**filters: Any) -> list[str]:
        page = api.get_hitl_details("~", "~", **filters)
        assert page.total_entries == len(page.hitl_details)
        return [one.task_instance.task_id for one in page.hitl_details]

    assert listed(order_by=["-subject"]) == ["extract", "check"]
    assert listed(response_received=False) == ["check"]
    assert listed(response_received=True) == ["extract"]
    assert listed(subject_search="delete") == ["check"]
    assert listed(state=["success"]) == []
    assert listed(created_at_gt=T0, order_by=["task_display_name"]) == ["check", "extract"]
    assert api.get_hitl_details("etl", "run0", limit=1).total_entries == 2
