"""Which errors of the database mean "try again", and which mean that the statement itself is wrong (I9)."""

from __future__ import annotations

import psycopg2
import pytest
from django.db import DatabaseError, InterfaceError, OperationalError, ProgrammingError
from psycopg2 import errors

from scheduler_app.models import db


def raised(kind: type[Exception], cause: Exception) -> Exception:
    """As Django raises what the driver raised."""
    error = kind(str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (raised(OperationalError, psycopg2.OperationalError("server closed the connection unexpectedly")), True),
        # seen when a server was killed in the middle of a statement: the plain class, without a code
        (raised(DatabaseError, psycopg2.DatabaseError("server closed the connection unexpectedly")), True),
        (raised(InterfaceError, psycopg2.InterfaceError("connection already closed")), True),
        (psycopg2.OperationalError("could not connect to server"), True),
        (raised(ProgrammingError, psycopg2.ProgrammingError("can't adapt type 'set'")), False),
        (DatabaseError("Save with update_fields did not affect any rows."), False),
        (ValueError("A string literal cannot contain NUL (0x00) characters."), False),
    ],
)
def test_S_29_an_error_without_a_code_is_judged_by_its_class(error: Exception, transient: bool) -> None:
    assert db.is_transient(error) is transient


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("code", "transient"),
    [
        ("40P01", True),  # deadlock
        ("57P01", True),  # the server stops
        ("53100", True),  # its disk is full
        ("25006", True),  # it has become a standby
        ("23505", False),  # a unique key
        ("22P02", False),  # not a number
    ],
)
def test_S_29_an_error_with_a_code_is_judged_by_it(code: str, transient: bool) -> None:
    with pytest.raises(DatabaseError) as caught:
        db.execute(f"DO $$ BEGIN RAISE EXCEPTION 'made' USING ERRCODE = '{code}'; END $$")
    assert isinstance(caught.value.__cause__, errors.lookup(code))
    assert db.is_transient(caught.value) is transient
