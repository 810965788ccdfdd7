"""``GET /api/v2/openapi.json``: what this server answers, derived from the table of routes and from ``described``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from django.urls import URLPattern
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app.access.permissions import codename

from . import bodies, described, params, shapes
from .endpoint import VERB_OF, Endpoint
from .resources.monitor import API_OF_AIRFLOW

Json = dict[str, Any]

METHODS = ("get", "post", "put", "patch", "delete")
_TEXT: Json = {"type": "string"}
#: how a parameter is read → its schema
_READ: dict[Any, Json] = {
    params.text: _TEXT,
    params.whole: {"type": "integer", "format": "int32"},
    params.number: {"type": "number"},
    params.seconds: {"type": "number"},
    params.flag: {"type": "boolean"},
    params.moment: {"type": "string", "format": "date-time"},
}
#: class of a field of a body → its schema; the first that fits
_FIELDS: tuple[tuple[type, Json], ...] = (
    (bodies.Moment, {"type": "string", "format": "date-time"}),
    (bodies.Conf, {"type": "object"}),
    (serializers.BooleanField, {"type": "boolean"}),
    (serializers.IntegerField, {"type": "integer"}),
    (serializers.FloatField, {"type": "number"}),
    (serializers.CharField, _TEXT),
    (serializers.DictField, {"type": "object"}),
)


class OpenApiView(Endpoint):
    """The document; open to everybody, as it holds nothing of this installation."""

    authentication_classes = []
    needs = {"GET": None}

    def get(self, request: Request) -> Response:
        return Response(document())


@cache
def document() -> Json:
    from . import answers, auth_urls, urls

    paths: dict[str, Json] = {}
    names: dict[str, Json] = {}
    for prefix, patterns in (("/auth/", auth_urls.urlpatterns), ("/api/v2/", urls.urlpatterns)):
        for route, view, inputs in _routes(patterns):
            if view is not urls.UnknownView:
                paths[prefix + route] = {
                    method: _operation(prefix + route, view, method, inputs, names, answers.ANSWERS)
                    for method in METHODS
                    if hasattr(view, method)
                }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Workflow scheduler",
            "version": API_OF_AIRFLOW,
            "description": "The public API of Apache Airflow, whose version this is, as this server offers it.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": _PROBLEM, **names},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


_PROBLEM: Json = {
    "type": "object",
    "required": ["detail"],
    "properties": {"detail": {"description": "What is wrong: a text, or for a 422 a list with each mistake's place."}},
}


def _routes(patterns: list[URLPattern]) -> Iterator[tuple[str, Any, list[str]]]:
    """(route with ``{names}``, view, those names); the pattern that takes every other path has none and is left out."""
    for pattern in patterns:
        converters = getattr(pattern.pattern, "converters", {})
        route = re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern))
        yield route, pattern.callback.view_class, list(converters)


def _operation(
    path: str, view: Any, method: str, inputs: list[str], names: dict[str, Json], answers: dict[Any, Any]
) -> Json:
    verb = method.upper()
    kind = view.kind or "server"
    parts = [part.strip("{}") for part in path.split("/") if part not in ("", "api", "v2")]
    said = [inspect.getdoc(getattr(view, method)), view.__dict__.get("__doc__")]
    operation: Json = {
        "operationId": "_".join([method, *parts]),
        "tags": [kind],
        "summary": next((text.strip().splitlines()[0] for text in said if text), f"{method} {' '.join(parts)}"),
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": _TEXT} for name in inputs),
            *(_query(described.LISTS[view]) if method == "get" and view in described.LISTS else ()),
        ],
        "responses": {
            **_done(answers.get((view, verb)), path, names),
            "4XX": {"description": "Not done.", "content": _json({"$ref": "#/components/schemas/Problem"})},
        },
    }
    need = view.needs.get(verb, (VERB_OF[verb], view.kind))
    operation["security"] = [] if need is None else [{"token": []}]
    if need is not None:
        operation["description"] = f"Needs the permission `{codename(*need)}`."
    body = described.BODIES.get((view, verb))
    if body is not None:
        operation["requestBody"] = {"content": _json(_body(body, names))}
    return operation


def _done(answer: tuple[int, str] | None, path: str, names: dict[str, Json]) -> Json:
    """The response of an operation that can be done. Where two shapes share a view, the path says which it is."""
    if answer is None:
        return {}
    status, word = answer
    if status == 307:
        return {"307": {"description": "Sends the browser on.", "headers": {"Location": {"schema": _TEXT}}}}
    if not word:
        return {str(status): {"description": "Done."}}
    word = _of_path(word, path)
    names.update(shapes.components(word))
    content = _json(shapes.schema(word))
    if word in _STREAMS:
        content["application/x-ndjson"] = {"schema": shapes.schema(_STREAMS[word])}
    if word == "RunWaited":
        del content["application/json"]
    return {str(status): {"description": "Done.", "content": content}}


#: answers that may be read as a stream of lines → the shape of a line
_STREAMS = {"RunWaited": "RunWaited", "TaskInstancesLogResponse": "StructuredLogMessage"}


def _of_path(word: str, path: str) -> str:
    """One try or all of them, one queued event or all: a view answers both, on paths of their own."""
    many, _, one = word.partition("|")
    if many.startswith("TaskInstanceHistory"):
        return one if path.endswith("}") else many
    if many.startswith("QueuedEvent"):
        return one if "dag_id" in path and "asset_id" in path else many
    return word


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _query(listed: described.Listed) -> Iterator[Json]:
    for param in listed.filters:
        schema = _READ.get(param.read, _TEXT)
        if isinstance(param.read, params.OneOf):
            schema = {"type": "string", "enum": list(param.read.allowed)}
        yield _parameter(param.name, {"type": "array", "items": schema} if param.many else schema)
    if listed.order:
        words = sorted(sign + name for name in listed.order for sign in ("", "-"))
        yield _parameter("order_by", {"type": "array", "items": {"type": "string", "enum": words}})
    if listed.paged:
        yield _parameter("limit", {"type": "integer", "minimum": 0})
        yield _parameter("offset", {"type": "integer", "minimum": 0})
    if listed.cursor:
        yield _parameter("cursor", _TEXT)


def _parameter(name: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _body(body: Any, names: dict[str, Json]) -> Json:
    if not isinstance(body, described.Entities):
        return _named(body, names)
    action = _object(described.BULK(), names)
    action["properties"]["entities"] = {"type": "array", "items": {"anyOf": [_named(body.body, names), _TEXT]}}
    return {
        "type": "object",
        "required": ["actions"],
        "properties": {"actions": {"type": "array", "items": action}},
        "additionalProperties": False,
    }


def _named(body: type[serializers.Serializer[Any]], names: dict[str, Json]) -> Json:
    """A reference; bodies of the same name in two files get the file's name before theirs."""
    name = f"{body.__module__.rsplit('.', 1)[-1]}.{body.__name__}"
    if name not in names:
        names[name] = {}
        names[name] = _object(body(), names)
    return {"$ref": f"#/components/schemas/{name}"}


def _object(body: serializers.Serializer[Any], names: dict[str, Json]) -> Json:
    fields = body.fields
    schema: Json = {
        "type": "object",
        "properties": {name: _field(field, names) for name, field in fields.items()},
        "additionalProperties": False,
    }
    required = [name for name, field in fields.items() if field.required]
    return schema | ({"required": required} if required else {})


def _field(field: Any, names: dict[str, Json]) -> Json:
    if isinstance(field, serializers.ListSerializer):
        schema: Json = {"type": "array", "items": _named(type(field.child), names)}
    elif isinstance(field, serializers.Serializer):
        schema = _named(type(field), names)
    elif isinstance(field, serializers.ListField):
        schema = {"type": "array", "items": _field(field.child, names)}
    elif isinstance(field, serializers.ChoiceField):
        schema = {"type": "string", "enum": list(field.choices)}
    else:
        schema = dict(next((schema for kind, schema in _FIELDS if isinstance(field, kind)), {}))
    for limit, word in (
        ("max_length", "maxLength"),
        ("min_length", "minLength"),
        ("min_value", "minimum"),
        ("max_value", "maximum"),
    ):
        number = getattr(field, limit, None)
        if number is not None:
            schema[word.replace("Length", "Items") if schema.get("type") == "array" else word] = number
    if field.allow_null and schema:
        schema = {"anyOf": [schema, {"type": "null"}]}
    if not field.required and field.default is not serializers.empty and not callable(field.default):
        schema["default"] = field.default
    return schema
