"""Unknown ids, bad parameters, broken bodies: Airflow's codes, and never a 500."""

from __future__ import annotations

import itertools

import pytest
from django.urls import get_resolver

NAMES = {
    "dag_id": ["etl", "nope", "~", "a\x00b", "ü" * 300],
    "dag_run_id": ["run0", "nope", "~", "a\x00b"],
    "task_id": ["load", "nope", "~"],
    "map_index": ["0", "-1", "x", "99999999999999999999"],
    "asset_id": ["1", "x", "99999999999999999999"],
    "try_number": ["1", "0", "-3", "x", "99999999999999999999"],
}


def paths():
    """Every route with every kind of id in each of its places."""
    resolver = next(part for part in get_resolver("tests.api.urls").url_patterns if "api/v2" in str(part.pattern))
    for pattern in resolver.url_patterns:
        route = str(pattern.pattern)
        if route.startswith("^"):
            continue
        names = list(pattern.pattern.converters)
        for values in itertools.islice(
            itertools.product(*[NAMES.get(name, ["nope", "1", "a\x00"]) for name in names]), 60
        ):
            path = route
            for name, value in zip(names, values, strict=True):
                for kind in ("str", "path"):
                    path = path.replace(f"<{kind}:{name}>", value)
            yield path


def test_no_id_makes_a_500(etl, run, http):
    from urllib.parse import quote

    asked = 0
    for path in paths():
        if path.endswith("/wait"):
            continue
        answer = http.get(quote(path))
        assert answer.status_code in (200, 307, 400, 404, 405, 422), (path, answer.status_code)
        asked += 1
    assert asked > 500


def test_no_body_makes_a_500(etl, run, http):
    from urllib.parse import quote

    bodies = [{}, {"x": 1}, {"dag_run_id": 1}, {"new_state": 7}, {"key": None}, {"slots": "many"}, {"note": ["x"]}]
    seen = set()
    for path in paths():
        shape = path.count("/"), path.rsplit("/", 1)[-1]
        if shape in seen:
            continue
        seen.add(shape)
        for method in ("POST", "PATCH", "PUT"):
            for body in bodies:
                answer = http(method, quote(path), body)
                assert answer.status_code < 500, (method, path, body, answer.status_code)


@pytest.mark.parametrize(
    "query",
    [
        "limit=x",
        "limit=-1",
        "offset=-1",
        "offset=99999999999999",
        "start_date_gte=yesterday",
        "start_date_gte=9999-12-31T23:59:59-12:00",
        "duration_gt=nan",
        "duration_gt=1e300",
        "state=bogus",
        "map_index=x",
        "try_number=99999999999",
        "dag_id_pattern=%00",
    ],
)
def test_a_parameter_that_cannot_be_read_is_a_422_that_names_it(etl, run, http, query):
    answer = http.get(f"dags/etl/dagRuns/run0/taskInstances?{query}")
    assert answer.status_code == 422, answer.content
    detail = answer.json()["detail"][0]
    assert detail["loc"][:2] == ["query", query.split("=")[0]]
    assert detail["msg"]


@pytest.mark.parametrize("cursor", ["x", "e30", "eyJieSI6WyJpZCJdfQ", "%F0%9F%92%A9"])
def test_a_cursor_that_is_not_ours_is_a_400(etl, run, http, cursor):
    assert http.get(f"dags/etl/dagRuns?cursor={cursor}").status_code == 400


@pytest.mark.parametrize("pattern", ["a%", "_", "\\", "%\\", "|", "~", "(", "a|b", "'; drop table x --"])
def test_every_pattern_is_a_pattern(etl, http, pattern):
    from urllib.parse import quote

    assert http.get(f"dags?dag_id_pattern={quote(pattern)}&dag_id_prefix_pattern={quote(pattern)}").status_code == 200


@pytest.mark.parametrize("raw", ["", "{", "[]", "null", "1", '"x"', '{"key": NaN}', '{"key": "\\ud800", "value": "x"}'])
def test_a_body_that_is_no_object_is_a_422(http, raw):
    answer = http.client.post("/api/v2/variables", raw, content_type="application/json")
    assert answer.status_code == 422, answer.content


def test_an_unknown_method_is_a_405(http):
    assert http.delete("dags").status_code == 405


def test_every_mistake_of_a_body_is_named_at_once(http):
    answer = http.post("pools", {"name": 1, "slots": -5, "bogus": True})
    assert {tuple(item["loc"]): item["type"] for item in answer.json()["detail"]} == {
        ("body", "bogus"): "extra_forbidden",
        ("body", "name"): "string_type",
        ("body", "slots"): "greater_than_equal",
    }


def test_a_pool_keeps_its_name(http):
    http.post("pools", {"name": "small", "slots": 1})
    for pool, body in (
        ("default_pool", {"name": "other", "slots": 1}),
        ("default_pool", {"pool": "other"}),
        ("small", {"pool": "large"}),
    ):
        assert http.patch(f"pools/{pool}", body).status_code == 400, body
    assert http.patch("pools/small", {"name": "small", "slots": 2}).json()["slots"] == 2
    assert [pool["name"] for pool in http.get("pools").json()["pools"]] == ["default_pool", "small"]


def test_only_a_mapped_task_has_a_list_of_instances_even_while_it_is_empty(db, http):
    from tests import rows
    from tests.shapes import shape

    mapped = {"twice": {"mapped": {"style": "expand", "inputs": {"x": {"xcom": "plain"}}}}}
    rows.trigger(rows.store(shape("plain >> twice", "flow", tasks=mapped)), 1)
    tasks = "dags/flow/dagRuns/run0/taskInstances"
    assert http.get(f"{tasks}/twice/listMapped").json()["task_instances"] == []
    for task, said in (("plain", "Task id plain is not mapped"), ("nope", "Task id nope not found")):
        answer = http.get(f"{tasks}/{task}/listMapped")
        assert (answer.status_code, answer.json()["detail"]) == (404, said)
