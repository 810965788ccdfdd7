"""Many runs at once: shown first, then done run by run."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from scheduler_app.models import DagRun, TaskInstance
from scheduler_app.ui import batches, run_bulk

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db

BULK = "/bulk/runs/"


@pytest.fixture
def runs() -> dict[str, int]:
    dag = factory.make_dag("sales")
    made = {}
    for hours, (name, state) in enumerate([("ok", "success"), ("bad", "failed"), ("busy", "running")], 1):
        states = {"extract": "failed" if state == "failed" else "success"}
        made[name] = factory.make_run(dag, name, state, states, NOW - timedelta(hours=hours)).pk
    return made


def states() -> dict[str, str]:
    return dict(DagRun.objects.values_list("run_id", "state"))


def ids(client: Client, **asked: object) -> str:
    """What the preview would send."""
    found = re.search(r'name="ids" value="([\d,]*)"', client.get(BULK, asked).content.decode())
    assert found is not None
    return found[1]


def test_the_ticked_runs_are_shown_before_anything_is_done(admin: Client, runs: dict[str, int]) -> None:
    html = admin.get(BULK, {"do": "failed", "run": [runs["busy"], runs["ok"]]}).content.decode()
    assert "Mark as failed: 2 runs" in html
    assert sorted(re.findall(r'<a class="id" href="/dags/sales/runs/(\w+)/"', html)) == ["busy", "ok"]
    assert states() == {"ok": "success", "bad": "failed", "busy": "running"}


def test_what_was_shown_is_done_and_what_cannot_be_is_told(admin: Client, runs: dict[str, int]) -> None:
    shown = ids(admin, do="delete", run=list(runs.values()))
    html = admin.post(BULK, {"do": "delete", "ids": shown}, follow=True).content.decode()
    assert "Delete: done for 2 runs." in html
    assert "1 was left alone." in html
    assert "is running and cannot be deleted" in html
    assert states() == {"busy": "running"}


def test_all_that_match_are_cleared(admin: Client, runs: dict[str, int]) -> None:
    shown = ids(admin, do="clear_failed", all="yes", state="failed")
    assert shown == str(runs["bad"])
    admin.post(BULK, {"do": "clear_failed", "ids": shown})
    assert states() == {"ok": "success", "bad": "queued", "busy": "running"}
    assert TaskInstance.objects.get(dag_run=runs["bad"], task_id="extract").state is None


def test_many_ask_for_their_number(admin: Client, runs: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "ASK_FROM", 1)
    shown = ids(admin, do="success", run=[runs["busy"], runs["bad"]])
    assert admin.post(BULK, {"do": "success", "ids": shown}).status_code == 400
    assert states()["busy"] == "running"
    admin.post(BULK, {"do": "success", "ids": shown, "number": "2"})
    assert states() == {"ok": "success", "bad": "success", "busy": "success"}


def test_of_more_than_one_deed_takes_the_newest_are_taken(
    admin: Client, runs: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MOST", 2)
    assert ids(admin, do="clear", all="yes") == f"{runs['busy']},{runs['bad']}"
    assert admin.post(BULK, {"do": "clear", "ids": ",".join(map(str, runs.values()))}).status_code == 400


def test_many_are_done_part_by_part_and_leaving_half_way_undoes_nothing(
    admin: Client, runs: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "PART", 1)
    fields = {"do": "delete", "ids": ids(admin, do="delete", run=list(runs.values())), "next": "/runs/"}
    for n, left in enumerate(({"busy", "bad", "ok"}, {"busy", "ok"}), 1):
        html = admin.post(BULK, fields).content.decode()
        assert f"{n} of 3 are done." in html
        assert set(states()) == left
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', html[html.index("data-go-on") :]))
    html = admin.post(BULK, fields, follow=True).content.decode()
    assert "Delete: done for 2 runs." in html
    assert "1 was left alone. sales, busy: " in html
    assert set(states()) == {"busy"}


@pytest.mark.parametrize(
    ("asked", "leads"),
    [
        ("/runs/?state=failed", "/runs/?state=failed"),
        ("", "/runs/"),
        ("https://evil.example/runs/", "/runs/"),
        ("//evil.example/", "/runs/"),
        ("javascript:alert(1)", "/runs/"),
    ],
)
def test_to_stop_half_way_leads_to_a_page_of_ours(
    admin: Client, runs: dict[str, int], monkeypatch: pytest.MonkeyPatch, asked: str, leads: str
) -> None:
    monkeypatch.setattr(batches, "PART", 1)
    html = admin.post(BULK, {"do": "clear", "ids": f"{runs['ok']},{runs['bad']}", "next": asked}).content.decode()
    assert re.findall(r'href="([^"]*)">Stop here', html) == [leads]


@pytest.mark.parametrize("asked", [{"do": "clear"}, {"do": "explode", "run": "1"}, {}])
def test_without_a_tick_or_a_known_deed_nothing_is_shown(
    admin: Client, runs: dict[str, int], asked: dict[str, str]
) -> None:
    assert admin.get(BULK, asked).status_code == 400


def test_the_list_offers_each_reader_what_they_may_do(
    admin: Client, as_role: Callable[[str], Client], runs: dict[str, int]
) -> None:
    for path in ("/runs/", "/dags/sales/runs/"):
        html = admin.get(path).content.decode()
        assert len(re.findall(r'<input type="checkbox" form="bulk" name="run"', html)) == 3
        assert re.findall(r'<button class="btn" name="do" value="(\w+)"', html) == list(run_bulk.DEEDS)
    viewer = as_role("Viewer")
    assert 'form="bulk"' not in viewer.get("/runs/").content.decode()
    assert viewer.get(BULK, {"do": "clear", "run": runs["ok"]}).status_code == 403
    assert viewer.post(BULK, {"do": "clear", "ids": str(runs["ok"])}).status_code == 403
    assert states() == {"ok": "success", "bad": "failed", "busy": "running"}
