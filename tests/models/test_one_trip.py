"""What the engine promises: BEGIN goes with the first statement, and everything else is as with Django's own."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import TRANSACTION_STATUS_IDLE, TRANSACTION_STATUS_INTRANS

from scheduler_app.models import Variable, db

pytestmark = pytest.mark.django_db(transaction=True)


def status() -> int:
    return int(db.connection().connection.info.transaction_status)


def seen_by_others() -> list[str]:
    params = {**db.connection().get_connection_params(), "cursor_factory": None}
    other = psycopg2.connect(**params)
    try:
        with other.cursor() as handle:
            handle.execute("SELECT key FROM scheduler_variable ORDER BY key")
            return [key for (key,) in handle.fetchall()]
    finally:
        other.close()


def add(key: str) -> None:
    Variable.objects.create(key=key)


def test_begin_travels_with_the_first_statement() -> None:
    with db.atomic(), db.cursor() as handle:
        handle.execute("SELECT %s", ["first"])
        assert handle.cursor.query == b"BEGIN; SELECT 'first'"
        assert handle.fetchall() == [("first",)]
        assert status() == TRANSACTION_STATUS_INTRANS
        handle.execute("SELECT 2")
        assert handle.cursor.query == b"SELECT 2"
    assert status() == TRANSACTION_STATUS_IDLE
    assert db.fetch("SELECT 3") == [(3,)]
    assert status() == TRANSACTION_STATUS_IDLE


def test_a_block_that_sends_nothing_opens_nothing() -> None:
    db.fetch("SELECT 1")
    with db.atomic():
        assert status() == TRANSACTION_STATUS_IDLE
    with db.cursor() as handle:
        handle.execute("SELECT 1")
        assert handle.cursor.query == b"SELECT 1"


def test_what_is_committed_is_seen_by_others_and_what_is_not_is_not() -> None:
    told: list[str] = []
    with db.atomic():
        add("kept")
        db.on_commit(lambda: told.append("committed"))
        assert (seen_by_others(), told) == ([], [])
    assert (seen_by_others(), told) == (["kept"], ["committed"])
    with contextlib.suppress(KeyError), db.atomic():
        add("taken back")
        raise KeyError
    assert seen_by_others() == ["kept"]
    assert status() == TRANSACTION_STATUS_IDLE


def test_an_error_in_the_first_statement_takes_the_transaction_back() -> None:
    with pytest.raises(db.DatabaseError), db.atomic():
        db.execute("SELECT 1 / 0")
    assert status() == TRANSACTION_STATUS_IDLE
    with db.atomic():
        with pytest.raises(db.DatabaseError), db.atomic():  # a savepoint is the first statement here
            db.execute("SELECT 1 / 0")
        add("after")
    assert seen_by_others() == ["after"]


def many(handle: Any) -> None:
    handle.executemany("SELECT %s", [[1], [2]])


def copied(handle: Any) -> None:
    handle.copy_expert("COPY scheduler_variable TO STDOUT", io.StringIO())


def called(handle: Any) -> None:
    handle.callproc("pg_backend_pid")


@pytest.mark.parametrize("first", [many, copied, called])
def test_whatever_comes_first_is_in_the_transaction(first: Callable[[Any], None]) -> None:
    with db.atomic(), db.cursor() as handle:
        first(handle)
        assert status() == TRANSACTION_STATUS_INTRANS
        add("one")
        assert seen_by_others() == []
    assert seen_by_others() == ["one"]


def test_rows_may_be_fetched_in_parts_as_the_first_thing() -> None:
    add("a")
    with db.atomic():
        assert [row.key for row in Variable.objects.iterator(1)] == ["a"]
        assert status() == TRANSACTION_STATUS_INTRANS


def test_an_isolation_level_of_the_settings_stays_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {**db.connection().settings_dict["OPTIONS"], "isolation_level": 3}
    monkeypatch.setitem(db.connection().settings_dict, "OPTIONS", options)
    db.close()
    try:
        with db.atomic():
            assert db.fetch("SHOW transaction_isolation") == [("serializable",)]
    finally:
        db.close()
