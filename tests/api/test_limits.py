"""Keyed limits over the API: an addition of ours."""

from __future__ import annotations

from scheduler_app.models import Limit, TaskInstance
from tests.ui import factory


def test_a_limit_is_made_read_changed_and_deleted(http):
    made = http.post("limits", {"name": "team/crm", "amount": 3, "per_seconds": 60, "description": "calls"})
    assert made.status_code == 201
    assert made.json() == {
        "name": "team/crm",
        "amount": 3,
        "per_seconds": 60.0,
        "description": "calls",
        "declared_by": None,
        "used": 0,
        "waiting": 0,
        "next_free_at": None,
    }
    assert http.post("limits", {"name": "team/crm", "amount": 1}).status_code == 409
    Limit.objects.update(declared_by="etl")
    assert http.patch("limits/team/crm", {"description": "x"}).json()["declared_by"] == "etl"
    changed = http.patch("limits/team/crm", {"amount": 5, "per_seconds": None}).json()
    assert (changed["amount"], changed["per_seconds"], changed["declared_by"]) == (5, None, None)
    assert [row["name"] for row in http.get("limits").json()["limits"]] == ["team/crm"]
    assert http.delete("limits/team/crm").status_code == 204
    assert http.get("limits/team/crm").status_code == 404


def test_what_is_taken_and_who_waits_is_counted(http):
    Limit.objects.create(name="db", amount=4)
    states = {"extract": "running", "clean": "queued", "load": "scheduled"}
    run = factory.make_run(factory.make_dag("sales"), "r1", "running", states)
    tasks = TaskInstance.objects.filter(dag_run=run)
    tasks.filter(task_id__in=["extract", "clean"]).update(limits="crm=1,db=2")
    tasks.filter(task_id="load").update(limits="db=1")
    found = http.get("limits/db").json()
    assert (found["used"], found["waiting"]) == (4, 1)
    refused = http.delete("limits/db")
    assert refused.status_code == 409
    assert "Tasks that have not ended name the limit `db`" in refused.json()["detail"]


def test_a_name_or_number_that_cannot_be_is_refused(http):
    for body, words in (
        ({"name": "a b", "amount": 1}, "A name has up to 128 letters"),
        ({"name": "a", "amount": 1, "per_seconds": 0}, "The window is a number of seconds above 0"),
    ):
        refused = http.post("limits", body)
        assert refused.status_code == 422, body
        assert words in str(refused.json()), body
    assert http.post("limits", {"name": "a", "amount": -1}).status_code == 422
