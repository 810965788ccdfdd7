"""The serialised DAG."""

from __future__ import annotations

import json

import pytest

from scheduler_app.engine.dag import SCHEMA_VERSION, Dag, Group, Task, from_doc, to_doc
from tests.engine.scenario import dag

FULL = Dag(
    "d",
    tags=("x",),
    params={"p": {"value": 1}},
    tasks=(Task("a", downstream=("b",), retries=2, outlets=({"name": "n", "uri": "u"},)), Task("b")),
    groups=(Group(None, children=({"task": "a"}, {"group": "g"})), Group("g", children=({"task": "b"},))),
)


def test_a_dag_survives_its_document() -> None:
    assert from_doc(json.loads(json.dumps(to_doc(FULL)))) == FULL


def test_defaults_are_left_out() -> None:
    assert to_doc(Task("a")) == {"task_id": "a"}
    assert to_doc(Dag("d")) == {"dag_id": "d", "schema_version": SCHEMA_VERSION}
    assert to_doc(Group(None)) == {"group_id": None}


def test_a_document_of_the_future_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="DAG 'd' was serialised by a newer version of this scheduler"):
        from_doc({"dag_id": "d", "schema_version": SCHEMA_VERSION + 1})


def test_an_unknown_key_is_an_error() -> None:
    with pytest.raises(TypeError, match="colour"):
        from_doc({"dag_id": "d", "tasks": [{"task_id": "a", "colour": "red"}]})


def test_tasks_by_id() -> None:
    assert list(dag("a >> b").task_dict) == ["a", "b"]
