"""What the web says while the database does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg2
import pytest
from django.db import DatabaseError, InterfaceError, OperationalError
from django.test import Client

from scheduler_app.models import db

from . import factory


@pytest.fixture(params=[OperationalError, InterfaceError, DatabaseError], ids=lambda kind: kind.__name__)
def away(admin: Client, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A logged-in client whose every statement finds the server gone, in each way in which the driver says so."""
    factory.make_job()

    def refuse(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        error = request.param("server closed the connection unexpectedly")
        raise error from getattr(psycopg2, request.param.__name__)(str(error))

    client = Client(raise_request_exception=False)
    client.cookies = admin.cookies
    with db.connection().execute_wrapper(refuse):
        yield client


@pytest.mark.parametrize("path", ["/dags/", "/login/", "/admin/", "/metrics", "/runs/?state=failed"])
def test_a_page_says_that_the_database_is_away_and_when_to_come_again(away: Client, path: str) -> None:
    answer = away.post(path, {"username": "ann", "password": "x"}) if path == "/login/" else away.get(path)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    text = answer.content.decode()
    assert "The database does not answer" in text
    assert "server closed the connection" not in text


def test_an_endpoint_says_it_in_its_own_shape(away: Client) -> None:
    answer = away.get("/api/v2/dags")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer.json() == {"detail": "The database does not answer; try again."}


def test_health_tells_load_balancers_and_clients(away: Client) -> None:
    answer = away.get("/healthz")
    assert (answer.status_code, answer.json()) == (503, {"database": "unhealthy", "scheduler": "unknown"})
    answer = away.get("/api/v2/monitor/health")
    assert (answer.status_code, answer.json()["metadatabase"]) == (200, {"status": "unhealthy"})


def test_a_bug_stays_a_bugs_page(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(db, "clock", broken)
    client = Client(raise_request_exception=False)
    client.cookies = admin.cookies
    answer = client.get("/dags/")
    assert answer.status_code == 500
    assert "Something went wrong here" in answer.content.decode()
