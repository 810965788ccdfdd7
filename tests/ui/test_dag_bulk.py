"""Many DAGs at once: the ticked ones, or all that a filter finds, and never more than the person knows of."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from scheduler_app.models import Audit, DagModel
from scheduler_app.ui import dag_bulk

from . import factory

pytestmark = pytest.mark.django_db

BULK = "/bulk/dags/"


@pytest.fixture
def dags() -> None:
    for name in ("sales", "stock", "churn"):
        factory.make_dag(name)
    factory.make_dag("asleep", is_paused=True)


def paused() -> list[str]:
    return sorted(DagModel.objects.filter(is_paused=True).values_list("pk", flat=True))


def post(client: Client, **fields: object) -> str:
    return client.post(BULK, {"next": "/dags/", **fields}, follow=True).content.decode()


def test_the_ticked_dags_are_paused_and_told_apart_from_those_that_were_so(admin: Client, dags: None) -> None:
    html = post(admin, bulk="pause", dag=["sales", "churn", "asleep"])
    assert "2 DAGs were paused. 1 was so already, or is not yours to change." in html
    assert paused() == ["asleep", "churn", "sales"]
    assert sorted(row.dag_id or "" for row in Audit.objects.all()) == ["churn", "sales"]


def test_all_that_match_are_resumed(admin: Client, dags: None) -> None:
    DagModel.objects.update(is_paused=True)
    html = post(admin, bulk="resume", all="yes", q="s", show="paused", n="3")
    assert "3 DAGs were resumed." in html
    assert paused() == ["churn"]


def test_nothing_is_done_when_other_ones_match_than_were_shown(admin: Client, dags: None) -> None:
    assert "4 DAGs matched when you looked, 3 do now" in post(admin, bulk="pause", all="yes", q="s", n="4")
    assert paused() == ["asleep"]


def test_many_ask_for_their_number(admin: Client, dags: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dag_bulk, "ASK_FROM", 2)
    asked = {"bulk": "pause", "all": "yes", "show": "active", "n": "3"}
    assert "That is about 3 DAGs." in post(admin, **asked)
    assert "That is about 3 DAGs." in post(admin, **asked, number="4")
    assert paused() == ["asleep"]
    assert "3 DAGs were paused." in post(admin, **asked, number="3")


@pytest.mark.parametrize("fields", [{"bulk": "pause"}, {"bulk": "delete", "dag": "sales"}])
def test_without_a_tick_or_with_another_deed_nothing_is_done(admin: Client, dags: None, fields: dict[str, str]) -> None:
    assert admin.post(BULK, fields).status_code == 400
    assert paused() == ["asleep"]


def test_the_list_offers_boxes_to_those_who_may_change_dags(
    admin: Client, as_role: Callable[[str], Client], dags: None
) -> None:
    boxes = re.compile(r'<input type="checkbox" form="bulk" name="dag" value="(\w+)"')
    assert boxes.findall(admin.get("/dags/").content.decode()) == ["asleep", "churn", "sales", "stock"]
    viewer = as_role("Viewer")
    assert boxes.findall(viewer.get("/dags/").content.decode()) == []
    assert viewer.post(BULK, {"bulk": "pause", "dag": "sales"}).status_code == 403
    assert viewer.get(BULK).status_code == 405
    assert paused() == ["asleep"]
