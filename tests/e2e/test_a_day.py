"""A person's day with the real product: what is clicked is scheduled, executed, fails, and is mended."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from .conftest import log_in
from .house import House

pytestmark = pytest.mark.processes
Open = Callable[..., Any]


def seen(page: Any, selector: str, text: str) -> None:
    """Waits until a visible element says that."""
    page.locator(selector, has_text=re.compile(text)).locator("visible=true").first.wait_for()


def states(page: Any) -> list[str]:
    return page.locator("#run-tasks tbody td .st[id]").all_inner_texts()


def test_a_dag_is_found_unpaused_triggered_with_params_and_watched(open_page: Open, house: House) -> None:
    page = open_page("/dags/")
    page.keyboard.press("/")
    page.keyboard.type("orders")
    page.wait_for_url("**/dags/?q=orders")
    page.locator("a.id").nth(1).wait_for(state="detached")
    assert page.locator("a.id").all_inner_texts() == ["orders_daily"]
    page.click("[data-pause=orders_daily]")
    seen(page, ".toast", "orders_daily is active")
    page.click("#dags tbody a:has-text('Trigger')")
    page.fill("[name='param.rows']", "7")
    page.check("[name='param.kind'][value=sample]")
    page.click("main button.go")
    page.wait_for_url("**/runs/manual__*/")
    seen(page, "#run-head h1 + .st", "Running")
    seen(page, "#run-tasks .st", "Running")
    address = page.url
    house.open_gate("gate")
    seen(page, "#run-head h1 + .st", "Success")
    assert states(page) == ["Success", "Success", "Success"]
    assert page.url == address
    page.click("a[aria-label='Log of total']")
    seen(page, "#log li", "7 rows, 21 in all")


def test_a_wrong_param_is_told_beside_its_field_and_nothing_is_lost(open_page: Open) -> None:
    page = open_page("/dags/orders_daily/trigger/", allow="400 (Bad Request)")
    page.fill("[name='param.rows']", "9")
    page.check("[name='param.kind'][value=sample]")
    page.fill("[name='param.limits']", '{"eu": "many"')
    page.click("summary:has-text('More')")
    page.fill("[name=note]", "for the audit of März")
    page.click("main button.go")
    field = page.locator(".field", has=page.locator("[name='param.limits']"))
    assert field.locator(".error").inner_text().startswith("This is not JSON")
    assert page.input_value("[name='param.limits']") == '{"eu": "many"'
    assert page.input_value("[name='param.rows']") == "9"
    assert page.is_checked("[name='param.kind'][value=sample]")
    assert page.input_value("[name=note]") == "for the audit of März"
    page.fill("[name='param.limits']", '{"eu": "many"}')
    page.click("main button.go")
    assert "'many' is not of type 'integer'" in field.locator(".error").inner_text()
    seen(page, "[role=alert]", "Nothing was triggered")
    assert page.input_value("[name='param.limits']").replace("\n", "").replace(" ", "") == '{"eu":"many"}'


def test_a_failure_is_read_understood_cleared_and_ends_green(open_page: Open, house: House) -> None:
    page = open_page("/dags/rates_import/trigger/")
    page.click("main button.go")  # the box "switch it on too" is ticked
    page.wait_for_url("**/runs/manual__*/")
    seen(page, "#run-head h1 + .st", "Failed")
    assert states(page) == ["Success", "Failed", "Upstream failed"]
    page.click("a[aria-label='Log of load']")
    seen(page, "#log li", "looking up the rate")
    seen(page, "#log li", "KeyError: 'fx'")
    seen(page, ".banner", "KeyError: 'fx'")
    page.click("aside a.chip:has-text('report')")
    seen(page, "h1", "^report$")
    seen(page, ".banner", "load: failed")
    page.click("aside a.chip:has-text('load')")
    seen(page, "h1", "^load$")
    house.open_gate("mended-rates_import")
    page.keyboard.press("c")
    seen(page, "main button", "Clear 2 tasks")
    assert page.locator("#preview .chip").all_inner_texts() == ["load", "report"]
    page.fill("[name=note]", "the rates are there now")
    page.click("text=Clear 2 tasks")
    page.wait_for_url("**/runs/manual__*/")
    seen(page, "#run-head h1 + .st", "Success")
    assert states(page) == ["Success", "Success", "Success"]


def test_a_run_is_held_says_why_and_is_released(open_page: Open) -> None:
    page = open_page("/dags/stock_held/trigger/")
    page.uncheck("[name=unpause]")
    page.click("main button.go")
    page.wait_for_url("**/runs/manual__*/")
    page.click("summary:has-text('Hold…')")
    page.fill("[name=why]", "the shelves are being counted")
    page.click("details[open] button.go")
    seen(page, ".banner", "the shelves are being counted")
    page.click("[data-pause=stock_held]")
    page.click("#run-tasks a.id:has-text('count')")
    seen(page, ".why", "holds this run")
    page.go_back()
    page.click("button:has-text('Release')")
    seen(page, "#run-head h1 + .st", "Success")


def test_a_backfill_is_looked_at_made_and_watched_to_its_end(open_page: Open) -> None:
    page = open_page("/dags/stock_daily/")
    page.click(".tabs a:has-text('Backfills')")
    page.click("a:has-text('Make one')")
    page.fill("#from", "2026-01-02T00:00")
    page.fill("#to", "2026-01-04T00:00")
    page.click("text=Show the slots")
    seen(page, "#preview h2", "3 slots would run")
    page.click("text=Run 3 slots")
    page.wait_for_url("**/backfills/*/")
    seen(page, ".banner", "The DAG is paused")
    page.click("[data-pause=stock_daily]")
    seen(page, "#backfill-progress h2", "3 of 3 slots are done")
    assert page.locator("#backfill-slots .st").all_inner_texts() == ["Success", "Success", "Success"]


def test_ticked_tasks_are_cleared_together(open_page: Open, house: House) -> None:
    run_id = house.trigger("stock_keys")
    path = f"/dags/stock_keys/dagRuns/{quote(run_id)}"
    house.until(lambda: house.api(path)["state"] == "success")
    page = open_page(f"/dags/stock_keys/runs/{quote(run_id)}/")
    for box in page.locator("[name=ti]").all():
        box.check()
    page.click("#bulk button:has-text('Clear')")
    page.click("button:has-text('Clear: 2 tasks')")
    seen(page, ".toast", "2 tasks were cleared")
    seen(page, "#run-head h1 + .st", "Success")
    assert page.locator("#run-tasks td.num[id$=-try]").all_inner_texts() == ["2/2", "2/2"]


def test_the_same_day_without_javascript(open_page: Open, house: House) -> None:
    page = open_page("/dags/", javascript=False)
    page.fill("#filter", "rates_plain")
    page.keyboard.press("Enter")
    page.click("[data-pause=rates_plain]")
    assert page.get_attribute("[data-pause=rates_plain]", "aria-checked") == "true"
    page.click("main a:has-text('Trigger')")
    page.click("main button.go")
    page.wait_for_url("**/runs/manual__*/")
    reload_until(page, "#run-head h1 + .st", "Failed")
    page.click("a[aria-label='Log of load']")
    assert "KeyError: 'fx'" in page.inner_text("#log")
    house.open_gate("mended-rates_plain")
    page.click("a:has-text('Clear…')")
    page.click("button:has-text('Clear 2 tasks')")
    page.wait_for_url("**/runs/manual__*/")
    reload_until(page, "#run-head h1 + .st", "Success")


def reload_until(page: Any, selector: str, text: str) -> None:
    """What a reader without JavaScript does."""
    for _ in range(150):
        if page.inner_text(selector) == text:
            return
        page.wait_for_timeout(200)
        page.reload()
    raise AssertionError(f"{selector} never says {text}")


def test_keys_alone_are_enough(open_page: Open) -> None:
    page = open_page("/")
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/dags/")
    page.keyboard.press("/")
    page.keyboard.type("stock_keys")
    page.wait_for_url("**/dags/?q=stock_keys")
    page.locator("a.id").nth(1).wait_for(state="detached")
    tab_to(page, "a.id")
    page.keyboard.press("Enter")
    page.wait_for_url("**/dags/stock_keys/")
    page.keyboard.press("r")
    page.wait_for_url("**/trigger/")
    tab_to(page, "main button.go")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/manual__*/")
    seen(page, "#run-head h1 + .st", "Success")
    tab_to(page, "#run-tasks a.id")
    page.keyboard.press("Enter")
    page.wait_for_url("**/tasks/count/")
    seen(page, "#log li", "counted")


def tab_to(page: Any, selector: str) -> None:
    """Presses Tab until that has the focus, and can be seen to have it."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none"
            return
    raise AssertionError(f"Tab never comes to {selector}")


def test_the_login_comes_first_and_leads_back(chromium: Any, house: House) -> None:
    context = chromium.new_context(base_url=house.url)
    page = context.new_page()
    log_in(page, "/pools/")
    assert page.inner_text("h1") == "Pools"
    page.click(".menu summary")
    page.click("text=Log out")
    page.wait_for_url("**/login/**")
    page.goto("/dags/")
    assert page.url.endswith("/login/?next=/dags/")
    context.close()
