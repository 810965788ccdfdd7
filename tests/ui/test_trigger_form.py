"""From a param's JSON Schema to a control, and from the posted text to a value: pure."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_app.ui import trigger_form
from scheduler_app.ui.trigger_form import Field


def one(schema: dict[str, Any] | None = None, **param: Any) -> Field:
    return trigger_form.fields({"p": {"schema": schema or {}, **param}})[0]


def value(field: Field, *texts: str) -> Any:
    conf, errors = trigger_form.read([field], {"param.p": list(texts)})
    assert errors == {}
    return conf.get("p", "absent")


def error(field: Field, *texts: str) -> str:
    conf, errors = trigger_form.read([field], {"param.p": list(texts)})
    assert conf == {}
    return errors["p"]


@pytest.mark.parametrize(
    ("schema", "control", "input_type"),
    [
        ({"type": "string"}, "text", "text"),
        ({"type": "string", "format": "date"}, "text", "date"),
        ({"type": "string", "format": "date-time"}, "text", "datetime-local"),
        ({"type": "string", "format": "multiline"}, "textarea", "text"),
        ({"type": "integer"}, "number", "number"),
        ({"type": "boolean"}, "switch", "text"),
        ({"type": "string", "enum": ["a", "b"]}, "radio", "text"),
        ({"type": "string", "enum": list("abcde")}, "select", "text"),
        ({"type": "array", "items": {"type": "string"}}, "lines", "text"),
        ({"type": "array", "examples": ["a", "b"]}, "many", "text"),
        ({"type": "array", "items": {"type": "object"}}, "json", "text"),
        ({"type": "object"}, "json", "text"),
        ({"type": ["string", "integer"]}, "json", "text"),
        ({"type": ["null", "integer"]}, "number", "number"),
    ],
)
def test_the_schema_chooses_the_control(schema: dict[str, Any], control: str, input_type: str) -> None:
    field = one(schema, value=None)
    assert (field.control, field.input_type) == (control, input_type)


def test_without_a_schema_the_default_says_the_type() -> None:
    assert one(value=True).control == "switch"
    assert one(value=3).kind == "integer"
    assert one(value="x").control == "text"
    assert one(value={"a": 1}).control == "json"


def test_a_param_without_a_value_is_required() -> None:
    field = one({"type": "string"})
    assert field.required
    assert error(field, "") == "This param needs a value."


def test_an_empty_nullable_param_is_null() -> None:
    assert value(one({"type": ["null", "integer"]}, value=3), "") is None


def test_an_empty_number_is_left_to_its_default() -> None:
    assert value(one({"type": "integer"}, value=3), "") == "absent"


def test_an_empty_text_is_a_text() -> None:
    assert value(one({"type": "string"}, value="x"), "") == ""


@pytest.mark.parametrize(
    ("kind", "text", "expected"), [("integer", "7", 7), ("number", "7", 7), ("number", "7.5", 7.5)]
)
def test_numbers_are_read(kind: str, text: str, expected: float) -> None:
    read = value(one({"type": kind}, value=0), text)
    assert (read, type(read)) == (expected, type(expected))


def test_a_text_is_no_whole_number() -> None:
    assert error(one({"type": "integer"}, value=0), "7.5") == "“7.5” is no whole number."


def test_a_switch_that_is_off_posts_nothing_and_means_false() -> None:
    field = one({"type": "boolean"}, value=True)
    assert value(field) is False
    assert value(field, "true") is True


def test_choices_keep_their_types() -> None:
    field = one({"type": "integer", "enum": [1, 2, 3]}, value=1)
    assert field.choices == (("1", "1"), ("2", "2"), ("3", "3"))
    assert value(field, "2") == 2
    assert error(field, "9") == "“9” is none of the choices."


def test_lines_become_a_list() -> None:
    assert value(one({"type": "array"}, value=[]), " a \n\n b") == ["a", "b"]


def test_json_says_where_it_is_broken() -> None:
    assert error(one({"type": "object"}, value={}), "{").startswith("This is not JSON: ")


def test_a_former_runs_conf_fills_the_form() -> None:
    fields = trigger_form.fields({"day": {"value": "mon"}, "n": {"value": 1}}, {"day": "tue"})
    assert [field.value for field in fields] == ["tue", "1"]


def test_fields_are_grouped_by_section_those_without_first() -> None:
    params = {
        "a": {"schema": {"section": "Mail"}, "value": ""},
        "b": {"value": ""},
        "c": {"schema": {"section": "Mail"}},
    }
    grouped = trigger_form.sections(trigger_form.fields(params))
    assert [(name, [field.name for field in members]) for name, members in grouped] == [
        ("", ["b"]),
        ("Mail", ["a", "c"]),
    ]


def test_bounds_become_attributes_of_the_input() -> None:
    field = one({"type": "integer", "minimum": 1, "maximum": 9}, value=3)
    assert field.attributes == {"min": "1", "max": "9"}
