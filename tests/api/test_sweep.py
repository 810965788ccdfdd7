"""Every operation with every kind of bad value in every place: an error in Airflow's shape, and never a 500."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from api import openapi
from tests.api.every_route import ADMIN, BODIES, HEADERS, QUERIES, TABLE, address, ask

#: unknown, any, NUL, too long, too large a number, negative, and signs that mean something to somebody
BAD_IDS = ["nope", "~", "a\x00b", "x" * 600, "99999999999999999999", "-7", "../ü💩 %'\";--"]
BAD_PARAMETERS = ["", "\x00", "x" * 3000, "99999999999999999999", "-1", "9999-12-31T23:59:59-14:00", "💩%'\\"]
DEEP: Any = 1
for _ in range(400):
    DEEP = [DEEP]
BAD_VALUES: list[Any] = [
    None,
    True,
    -1,
    10**30,
    "",
    "a\x00b",
    "\ud800",
    "x" * 5000,
    "9999-12-31T23:59:59-14:00",
    {},
    [["x", 10**20], None],
    {"x": {"__type": "dict", "__classname__": "os.system"}},
    DEEP,
]
RAW = {
    "nothing": b"",
    "half": b'{"a": ',
    "null": b"null",
    "list": b"[]",
    "number": b"1",
    "latin": b'{"a": "\xe9"}',
    "nan": b'{"a": NaN}',
    "large number": b'{"a": 1' + b"0" * 5000 + b"}",
    "deep": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "long": b'{"a": "' + b"x" * 10_000_000 + b'"}',
    "many keys": json.dumps({f"k{n}": n for n in range(300)}).encode(),
}


class Judge:
    """Counts answers, and keeps those that are a 500 or an error that a client cannot read."""

    def __init__(self, spec: dict[str, Any]) -> None:
        shapes = ({"$ref": f"#/components/schemas/{name}"} for name in ("HTTPExceptionResponse", "HTTPValidationError"))
        self._error = jsonschema.Draft202012Validator({"anyOf": list(shapes), "components": spec["components"]})
        self.wrong: list[str] = []
        self.seen: Counter[int] = Counter()

    def see(self, asked: str, answer: Any, told: str) -> None:
        self.seen[answer.status_code] += 1
        if answer.status_code >= 500:
            self.wrong.append(f"{asked}: {answer.status_code} {told[-300:]}")
        elif answer.status_code >= 400 and not self._error.is_valid(json.loads(told)):
            self.wrong.append(f"{asked}: an error that no client reads: {told[:200]}")


@pytest.fixture
def judge(spec) -> Iterator[Judge]:
    found = Judge(spec)
    yield found
    assert found.wrong == []


def test_every_id_of_every_route(world, judge):
    http = world(ADMIN)
    for method, route in TABLE:
        for name in re.findall(r"{(\w+)}", route):
            for value in BAD_IDS:
                answer, told = ask(http, method, route, **{name: value})
                judge.see(f"{method} {route} {name}={value[:30]!r}", answer, told)
    assert judge.seen[404] > 500


def test_every_parameter_of_every_list(world, judge):
    http = world(ADMIN)
    for path, methods in openapi.document()["paths"].items():
        route = path.removeprefix("/api/v2/")
        names = {one["name"] for one in methods.get("get", {}).get("parameters", ()) if one["in"] == "query"}
        for name in sorted(names):
            for value in BAD_PARAMETERS:
                if route.endswith("/wait") and name == "interval" and not value.isalnum():
                    continue
                query = {
                    **dict(part.split("=") for part in QUERIES.get(("GET", route), "").split("&") if part),
                    name: value,
                }
                answer = http.client.get(address(route), query, headers=HEADERS.get(("GET", route), {}))
                told = b"".join(answer.streaming_content) if answer.streaming else answer.content
                judge.see(f"GET {route}?{name}={value[:30]!r}", answer, told.decode())
    assert judge.seen[422] > 500


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value inside a body."""
    if path:
        yield path
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(below, (*path, key))


def put(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(body)
    inside = changed
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return changed


def full_body(method: str, route: str) -> dict[str, Any]:
    """What the table sends, with every other key that the document describes."""
    document = openapi.document()
    operation = document["paths"][route if route.startswith("/") else f"/api/v2/{route}"][method.lower()]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    described = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]] if "$ref" in schema else schema
    body = {**dict.fromkeys(described["properties"]), **BODIES.get((method, route), {})}
    if "actions" in body:
        body["actions"] = [{"action": "update", "entities": ["nope"], "action_on_non_existence": "skip"}]
    return body


def bodied() -> list[tuple[str, str]]:
    document = openapi.document()["paths"]
    return [
        (method, route)
        for method, route in TABLE
        if "requestBody" in document[route if route.startswith("/") else f"/api/v2/{route}"][method.lower()]
    ]


def test_every_value_of_every_body(world, judge):
    http = world(ADMIN)
    for method, route in bodied():
        whole, sent = full_body(method, route), BODIES.get((method, route), {})
        for path in places(whole):
            for value in BAD_VALUES:
                # beside what is sent anyway, so that one mistake does not hide behind another
                body = put(whole if path[0] == "actions" else {**sent, path[0]: whole[path[0]]}, path, value)
                answer, told = ask(http, method, route, json.dumps(body))
                judge.see(f"{method} {route} {path}={str(value)[:40]!r}", answer, told)
    assert judge.seen[422] > 1000


def test_every_kind_of_raw_body(world, judge):
    http = world(ADMIN)
    large = {"long", "deep"}
    for method, route in bodied():
        for name, raw in RAW.items():
            if name in large and (method, route) not in (
                ("POST", "variables"),
                ("PATCH", "pools"),
                ("POST", "/auth/token"),
            ):
                continue
            answer, told = ask(http, method, route, raw)
            judge.see(f"{method} {route} {name}", answer, told)
    assert judge.seen[422] > 200
