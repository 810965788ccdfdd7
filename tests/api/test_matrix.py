"""Every route of the API, by every method that it takes, as each role and as nobody: the status is what the table says,
and what comes back fits the schema that Airflow publishes.

A route that is not in the table fails the first test, so that nobody adds one without saying who may use it.
"""

from __future__ import annotations

import json

import pytest

from scheduler_app.models import Audit
from tests.api import published
from tests.api.every_route import NOBODY, OURS, RANK, TABLE, VIEWER, address, ask, routes

#: answers that are not JSON, or are no answers of Airflow's API
NOT_JSON = {"auth/login", "auth/logout", "dags/{dag_id}/dagRuns/{dag_run_id}/wait"}


def theirs(route: str) -> bool:
    return route not in OURS and not route.startswith("/auth")


def test_the_table_names_every_route_and_no_other():
    there = list(routes())
    assert len(there) == len(set(there))
    assert set(there) == set(TABLE)


@pytest.mark.parametrize("role", RANK)
def test_each_role_is_answered_what_the_table_says_in_the_published_shape(world, spec, role):
    http = world(None if role == NOBODY else role)
    wrong = {}
    for (method, route), (least, status) in TABLE.items():
        may = RANK.index(role) >= RANK.index(least)
        expected = status if may else 401 if role == NOBODY else 403
        answer, told = ask(http, method, route)
        if answer.status_code != expected:
            wrong[f"{method} {route}"] = (answer.status_code, expected, told[:200])
        elif theirs(route) and not (may and route in NOT_JSON):
            path = address(route).removeprefix("/api/v2/")
            if mistakes := published.mistakes(spec, method, path, answer):
                wrong[f"{method} {route}"] = mistakes
    assert wrong == {}


def test_nobody_is_told_how_to_log_in_and_changes_nothing(world):
    http = world(None)
    before = Audit.objects.count()
    for (method, route), (least, _) in TABLE.items():
        if least != NOBODY:
            answer, _ = ask(http, method, route)
            assert (answer.status_code, "detail" in answer.json()) == (401, True), (method, route)
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert Audit.objects.count() == before


def test_who_waits_for_a_run_reads_its_state_and_results_line_by_line(world):
    answer, told = ask(world(VIEWER), "GET", "dags/{dag_id}/dagRuns/{dag_run_id}/wait")
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert [json.loads(line) for line in told.splitlines()] == [{"state": "success", "results": {"plain": 7}}]
