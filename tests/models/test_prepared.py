"""Plans that are kept: made once a connection, made anew when they are worn, given up where the connection forgets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from psycopg2.extras import Json

from scheduler_app.models import db, prepared
from tests.rows import T0

ADD = "SELECT %(one)s::int + %(two)s::int"


@pytest.fixture(autouse=True)
def _nothing_is_kept(django_db_setup: None, db: None) -> Iterator[None]:
    _forget()
    yield
    _forget()


def _forget() -> None:
    db.execute("DEALLOCATE ALL")
    prepared._plans.clear()
    prepared._refused = False


def kept() -> list[str]:
    return [row[0] for row in db.fetch("SELECT name FROM pg_prepared_statements ORDER BY prepare_time, name")]


def add(one: int, two: int) -> int:
    found: int = db.fetch(ADD, {"one": one, "two": two}, keep_plan=True)[0][0]
    return found


def test_a_statement_is_prepared_once_and_gives_each_execution_its_own_values() -> None:
    assert [add(1, 2), add(3, 4), add(-1, 1)] == [3, 7, 0]
    assert len(kept()) == 1
    generic = db.fetch("SELECT generic_plans, custom_plans FROM pg_prepared_statements")
    assert generic == [(1 + 3, 0)], "once when it was made, and three times"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int[]", [None, None]),
        ("text[]", []),
        ("text[]", ["it's 100 %", None]),
        ("timestamptz", T0),
        ("bigint[]", [2**40]),
        ("uuid", None),
        ("jsonb[]", [Json({"a": [1, None]})]),
    ],
)
def test_every_kind_of_value_arrives_as_it_does_without_a_plan(kind: str, value: Any) -> None:
    sql = f"SELECT %(it)s::{kind}, 'all of it: 100 %%'"
    assert db.fetch(sql, {"it": value}, keep_plan=True) == db.fetch(sql, {"it": value})


def test_a_worn_plan_is_made_anew_and_the_old_one_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "_EXECUTIONS", 2)
    names = []
    for number in range(4):
        assert add(number, 1) == number + 1
        names += kept()
    assert len(kept()) == 1
    assert [names[0] == names[1], names[1] == names[2], names[2] == names[3]] == [True, False, True]


def test_a_plan_that_finds_many_more_rows_than_before_is_made_anew_once() -> None:
    """What always finds so many keeps its plan: to plan each look at fifty tasks took twice as long as the look."""
    names = []
    for many in (16, 50, 50, 100, 101, 101, 1):
        found = db.fetch("SELECT generate_series(1, %(many)s::int)", {"many": many}, keep_plan=True)
        assert len(found) == many
        names += kept()
    assert [len(set(names[:at])) for at in range(1, 8)] == [1, 1, 2, 2, 2, 3, 3]


def test_a_plan_whose_table_changed_under_it_is_made_anew() -> None:
    db.execute("CREATE TEMP TABLE changing (value int) ON COMMIT DROP")
    db.execute("INSERT INTO changing VALUES (7)")
    sql = "SELECT value FROM changing WHERE value < %(most)s::int"
    assert db.fetch(sql, {"most": 9}, keep_plan=True) == [(7,)]
    db.execute("ALTER TABLE changing ALTER value TYPE text, ADD other int")
    db.execute("ALTER TABLE changing ALTER value TYPE bigint USING value::bigint")
    with pytest.raises(db.DatabaseError, match="cached plan"), db.atomic():
        db.fetch(sql, {"most": 9}, keep_plan=True)
    assert db.fetch(sql, {"most": 9}, keep_plan=True) == [(7,)]


def test_a_connection_that_forgets_is_tried_again_without_plans(caplog: pytest.LogCaptureFixture) -> None:
    """As behind a pool that gives each transaction another connection."""
    assert add(1, 2) == 3
    db.execute("DEALLOCATE ALL")
    with pytest.raises(db.DatabaseError) as error, db.atomic():
        add(1, 2)
    assert db.is_transient(error.value)
    assert add(1, 2) == 3
    assert kept() == []
    assert "none are used from now on" in caplog.text


def test_a_plan_made_while_its_table_is_empty_looks_up_each_row_by_its_key() -> None:
    db.execute("CREATE TEMP TABLE growing (id bigint PRIMARY KEY) ON COMMIT DROP")
    db.execute("ANALYZE growing")
    every = prepared.all_of("%(ids)s::bigint[]")
    sql = f"SELECT g.id FROM (SELECT * FROM unnest(%(ids)s::bigint[]) {every}) AS w(id) JOIN growing g ON g.id = w.id"
    assert db.fetch(sql, {"ids": [5]}, keep_plan=True) == []
    db.execute("INSERT INTO growing SELECT generate_series(1, 1000)")
    assert sorted(db.fetch(sql, {"ids": [5, 900, 1001]}, keep_plan=True)) == [(5,), (900,)]
    db.execute("SET LOCAL plan_cache_mode = force_generic_plan")
    (name,) = kept()
    plan = str(db.fetch(f"EXPLAIN EXECUTE {name}('{{5}}')"))
    assert "Index" in plan
    assert "Seq Scan" not in plan
    assert db.fetch("SHOW enable_seqscan") == [("on",)]
