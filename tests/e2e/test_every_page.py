"""Pages of the real product: nothing for axe to find, no sideways scroll, and a budget of bytes and requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from .house import House

pytestmark = pytest.mark.processes
Open = Callable[..., Any]

#: A first visit: what is sent, compressed, and by how many answers.
ASSET_KB, REQUESTS = 40, 8
#: What only a real run shows. Every page in light, dark and narrow is walked in tests/ui/browser.
PAGES = (
    "/",
    "/dags/{dag}/",
    "/dags/{dag}/graph/",
    "/dags/{dag}/runs/{run}/tasks/load/",
    "/dags/{dag}/runs/{run}/tasks/load/?tab=rendered",
    "/dags/shelves_waiting/runs/{waiting}/tasks/wait/",
    "/jobs/",
)


@pytest.fixture(scope="module")
def names(house: House) -> dict[str, str]:
    """A run that failed, and one that is queued and does not start."""
    failed = house.trigger("rates_broken")
    waiting = house.trigger("shelves_waiting", unpause=False)
    house.until(lambda: house.api(f"/dags/rates_broken/dagRuns/{failed}")["state"] == "failed")
    return {"dag": "rates_broken", "run": quote(failed), "waiting": quote(waiting)}


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(open_page: Open, names: dict[str, str], scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page("/", scheme=scheme, width=width, bypass_csp=True)
    found: dict[str, list[str]] = {}
    for path in PAGES:
        assert page.goto(path.format(**names)).status == 200
        violations = axe.run(page).response["violations"]
        faults = [f"{one['id']}: {one['nodes'][0]['html'][:160]}" for one in violations]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            faults.append("it scrolls sideways")
        if faults:
            found[path] = faults
    assert found == {}


def test_dialogs_and_menus_are_accessible_too(open_page: Open) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page("/dags/", bypass_csp=True)
    for key, selector in (("?", "#keys"), ("Control+k", "#palette")):
        page.keyboard.press(key)
        page.locator(f"{selector}[open]").wait_for()
        assert [one["nodes"][0]["html"] for one in axe.run(page).response["violations"]] == []
        page.keyboard.press("Escape")
        page.locator(f"{selector}[open]").wait_for(state="detached")
    page.click(".top details.menu summary")
    assert [one["nodes"][0]["html"] for one in axe.run(page).response["violations"]] == []


@pytest.mark.parametrize("path", ["/dags/", "/dags/{dag}/runs/{run}/", "/dags/{dag}/runs/{run}/tasks/load/"])
def test_a_first_visit_costs_little(open_page: Open, names: dict[str, str], path: str) -> None:
    page = open_page("/healthz", allow="404")  # there is no icon for JSON
    answers: list[Any] = []
    page.on("requestfinished", lambda one: answers.append(one))
    page.goto(path.format(**names), wait_until="networkidle")
    assets = [one for one in answers if "/static/" in one.url]
    sent = sum(one.sizes()["responseBodySize"] for one in assets)
    assert sent <= ASSET_KB * 1024, [(one.url, one.sizes()["responseBodySize"]) for one in assets]
    assert 3 <= len(assets) <= REQUESTS, [one.url for one in assets]
    assert all("/static/" in one.url or "/live/" in one.url or one.resource_type == "document" for one in answers)


def test_the_theme_is_switched_by_a_key_and_kept(open_page: Open) -> None:
    page = open_page("/dags/", scheme="light")
    page.keyboard.press("t")
    page.keyboard.press("t")
    page.reload()
    assert page.get_attribute("html", "data-theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 16, 20)"


def test_ctrl_k_finds_and_does(open_page: Open) -> None:
    page = open_page("/pools/")
    page.keyboard.press("Control+k")
    page.locator("#palette input").wait_for()
    page.keyboard.type("stock_he")
    page.keyboard.press("Enter")
    page.wait_for_url("**/dags/stock_held/")
