"""When two serialised DAGs are one version."""

from __future__ import annotations

import copy
from typing import Any

from scheduler_app.engine.dag import to_doc
from scheduler_app.engine.dag_hash import dag_hash, differing, moving_fields
from tests.engine.scenario import dag

DOC = to_doc(dag("a >> [b, c]", {"a": {"retries": 2}}, tags=("x", "y"), start_date="2024-01-01T00:00:00+00:00"))


def changed(**fields: Any) -> dict[str, Any]:
    return {**copy.deepcopy(DOC), **fields}


def test_what_means_the_same_has_one_hash() -> None:
    same = dag_hash(DOC)
    assert len(same) == 32
    assert dag_hash(dict(reversed(DOC.items()))) == same
    assert dag_hash(changed(tags=["y", "x"])) == same
    assert dag_hash(changed(fileloc="/elsewhere.py", parsed_at="2024-05-05")) == same


def test_what_the_author_changed_has_another() -> None:
    assert dag_hash(changed(tags=["x"])) != dag_hash(DOC)
    assert dag_hash(changed(tasks=list(reversed(DOC["tasks"])))) != dag_hash(DOC)


def test_planned_slots_of_a_custom_timetable_are_no_change() -> None:
    one, two = (changed(timetable={"kind": "custom", "class": "m.T", "planned": [n]}) for n in (1, 2))
    other = changed(timetable={"kind": "custom", "class": "m.Other", "planned": [1]})
    assert dag_hash(one) == dag_hash(two) != dag_hash(other)


def test_sets_inside_values_are_sorted() -> None:
    one, two = (changed(default_args={"s": {"__type": "set", "__value": v}}) for v in ([1, 2], [2, 1]))
    assert dag_hash(one) == dag_hash(two)


def test_differences_are_named_by_task() -> None:
    new = changed(catchup=True)
    new["tasks"][0]["retries"] = 3
    del new["tasks"][2]
    assert differing(DOC, new) == ["catchup", "tasks.a.retries", "tasks.c"]
    assert differing(DOC, DOC) == []


def test_dates_that_move_with_the_clock_are_found_out() -> None:
    later = changed(start_date="2024-01-01T00:00:30.5+00:00")
    assert moving_fields(DOC, later, seconds_between=30) == ["start_date"]
    assert moving_fields(DOC, later, seconds_between=3000) == []
    assert moving_fields(DOC, {**later, "catchup": True}, seconds_between=30) == []
    assert moving_fields(DOC, DOC, seconds_between=30) == []
