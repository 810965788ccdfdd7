"""Words of the pages: spans, distances in time, the filter box, the worst state."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from scheduler_app.queries.page_dags import Words, words_of
from scheduler_app.templatetags import scheduler_pictures, scheduler_ui
from scheduler_app.ui.worst import ORDER, worst

from .factory import NOW


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.42, "0.4 s"), (59.4, "59 s"), (134, "2 m 14 s"), (11_100, "3 h 05 m"), (187_200, "2 d 4 h"), (None, "–")],
)
def test_a_span_has_two_units_at_most(seconds: float | None, text: str) -> None:
    assert scheduler_ui.span(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(240, "in 4 min"), (-7300, "2 h ago"), (0.5, "just now")])
def test_a_moment_is_told_by_its_distance(seconds: float, text: str) -> None:
    assert scheduler_ui.relative(NOW + timedelta(seconds=seconds), NOW) == text


def test_the_filter_box_knows_its_words() -> None:
    words = words_of('sales tag:finance owner:ml paused:no state:failed "two words" x:y')
    assert words == Words(("sales", "two words", "x:y"), ("finance",), ("ml",), False, "failed")


def test_an_open_quote_in_the_filter_box_is_text() -> None:
    assert words_of('say "hello').text == ("say", '"hello')


def test_a_failure_hides_behind_nothing() -> None:
    assert worst(["success", "running", "failed"]) == "failed"
    assert worst(["skipped", "success"]) == "success"
    assert worst(["none", "success"]) == "none"


def test_every_state_has_a_word_and_a_rank() -> None:
    assert set(ORDER) == set(scheduler_ui.STATE_LABELS) - {"held"}


@pytest.mark.parametrize("run_id", ["r1", "scheduled__2030-01-31T12:00:00+00:00", "a b~c@d", "größe", "x%20y"])
def test_the_quick_address_of_a_run_is_the_resolved_one(run_id: str) -> None:
    assert scheduler_pictures.run_url("sales.eu", run_id) == reverse("scheduler:run", args=["sales.eu", run_id])
