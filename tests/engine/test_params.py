"""Params, conf on top of them, and their schemas."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_app.engine.params import Resolved, resolve

PARAMS: dict[str, Any] = {
    "count": {"value": 5, "schema": {"type": "integer", "minimum": 1, "maximum": 10}},
    "mode": {"value": "fast", "schema": {"type": "string", "enum": ["fast", "slow"]}},
    "maybe": {"value": None, "schema": {"type": ["null", "string"]}},
    "day": {"value": "2024-01-01", "schema": {"type": "string", "format": "date"}},
    "items": {"value": [1], "schema": {"type": "array", "items": {"type": "integer"}}},
    "plain": {"value": "no schema"},
}
DEFAULTS = {name: param["value"] for name, param in PARAMS.items()}


def test_conf_is_laid_over_the_defaults_and_more_keys_are_accepted() -> None:
    assert resolve(PARAMS) == Resolved(DEFAULTS, {})
    conf = {"count": 7, "mode": "slow", "maybe": "x", "other": 1}
    assert resolve(PARAMS, conf) == Resolved({**DEFAULTS, **conf}, {})


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"count": 11}, "Param 'count' is not valid: 11 is greater than the maximum of 10."),
        ({"count": "five"}, "Param 'count' is not valid: 'five' is not of type 'integer'."),
        ({"count": None}, "Param 'count' is not valid: None is not of type 'integer'."),
        ({"mode": "medium"}, "Param 'mode' is not valid: 'medium' is not one of ['fast', 'slow']."),
        ({"maybe": 4}, "Param 'maybe' is not valid: 4 is not of type 'null', 'string'."),
        ({"items": ["a"]}, "Param 'items' is not valid: 'a' is not of type 'integer'."),
        ({"day": "soon"}, "Param 'day' is not valid: 'soon' is not a 'date'."),
    ],
)
def test_a_value_that_breaks_its_schema_is_named(conf: dict[str, Any], message: str) -> None:
    assert resolve(PARAMS, conf).errors == {next(iter(conf)): message}


def test_a_param_without_a_value_is_required() -> None:
    params = {"who": {"schema": {"type": "string"}}}
    assert resolve(params).errors == {"who": "Param 'who' is required: give it in the run's conf."}
    assert resolve(params, {"who": "ann"}) == Resolved({"who": "ann"}, {})


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("date", "2024-02-29", "2023-02-29"),
        ("date", "2024-02-29", "20240229"),
        ("time", "10:20:30", "25:00"),
        ("date-time", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00"),
        ("date-time", "2024-01-01T00:00:00+02:00", "yesterday"),
    ],
)
def test_formats_are_checked(form: str, good: str, bad: str) -> None:
    params = {"p": {"schema": {"type": "string", "format": form}}}
    assert resolve(params, {"p": good}).errors == {}
    assert resolve(params, {"p": bad}).errors == {"p": f"Param 'p' is not valid: '{bad}' is not a '{form}'."}


def test_a_broken_schema_is_an_error_of_the_param() -> None:
    errors = resolve({"p": {"value": 1, "schema": {"type": "nonsense"}}}).errors
    assert errors["p"].startswith("Param 'p' is not valid: its own schema is broken (")
