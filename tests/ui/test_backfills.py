"""Backfills on the pages: slots are shown before they are made, then followed, paused and cancelled."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler_app.models import Audit, Backfill, BackfillSlot, DagModel

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db

NEW = "/dags/sales/backfills/new/"
THREE = {"from": "2030-01-01T00:00", "to": "2030-01-03T00:00"}


@pytest.fixture
def sales() -> DagModel:
    return factory.make_dag(
        "sales",
        timetable={"kind": "cron_trigger", "expression": "0 0 * * *", "timezone": "UTC"},
        timetable_summary="0 0 * * *",
    )


def make(dag: DagModel, outcomes: list[tuple[str | None, str | None]], **fields: Any) -> Backfill:
    """A backfill with a slot for each (outcome, state of its run or None for no run)."""
    values = {"from_date": NOW - timedelta(days=9), "to_date": NOW, "created_at": NOW, "updated_at": NOW}
    row = Backfill.objects.create(dag=dag, **(values | fields))
    for number, (outcome, state) in enumerate(outcomes, 1):
        day = NOW - timedelta(days=10 - number)
        run = factory.make_run(dag, f"b{row.pk}_{number}", state, at=day, backfill_id=row.pk) if state else None
        BackfillSlot.objects.create(
            backfill=row, ordinal=number, logical_date=day, run_after=day, outcome=outcome, dag_run=run
        )
    return row


MIXED: list[tuple[str | None, str | None]] = [
    ("created", "success"),
    ("cleared", "failed"),
    ("created", "running"),
    ("already exists", "success"),
    (None, None),
    ("cancelled", None),
]


def text(response: Any) -> str:
    page: str = response.content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_the_slots_are_shown_and_nothing_is_made(admin: Client, sales: DagModel) -> None:
    shown = text(admin.get(NEW, THREE))
    assert "3 slots would run" in shown
    assert "2030-01-01 00:00:00 UTC 2030-01-02 00:00:00 UTC 2030-01-03 00:00:00 UTC" in shown
    assert not Backfill.objects.exists()


def test_what_was_shown_is_made_with_who_and_why(admin: Client, sales: DagModel) -> None:
    asked = {**THREE, "expect": "3", "most": "2", "reverse": "yes", "conf": '{"x": 1}', "why": "new prices"}
    response = admin.post(NEW, asked)
    row = Backfill.objects.get()
    assert response.headers["Location"] == f"/backfills/{row.pk}/"
    assert (row.max_active_runs, row.reverse, row.dag_run_conf, row.reprocess_behavior) == (2, True, {"x": 1}, "none")
    assert [slot.logical_date.day for slot in row.slots.order_by("ordinal") if slot.logical_date] == [3, 2, 1]
    audit = Audit.objects.get()
    assert (audit.event, audit.owner, audit.reason) == ("create_backfill", "ann", "new prices")


def test_nothing_is_made_when_the_slots_are_others_by_then(admin: Client, sales: DagModel) -> None:
    factory.make_run(sales, "there", "success", at=NOW.replace(day=2, hour=0))
    response = admin.post(NEW, {**THREE, "expect": "3"})
    assert response.status_code == 400
    assert "Which slots would run changed since the preview." in text(response)
    assert not Backfill.objects.exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"from": "soon"}, "“soon” is no date and time."),
        ({"from": ""}, "Say when."),
        ({"to": "2031-01-01T00:00"}, "to_date lies in the future."),
        ({"to": "2029-01-01T00:00"}, "to_date lies before from_date."),
        ({"most": "0"}, "A number from 1 on."),
        ({"most": "many"}, "A number from 1 on."),
        ({"conf": "{"}, "This is not JSON"),
        ({"conf": "[1]"}, "must be a JSON object"),
        ({"reprocess": "odd"}, "It is one of none, failed, completed."),
    ],
)
def test_what_is_wrong_is_told_beside_its_field_and_kept(
    admin: Client, sales: DagModel, changes: dict[str, str], said: str
) -> None:
    asked = {**THREE, "why": "the audit of März", **changes}
    response = admin.get(NEW, asked)
    assert response.status_code == 400
    assert said in text(response)
    assert "the audit of März" in response.content.decode()


def test_a_dag_without_a_schedule_has_no_slots(admin: Client) -> None:
    factory.make_dag("sales")
    assert "has no schedule whose past slots can be listed" in text(admin.get(NEW, THREE))


def test_the_page_counts_the_slots_by_what_became_of_them(admin: Client, sales: DagModel) -> None:
    row = make(sales, MIXED)
    shown = text(admin.get(f"/backfills/{row.pk}/"))
    assert "4 of 6 slots are done" in shown
    assert "All 6 Success 1 Failed 1 Running 1 Waiting 1 Left alone 1 Cancelled 1" in shown
    for name, run in (("success", 1), ("failed", 2), ("running", 3), ("left", 4)):
        html = admin.get(f"/backfills/{row.pk}/?show={name}").content.decode()
        assert re.findall(r"/dags/sales/runs/(b\w+)/", html) == [f"b{row.pk}_{run}"]
    for name, ordinal in (("waiting", 5), ("cancelled", 6)):
        html = admin.get(f"/backfills/{row.pk}/?show={name}").content.decode()
        assert re.findall(r'<td class="num tick">(\d+)</td>', html) == [str(ordinal)]


def test_one_whose_slots_are_still_asked_for_says_so(admin: Client, sales: DagModel) -> None:
    row = make(sales, [], slots_pending=True)
    assert "The DAG processor asks the timetable" in text(admin.get(f"/backfills/{row.pk}/"))


def test_its_next_run_says_why_it_waits(admin: Client, sales: DagModel) -> None:
    factory.make_job()
    row = make(sales, [("created", "running"), ("created", "queued")], max_active_runs=1)
    assert (
        f"The next run b{row.pk}_2 waits: As many runs of backfill {row.pk} are running as it allows (1). "
        "It starts when one of them ends."
    ) in text(admin.get(f"/backfills/{row.pk}/"))


def test_it_is_paused_goes_on_and_is_cancelled_with_a_reason(admin: Client, sales: DagModel) -> None:
    row = make(sales, MIXED)
    change = f"/backfills/{row.pk}/change/"
    assert f"Backfill {row.pk} is paused." in text(admin.post(change, {"do": "pause"}, follow=True))
    row.refresh_from_db()
    assert row.is_paused
    admin.post(change, {"do": "resume"})
    assert "was cancelled" in text(admin.post(change, {"do": "cancel", "why": "wrong range"}, follow=True))
    row.refresh_from_db()
    assert (row.is_paused, row.completed_at) == (False, NOW)
    events = list(Audit.objects.order_by("id").values_list("event", "reason"))
    assert events == [("pause_backfill", None), ("unpause_backfill", None), ("cancel_backfill", "wrong range")]
    assert admin.post(change, {"do": "pause"}).status_code == 409
    assert admin.post(change, {"do": "burn"}).status_code == 400


def test_a_viewer_sees_it_and_changes_nothing(as_role: Callable[[str], Client], sales: DagModel) -> None:
    row = make(sales, MIXED)
    viewer = as_role("Viewer")
    html = viewer.get(f"/backfills/{row.pk}/").content.decode()
    assert 'name="do"' not in html
    assert "backfills/new" not in viewer.get("/dags/sales/backfills/").content.decode()
    assert viewer.post(f"/backfills/{row.pk}/change/", {"do": "cancel"}).status_code == 403
    assert viewer.get(NEW).status_code == 403
    assert viewer.post(NEW, {**THREE, "expect": "3"}).status_code == 403
    row.refresh_from_db()
    assert row.completed_at is None


def test_a_dag_that_is_not_the_readers_hides_its_backfills(
    as_role: Callable[[str], Client], sales: DagModel, settings: Any
) -> None:
    row = make(sales, MIXED)
    settings.SCHEDULER = {**settings.SCHEDULER, "dag_access": "tests.ui.test_backfills.nobody"}
    op = as_role("Op")
    assert op.get(f"/backfills/{row.pk}/").status_code == 404
    assert "sales" not in op.get("/backfills/").content.decode()
    assert op.post(f"/backfills/{row.pk}/change/", {"do": "cancel"}).status_code == 404
    assert op.get(f"/live/?page=backfill:{row.pk}").status_code == 404


def nobody(actor: Any, verb: str) -> Any:
    from django.db.models import Q

    return Q(pk__in=[])


def test_the_live_poll_tells_of_a_slot_that_ended(admin: Client, sales: DagModel) -> None:
    row = make(sales, [("created", "running"), (None, None)])
    live = f"/live/?page=backfill:{row.pk}"
    token = admin.get(live).json()["v"]
    assert admin.get(live, {"page": f"backfill:{row.pk}", "token": token}).status_code == 204
    row.slots.filter(ordinal=2).update(outcome="already exists")
    answer = admin.get("/live/", {"page": f"backfill:{row.pk}", "token": token}).json()
    assert answer["refresh"] == ["backfill-head", "backfill-progress", "backfill-slots"]
    assert answer["done"] is False


def test_lists_and_pages_cost_the_same_for_many(admin: Client) -> None:
    def cost(path: str) -> int:
        with CaptureQueriesContext(connection) as caught:
            assert admin.get(path).status_code == 200
        return len(caught)

    first = make(factory.make_dag("one"), MIXED)
    assert (cost("/backfills/"), cost("/dags/one/backfills/"), cost(f"/backfills/{first.pk}/")) == (5, 6, 9)
    for name in ("two", "three", "four"):
        make(factory.make_dag(name), MIXED * 3)
    many = make(factory.make_dag("five"), MIXED * 20)
    assert (cost("/backfills/"), cost("/dags/one/backfills/"), cost(f"/backfills/{many.pk}/")) == (5, 6, 9)


def test_of_an_authors_own_timetable_it_is_said_that_nobody_can_list_the_slots_yet(admin: Client) -> None:
    factory.make_dag("sales", timetable={"kind": "custom", "class": "my.Timetable"}, timetable_summary="Mine")
    asked = {"from": "2026-01-01T00:00", "to": "2026-01-03T00:00"}
    page = admin.get(NEW, asked)
    assert page.status_code == 200
    assert "Only the timetable class of the DAG sales can list its slots" in text(page)
    assert admin.post(NEW, {**asked, "expect": "3"}).status_code == 400
    assert not Backfill.objects.exists()
    answer = admin.post(NEW, {**asked, "expect": "unlisted"}, follow=True)
    assert "The backfill is made: the timetable's class is asked for its slots now." in html.unescape(text(answer))
    assert Backfill.objects.get().slots_pending is True
