"""What a person does, from the login to the release of a held run: with a mouse, with keys, and without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduler_app.models import DagModel, DagRun, TaskInstance, db, transitions
from scheduler_app.ui import batches
from ui import factory

pytestmark = [pytest.mark.django_db(transaction=True, serialized_rollback=True), pytest.mark.processes]

Open = Callable[..., Any]


def eventually(page: Any, selector: str, text: str) -> None:
    page.locator(selector, has_text=text).first.wait_for()


def test_a_dag_is_found_paused_and_the_pause_undone(open_page: Open) -> None:
    for name in ("sales", "stock", "churn"):
        factory.make_dag(name, now=db.clock())
    page = open_page("/dags/")
    page.keyboard.press("/")
    page.keyboard.type("sal")
    page.wait_for_url("**/dags/?q=sal")
    assert page.locator("a.id").all_inner_texts() == ["sales"]
    page.click("[data-pause=sales]")
    eventually(page, ".toast", "sales is paused.")
    assert page.get_attribute("[data-pause=sales]", "aria-checked") == "false"
    assert DagModel.objects.get(pk="sales").is_paused
    page.click(".toast button")
    eventually(page, ".toast", "sales is active.")
    assert page.get_attribute("[data-pause=sales]", "aria-checked") == "true"
    assert not DagModel.objects.get(pk="sales").is_paused


def test_a_run_is_triggered_with_params_and_watched_live(open_page: Open) -> None:
    params = {"rows": {"value": 10, "schema": {"type": "integer"}}}
    factory.make_dag("sales", factory.spec("sales", params=params), now=db.clock())
    page = open_page("/dags/sales/")
    page.keyboard.press("r")
    page.fill("[name='param.rows']", "7")
    page.click("form.body button.go")
    page.wait_for_url("**/dags/sales/runs/manual__*/")
    run = DagRun.objects.get()
    assert run.conf == {"rows": 7}
    now = db.clock()
    transitions.runs("start", [run.pk], now)
    eventually(page, "#run-head .st", "Running")
    extract = TaskInstance.objects.get(task_id="extract")
    transitions.tasks("schedule", [extract.pk], now)
    eventually(page, f"#ti-{extract.pk}", "Scheduled")


def test_a_run_is_held_with_a_reason_and_released(open_page: Open) -> None:
    factory.make_run(factory.make_dag("sales", now=db.clock()), "r1", at=db.clock())
    page = open_page("/dags/sales/runs/r1/")
    page.click("summary:has-text('Hold…')")
    page.fill("[name=why]", "the feed is late")
    page.click("details[open] button.go")
    eventually(page, ".banner", "the feed is late")
    assert DagRun.objects.get().held_by == "ann"
    page.click("button:has-text('Release')")
    eventually(page, ".toast", "The run goes on.")
    assert DagRun.objects.get().held_at is None


def test_everything_works_without_javascript(open_page: Open) -> None:
    factory.make_run(factory.make_dag("sales", now=db.clock()), "r1", "failed", {"check": "failed"}, at=db.clock())
    page = open_page("/dags/", javascript=False)
    page.fill("#filter", "sales")
    page.keyboard.press("Enter")
    page.click("[data-pause=sales]")
    assert DagModel.objects.get().is_paused
    eventually(page, ".toast", "sales is paused.")
    page.click("a.id")
    page.click("a:has-text('Grid')")
    page.click("td a[aria-label^='check']")
    page.click("a:has-text('Clear…')")
    page.click("button:has-text('Clear 2 tasks')")
    assert set(TaskInstance.objects.filter(task_id__in=["check", "load"]).values_list("state", flat=True)) == {None}


def test_the_clear_preview_follows_its_toggles(open_page: Open) -> None:
    factory.make_run(factory.make_dag("sales", now=db.clock()), "r1", "failed", {"check": "failed"}, at=db.clock())
    page = open_page("/dags/sales/runs/r1/tasks/check/")
    page.keyboard.press("c")
    eventually(page, "button", "Clear 2 tasks")
    page.check("[name=upstream]")
    eventually(page, "button", "Clear 3 tasks")
    page.click("button:has-text('Clear 3 tasks')")
    eventually(page, ".toast", "3 tasks were cleared.")


def test_a_log_is_followed_and_searched(open_page: Open, settings: Any, tmp_path: Path) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "log_folder": tmp_path}
    run = factory.make_run(
        factory.make_dag("sales", now=db.clock()), "r1", "running", {"check": "running"}, at=db.clock()
    )
    instance = TaskInstance.objects.select_related("dag_run").get(dag_run=run, task_id="check")
    file = factory.make_log(tmp_path, instance, factory.log_lines(20, db.clock())[:-1])
    page = open_page("/dags/sales/runs/r1/tasks/check/")
    assert page.locator("#log li").count() == 20
    with file.open("a") as handle:
        handle.write('{"event": "the needle", "level": "info"}\n')
    eventually(page, "#log li", "the needle")
    page.fill("#find", "needle")
    assert page.locator("#log li.hit").all_inner_texts() != []
    assert page.inner_text("#found") == "1"


def test_the_theme_is_switched_and_kept(open_page: Open) -> None:
    page = open_page("/pools/")
    page.keyboard.press("t")
    page.keyboard.press("t")
    assert page.get_attribute("html", "data-theme") == "dark"
    page.reload()
    assert page.get_attribute("html", "data-theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 16, 20)"


def test_the_palette_finds_with_keys_alone_and_acts(open_page: Open) -> None:
    for name in ("sales", "stock"):
        factory.make_dag(name, now=db.clock())
    page = open_page("/pools/")
    page.keyboard.press("Control+k")
    page.locator("#palette-text").wait_for()
    page.keyboard.type("stock")
    eventually(page, "#palette .hits [data-chosen]", "stock")
    page.keyboard.press("Enter")
    page.wait_for_url("**/dags/stock/")
    page.keyboard.press("Control+k")
    page.locator("#palette-text").wait_for()
    page.keyboard.type("pause sales")
    eventually(page, "#palette .hits [data-chosen]", "Pause sales")
    page.keyboard.press("Enter")
    eventually(page, ".toast", "sales is paused.")
    assert DagModel.objects.get(pk="sales").is_paused
    assert page.url.endswith("/dags/stock/")


def test_a_cell_of_the_grid_opens_its_panel_by_mouse_and_by_arrows(open_page: Open) -> None:
    states = {"extract": "success", "clean": "failed"}
    factory.make_run(factory.make_dag("sales", now=db.clock()), "r1", "failed", states, at=db.clock())
    page = open_page("/dags/sales/grid/")
    page.click("td a[aria-label^='extract']")
    eventually(page, "#cell h2", "extract")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    eventually(page, "#cell h2", "clean")
    page.wait_for_url("**/dags/sales/grid/?cell=r1%2Fclean")
    page.reload()
    eventually(page, "#cell h2", "clean")
    assert page.get_attribute("td a[aria-current]", "aria-label") == "clean · Failed"
    page.click("#cell >> text=Open")
    page.wait_for_url("**/dags/sales/runs/r1/tasks/clean/")


def test_the_rest_of_a_deed_on_many_goes_by_itself_and_no_click_sends_it_twice(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "PART", 1)
    for name in ("sales", "stock"):
        factory.make_dag(name, now=db.clock())
    page = open_page("/dags/")
    page.goto("/bulk/dags/trigger/?dag=sales&dag=stock")
    sent: list[str] = []

    def answer(route: Any) -> None:
        sent.append(route.request.post_data)
        if len(sent) == 1:
            route.continue_()
        else:
            route.fulfill(status=204)  # the browser stays where it is, as while an answer is awaited

    page.route("**/bulk/dags/trigger/", answer)
    page.click("form.form button.go")
    eventually(page, "[role=status]", "1 of 2 are done.")
    page.locator("[data-go-on] button:disabled").wait_for()
    page.locator("[data-go-on] button").click(force=True)
    assert ["ids=stock&total=2&done=1" in data for data in sent] == [False, True]
    assert DagRun.objects.get().dag_id == "sales"
