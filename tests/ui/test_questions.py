"""A task asks a person: the question is found, read and answered on the pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from scheduler_app import wire
from scheduler_app.models import Audit, DagRun, TaskInstance, TaskState
from scheduler_app.models.state_store import ANSWER_KEY, QUESTION_KEY

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db

TASK = "/dags/sales/runs/r1/tasks/check/"


@pytest.fixture
def run() -> DagRun:
    return factory.make_run(factory.make_dag("sales"), "r1", "running", {"extract": "success", "check": "deferred"})


def question(run: DagRun, **changes: Any) -> TaskState:
    asked = {"subject": "Ship it?", "body": "See the **report**", "options": ["Approve", "Reject"], "defaults": None}
    asked |= {"multiple": False, "params": {}, "assigned_users": []} | changes
    return TaskState.objects.create(
        dag_run_id=run.pk, dag_id="sales", task_id="check", map_index=-1, key=QUESTION_KEY,
        value=wire.encode(asked, "the question"), updated_at=NOW,
    )  # fmt: skip


def given() -> dict[str, Any]:
    found: dict[str, Any] = wire.plain(TaskState.objects.get(key=ANSWER_KEY).value)
    return found


def text(response: Any) -> str:
    html: str = response.content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_a_question_is_found_from_the_first_page_and_answered(admin: Client, run: DagRun) -> None:
    question(run)
    assert "Questions to answer 1" in text(admin.get("/"))
    listed = admin.get("/questions/")
    assert "Ship it? Approve · Reject check sales r1 anybody who may change the task" in text(listed)
    assert f'href="{TASK}#question"' in listed.content.decode()
    html = admin.get(TASK).content.decode()
    assert "<strong>report</strong>" in html
    assert re.findall(r'name="option" value="(\w+)"', html) == ["Approve", "Reject"]
    answered = text(admin.post(f"{TASK}answer/", {"option": "Reject", "next": TASK}, follow=True))
    assert "Answered: Reject." in answered
    assert "✓ Reject ann" in answered
    assert given()["chosen_options"] == ["Reject"]
    assert Audit.objects.values_list("event", "owner").get() == ("update_hitl_detail", "ann")
    assert "No task waits for an answer" in text(admin.get("/questions/"))


def test_what_is_typed_beside_the_answer_goes_with_it(admin: Client, run: DagRun) -> None:
    question(run, multiple=True, params={"rows": 3, "why": "", "full": True})
    html = admin.get(TASK).content.decode()
    assert 'type="checkbox" name="option"' in html
    fields = {"option": ["Approve", "Reject"], "param.rows": "7", "param.why": "late"}
    admin.post(f"{TASK}answer/", fields)
    assert given()["params_input"] == {"rows": 7, "why": "late", "full": False}
    assert given()["chosen_options"] == ["Approve", "Reject"]


def test_an_answer_that_cannot_be_is_refused_and_nothing_is_kept(admin: Client, run: DagRun) -> None:
    question(run, params={"rows": 3})
    for asked in ({}, {"option": "Maybe"}, {"option": ["Approve", "Reject"]}, {"option": "Approve", "param.rows": "x"}):
        assert admin.post(f"{TASK}answer/", asked).status_code == 400
    assert admin.post("/dags/sales/runs/r1/tasks/load/answer/", {"option": "Approve"}).status_code == 404
    assert not TaskState.objects.filter(key=ANSWER_KEY).exists()
    assert admin.post(f"{TASK}answer/", {"option": "Approve", "param.rows": "3"}).status_code == 302
    assert admin.post(f"{TASK}answer/", {"option": "Reject", "param.rows": "3"}).status_code == 409


def test_only_who_is_asked_may_answer(admin: Client, as_role: Callable[[str], Client], run: DagRun) -> None:
    question(run, assigned_users=[{"id": "bob", "name": "Bob"}])
    assert "asked: Bob" in text(admin.get(TASK))
    assert admin.post(f"{TASK}answer/", {"option": "Approve"}).status_code == 403
    viewer = as_role("Viewer")
    assert 'name="option"' not in viewer.get(TASK).content.decode()
    assert viewer.post(f"{TASK}answer/", {"option": "Approve"}).status_code == 403


def test_the_link_that_a_task_sends_leads_to_its_question(admin: Client, run: DagRun) -> None:
    question(run)
    response = admin.get("/dags/sales/runs/r1/tasks/check/required_actions")
    assert (response.status_code, response.headers["Location"]) == (302, f"{TASK}#question")


def test_a_question_that_nobody_answered_in_time_says_so(admin: Client, run: DagRun) -> None:
    TaskInstance.objects.all().delete()
    ended = factory.make_run(factory.make_dag("stock"), "r2", "failed", {"check": "failed"})
    TaskState.objects.create(
        dag_run_id=ended.pk, dag_id="stock", task_id="check", map_index=-1, key=QUESTION_KEY,
        value=wire.encode({"subject": "Ship it?", "options": ["Yes"]}, "the question"), updated_at=NOW,
    )  # fmt: skip
    assert "Nobody answered." in text(admin.get("/dags/stock/runs/r2/tasks/check/"))
