"""Many tasks of a run, and runs of many DAGs: ticked, shown, done."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from scheduler_app.models import Audit, DagModel, DagRun, TaskInstance
from scheduler_app.ui import batches
from tests.shapes import shape

from . import factory

pytestmark = pytest.mark.django_db

TASKS = "/dags/sales/runs/r1/bulk/"
DAGS = "/bulk/dags/trigger/"


@pytest.fixture
def keys() -> dict[str, int]:
    states = {"extract": "success", "clean": "failed", "check": "failed", "load": "upstream_failed"}
    factory.make_run(factory.make_dag("sales"), "r1", "failed", states)
    return dict(TaskInstance.objects.values_list("task_id", "pk"))


def states() -> dict[str, str | None]:
    return dict(TaskInstance.objects.values_list("task_id", "state"))


def shown(client: Client, **asked: object) -> tuple[list[str], str]:
    """The tasks that the preview names, and the ids that it would send."""
    html = client.get(TASKS, asked).content.decode()
    names = re.findall(r'<span class="chip"><span class="st s-\w+">(\w+)', html)
    return names, re.findall(r'name="expect" value="([\d,]+)"', html)[0]


def test_the_ticked_tasks_and_no_other_are_cleared(admin: Client, keys: dict[str, int]) -> None:
    ticked = [keys["clean"], keys["check"]]
    names, expect = shown(admin, do="clear", ti=ticked)
    assert names == ["check", "clean"]
    html = admin.post(TASKS, {"do": "clear", "ti": ticked, "expect": expect}, follow=True).content.decode()
    assert "2 tasks were cleared." in html
    assert states() == {"extract": "success", "clean": None, "check": None, "load": "upstream_failed"}
    assert DagRun.objects.get().state == "queued"


def test_what_comes_after_them_is_shown_and_done_too(admin: Client, keys: dict[str, int]) -> None:
    asked = {"do": "clear", "ti": [keys["clean"], keys["check"]], "downstream": "1"}
    names, expect = shown(admin, **asked)
    assert names == ["check", "clean", "load"]
    admin.post(TASKS, {**asked, "expect": expect})
    assert states() == {"extract": "success", "clean": None, "check": None, "load": None}


def test_they_are_marked_with_a_reason(admin: Client, keys: dict[str, int]) -> None:
    asked = {"do": "success", "ti": [keys["clean"], keys["check"], keys["extract"]]}
    names, expect = shown(admin, **asked)
    assert names == ["check", "clean"]
    admin.post(TASKS, {**asked, "expect": expect, "note": "done by hand"})
    assert states() == {"extract": "success", "clean": "success", "check": "success", "load": None}
    assert Audit.objects.get().reason == "done by hand"


def test_nothing_is_done_when_it_is_not_what_was_shown(admin: Client, keys: dict[str, int]) -> None:
    asked = {"do": "clear", "ti": [keys["clean"]], "only_failed": "1"}
    response = admin.post(TASKS, {**asked, "expect": f"{keys['clean']},{keys['load']}"})
    assert response.status_code == 409
    assert "changed since the preview" in response.content.decode()
    assert states()["clean"] == "failed"


def test_mapped_tasks_are_ticked_one_by_one(admin: Client, keys: dict[str, int]) -> None:
    run = DagRun.objects.get()
    twin = TaskInstance.objects.create(
        dag_run=run, dag_id="sales", task_id="clean", map_index=3, state="failed", queued_when=run.run_after
    )
    names, expect = shown(admin, do="clear", ti=[twin.pk])
    assert (names, expect) == (["clean"], str(twin.pk))


@pytest.mark.parametrize(
    ("asked", "status"),
    [({"do": "clear"}, 400), ({"do": "burn", "ti": "1"}, 400), ({"do": "clear", "ti": "99999999"}, 404)],
)
def test_without_ticks_or_a_known_deed_nothing_is_shown(
    admin: Client, keys: dict[str, int], asked: dict[str, str], status: int
) -> None:
    assert admin.get(TASKS, asked).status_code == status


def test_a_task_of_another_run_is_none_of_it(admin: Client, keys: dict[str, int]) -> None:
    factory.make_run(DagModel.objects.get(), "r2", "failed", {"clean": "failed"})
    other = TaskInstance.objects.get(task_id="clean", dag_run__run_id="r2").pk
    assert admin.get(TASKS, {"do": "clear", "ti": other}).status_code == 404


def test_a_viewer_ticks_nothing(as_role: Callable[[str], Client], keys: dict[str, int]) -> None:
    viewer = as_role("Viewer")
    assert 'form="bulk"' not in viewer.get("/dags/sales/runs/r1/").content.decode()
    assert viewer.get(TASKS, {"do": "clear", "ti": keys["clean"]}).status_code == 403
    assert viewer.post(TASKS, {"do": "clear", "ti": keys["clean"], "expect": str(keys["clean"])}).status_code == 403
    assert states()["clean"] == "failed"


def test_of_a_dag_that_is_not_the_readers_not_even_the_run_is_told(
    as_role: Callable[[str], Client], keys: dict[str, int], settings: Any
) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "dag_access": "tests.ui.test_backfills.nobody"}
    op = as_role("Op")
    for path in (TASKS, "/dags/sales/runs/none/bulk/"):
        response = op.get(path, {"do": "clear", "ti": keys["clean"]})
        assert response.status_code == 404
        assert "There is no such run." in response.content.decode()


@pytest.fixture
def dags() -> None:
    factory.make_dag("sales")
    factory.make_dag("stock", is_paused=True)
    needy = shape("a", "needy", params={"day": {"value": None, "schema": {"type": "string"}}})
    factory.make_dag("needy", needy)


def runs() -> dict[str, tuple[str | None, str]]:
    return {dag: (note, by) for dag, note, by in DagRun.objects.values_list("dag_id", "note", "triggered_by")}


def test_the_ticked_dags_are_shown_then_triggered_and_the_rest_is_told(admin: Client, dags: None) -> None:
    html = admin.post(DAGS, {"dag": ["sales", "stock", "needy"], "next": "/dags/"}).content.decode()
    assert "Trigger: 3 DAGs" in html
    assert "One is paused: switch it on too, or its run waits." in html
    assert not runs()
    ids = re.findall(r'name="ids" value="([\w,]+)"', html)[0]
    asked: dict[str, Any] = {"ids": ids, "unpause": "yes", "note": "after the fire", "next": "/dags/"}
    html = admin.post(DAGS, asked, follow=True).content.decode()
    assert "Trigger: done for 2 DAGs." in html
    assert "1 was left alone. needy: " in html
    assert runs() == {"sales": ("after the fire", "ui"), "stock": ("after the fire", "ui")}
    assert not DagModel.objects.get(pk="stock").is_paused


def test_part_by_part_the_note_goes_with_each(admin: Client, dags: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PART", 1)
    html = admin.post(DAGS, {"ids": "sales,stock", "note": "again"}).content.decode()
    assert "1 of 2 are done." in html
    assert runs() == {"sales": ("again", "ui")}
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', html[html.index("data-go-on") :]))
    admin.post(DAGS, fields)
    assert runs() == {"sales": ("again", "ui"), "stock": ("again", "ui")}
    assert DagModel.objects.get(pk="stock").is_paused


def test_a_viewer_triggers_nothing(as_role: Callable[[str], Client], dags: None) -> None:
    viewer = as_role("Viewer")
    assert viewer.get(DAGS, {"dag": "sales"}).status_code == 403
    assert viewer.post(DAGS, {"ids": "sales"}).status_code == 403
    assert not runs()
