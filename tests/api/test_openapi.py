"""The document at /api/v2/openapi.json says what the endpoints do: each route, each filter, each body."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from drf_spectacular.validation import validate_schema

from api import answers, auth_urls, bodies, bulk, openapi, params, urls
from tests.api import published
from tests.api.every_route import ADMIN, BODIES, OURS, RUN, TABLE, TASK, address, ask, routes
from tests.api.test_filters import LISTS, mapped

__all__ = ["mapped"]


@pytest.fixture
def document(db, as_role):
    answer = as_role(None).get("openapi.json")
    assert answer.status_code == 200
    return answer.json()


def operations(document):
    return {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def full(route):
    return route if route.startswith("/") else f"/api/v2/{route}"


def test_it_is_a_document_of_openapi(document):
    validate_schema(document)


def test_it_holds_every_route_and_no_other(document):
    assert set(operations(document)) == {(method, full(route)) for method, route in routes()}


def test_every_operation_has_a_name_of_its_own(document):
    names = [operation["operationId"] for operation in operations(document).values()]
    assert len(names) == len(set(names))
    assert operations(document)["GET", "/api/v2/dags/{dag_id}"]["operationId"] == "get_dags_dag_id"


def test_it_says_who_may(document):
    found = operations(document)
    assert found["GET", "/api/v2/version"]["security"] == []
    assert found["POST", "/api/v2/pools"]["security"] == [{"token": []}]
    assert found["POST", "/api/v2/pools"]["description"] == "Needs the permission `scheduler_app.add_pool`."


@pytest.mark.parametrize("path", LISTS)
def test_every_filter_that_a_list_reads_is_described(http, etl, run, mapped, document, monkeypatch, path):
    read = set()
    narrow = params.narrow

    def spy(rows, table, query):
        read.update(param.name for param in table)
        return narrow(rows, table, query)

    monkeypatch.setattr(params, "narrow", spy)
    assert http.get(path).status_code == 200
    fitting = [
        operation
        for (method, route), operation in operations(document).items()
        if method == "GET" and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", route), f"/api/v2/{path}")
    ]
    operation = min(fitting, key=lambda one: one["operationId"].count("_id"))
    described = {item["name"]: item["schema"] for item in operation["parameters"] if item["in"] == "query"}
    assert read <= set(described)
    refused = http.get(f"{path}?order_by=bogus")
    if refused.status_code == 400 and "Use one of" in refused.json()["detail"]:
        words = re.search(r"Use one of: (.*)\.", refused.json()["detail"])[1].split(", ")
        assert {word for word in described["order_by"]["items"]["enum"] if word[0] != "-"} == set(words)


def test_every_body_that_an_endpoint_reads_is_described_and_takes_what_the_matrix_sends(world, document, monkeypatch):
    read = []
    real = bodies.read
    monkeypatch.setattr(bodies, "read", lambda request, kind: read.append(kind) or real(request, kind))
    http, wrong = world(ADMIN), {}
    for method, route in TABLE:
        read.clear()
        ask(http, method, route)
        operation = operations(document)[method, full(route)]
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        if read and body is None:
            wrong[f"{method} {route}"] = "reads a body that is not described"
        elif read and read[0] is not bulk.BulkBody:
            expected = f"#/components/schemas/{read[0].__module__.rsplit('.', 1)[-1]}.{read[0].__name__}"
            if body["$ref"] != expected:
                wrong[f"{method} {route}"] = f"{body['$ref']} is not {expected}"
        if body is not None and (method, route) in BODIES:
            schema = {**body, "components": document["components"]}
            jsonschema.Draft202012Validator(schema).validate(BODIES[method, route])
    assert wrong == {}


def test_a_body_that_is_refused_does_not_fit_its_description_either(document):
    schema = {"$ref": "#/components/schemas/pools.PoolBody", "components": document["components"]}
    validator = jsonschema.Draft202012Validator(schema)
    for body in ({"name": "p"}, {"name": "p", "slots": "many"}, {"name": "p", "slots": 1, "bogus": 2}, {"name": 1}):
        assert not validator.is_valid(body), body
    assert validator.is_valid({"name": "p", "slots": 1, "description": None})


def test_it_is_made_once():
    assert openapi.document() is openapi.document()


def test_every_operation_says_what_it_answers_when_it_is_done():
    views = {
        (pattern.callback.view_class, method.upper())
        for pattern in (*urls.urlpatterns, *auth_urls.urlpatterns)
        for method in ("get", "post", "put", "patch", "delete")
        if hasattr(pattern.callback.view_class, method) and pattern.callback.view_class is not urls.UnknownView
    }
    assert set(answers.ANSWERS) == views


def test_every_answer_fits_its_description_and_has_no_field_beside_it(world, document):
    http, wrong = world(ADMIN), {}
    for (method, route), (_, status) in TABLE.items():
        answer, told = ask(http, method, route)
        asked = f"{method} {route}"
        responses = operations(document)[method, full(route)]["responses"]
        if status >= 400:
            assert str(status) not in responses
            continue
        described = responses[str(status)].get("content", {})
        if not told:
            assert not described, asked
            continue
        kind = answer.headers["Content-Type"]
        schema = {**described[kind]["schema"], "components": document["components"]}
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
        for value in [json.loads(line) for line in told.splitlines()] if "ndjson" in kind else [answer.json()]:
            if found := [error.message[:200] for error in validator.iter_errors(value)]:
                wrong[asked] = found
            if unknown := published.strangers(document, described[kind]["schema"], value):
                wrong[asked] = unknown
    assert wrong == {}


#: Airflow describes these loosely (streams as one text), or at length what this server has none of
TOLD_OTHERWISE = {"plugins", f"{RUN}/wait", f"{TASK}/logs/{{try_number}}"}


def test_what_is_answered_is_described_as_airflow_describes_it(spec, document):
    wrong = {}
    for method, route in TABLE:
        if route in OURS | TOLD_OTHERWISE or route.startswith(("/auth", "auth")):
            continue
        theirs = published.operation(spec, method, address(route).removeprefix("/api/v2/"))["responses"]
        for status, response in operations(document)[method, full(route)]["responses"].items():
            for kind, content in response.get("content", {}).items() if status != "4XX" else ():
                their_schema = theirs[status]["content"].get(kind, {}).get("schema", {})
                mine = fields(document, content["schema"])
                published_ones = fields(spec, their_schema)
                if published_ones - {": any"} and mine != published_ones:
                    wrong[f"{method} {route}"] = (sorted(mine - published_ones), sorted(published_ones - mine))
    assert wrong == {}


def fields(document, schema, place="", seen=()):
    """Every field below a schema with its kind: ``dags[].tags[].name: string``."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        if name in seen:
            return set()
        return fields(document, document["components"]["schemas"][name], place, (*seen, name))
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if alternatives:
        return set().union(*(fields(document, one, place, seen) for one in alternatives))
    if schema.get("type") == "array":
        return fields(document, schema.get("items", {}), f"{place}[]", seen)
    if "properties" in schema:
        inside = schema["properties"].items()
        return set().union(*(fields(document, below, f"{place}.{name}", seen) for name, below in inside))
    more = schema.get("additionalProperties")
    if schema.get("type") == "object" and isinstance(more, dict) and "type" in more:
        return fields(document, more, f"{place}{{}}", seen)
    return {f"{place}: {schema.get('type', 'any')}"}
