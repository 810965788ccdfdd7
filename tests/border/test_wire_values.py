from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import math
import pathlib
import uuid
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_app import wire

ROME = zoneinfo.ZoneInfo("Europe/Rome")


class Colour(enum.Enum):
    RED = "red"


class Level(str, enum.Enum):
    HIGH = "high"


@dataclasses.dataclass
class Point:
    x: int
    when: dt.date


class Opaque:
    pass


def there_and_back(value: object) -> object:
    document = json.loads(json.dumps(wire.encode(value), allow_nan=False))
    return wire.decode(document, classes=wire.import_class)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        2**70,
        -0.5,
        "text with ünïcode and 🎈",
        "a NUL \0 and a lone surrogate \ud800",
        [1, [2, {"a": None}]],
        (1, (2, "x")),
        {1, 2},
        frozenset({"a"}),
        {1: "a", None: "b", (1, 2): "c"},
        {"__type": "set", "__value": [1]},
        dt.datetime(2026, 3, 1, 12, 30, 1, 5, tzinfo=dt.UTC),
        dt.datetime(2026, 3, 1, 12, 30),
        dt.date(2026, 3, 1),
        dt.time(3, 4, 5),
        dt.timedelta(days=-2, microseconds=7),
        dt.timezone(dt.timedelta(hours=5, minutes=30)),
        ROME,
        decimal.Decimal("1.50"),
        b"\x00\xff",
        float("inf"),
        uuid.UUID(int=7),
        pathlib.Path("/a/b"),
        Colour.RED,
        Level.HIGH,
        Point(1, dt.date(2026, 1, 2)),
        [Point(1, dt.date(2026, 1, 2)), {"deep": (Colour.RED,)}],
    ],
)
def test_a_value_comes_back_as_it_was(value: object) -> None:
    result = there_and_back(value)
    assert result == value
    assert type(result) is type(value)


def test_not_a_number_comes_back() -> None:
    assert math.isnan(there_and_back(float("nan")))


def test_an_enum_that_is_also_a_text_stays_an_enum() -> None:
    assert wire.encode(Level.HIGH) == {
        "__type": "enum",
        "__value": {"class": f"{__name__}.Level", "data": "high"},
    }


def test_plain_json_is_not_copied() -> None:
    value = {"a": [1, 2.5, "x", None, True], "b": {"c": "d"}}
    assert wire.encode(value) is value


def test_what_needs_encoding_does_not_change_the_original() -> None:
    value = {"a": [1, (2,)], "b": {"c": "d"}}
    document = wire.encode(value)
    assert document == {"a": [1, {"__type": "tuple", "__value": [2]}], "b": {"c": "d"}}
    assert value == {"a": [1, (2,)], "b": {"c": "d"}}
    assert document["b"] is value["b"]


def test_an_error_names_the_place_and_the_type() -> None:
    with pytest.raises(wire.EncodeError) as caught:
        wire.encode({"rows": [1, {"x": Opaque()}]}, "return_value")
    assert caught.value.path == "return_value.rows[1].x"
    assert caught.value.kind == f"{__name__}.Opaque"
    assert str(caught.value).startswith(
        f"return_value.rows[1].x is of type {__name__}.Opaque: it cannot leave the task's process."
    )


def test_a_value_that_holds_itself_is_an_error_and_no_crash() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(wire.EncodeError, match="nested deeper than 200 levels"):
        wire.encode(loop)


def test_our_side_never_rebuilds_a_class() -> None:
    with pytest.raises(wire.WireError, match="Point can be rebuilt only in the process"):
        wire.decode(wire.encode(Point(1, dt.date(2026, 1, 2))))


def test_a_child_rebuilds_no_class_that_is_not_plain_data() -> None:
    document = {"__type": "dataclass", "__value": {"class": "subprocess.Popen", "data": {"args": "true"}}}
    with pytest.raises(wire.WireError, match=r"subprocess\.Popen is not importable here"):
        wire.decode(document, classes=wire.import_class)


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(wire.WireError, match="unknown type 'quaternion'"):
        wire.decode({"__type": "quaternion", "__value": 1})


def test_people_see_plain_json() -> None:
    value = {
        "when": dt.datetime(2026, 3, 1, tzinfo=dt.UTC),
        "pair": (1, decimal.Decimal("2.0")),
        "point": Point(3, dt.date(2026, 1, 2)),
        "by number": {1: "a"},
        "colour": Colour.RED,
    }
    assert wire.plain(wire.encode(value)) == {
        "when": "2026-03-01T00:00:00+00:00",
        "pair": [1, "2.0"],
        "point": {"x": 3, "when": "2026-01-02"},
        "by number": {"1": "a"},
        "colour": "red",
    }


def test_an_extension_brings_its_own_class_across() -> None:
    class Fruit:
        def __init__(self, name: str) -> None:
            self.name = name

    wire.extend(Fruit, "fruit", lambda fruit: {"name": fruit.name}, lambda data: Fruit(data["name"]))
    document = wire.encode([Fruit("pear")])
    assert document == [{"__type": "fruit", "__value": {"name": "pear"}}]
    assert wire.decode(document)[0].name == "pear"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(values)
def test_every_value_of_these_kinds_comes_back(value: object) -> None:
    assert there_and_back(value) == value
