"""Unknown ids, bad parameters, broken bodies: Airflow's codes, and never a 500."""

from __future__ import annotations

import pytest


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


def test_a_body_that_is_too_large_or_too_deep_is_refused_before_it_is_read(http, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    answer = http.post("variables", {"key": "v", "value": "x" * 1000})
    assert (answer.status_code, "DATA_UPLOAD_MAX_MEMORY_SIZE allows 1000" in answer.json()["detail"]) == (413, True)
    deep = '{"key": "v", "value": ' + "[" * 160 + "]" * 160 + "}"
    answer = http.client.post("/api/v2/variables", deep, content_type="application/json")
    assert (answer.status_code, answer.json()["detail"][0]["msg"]) == (422, "Body is nested deeper than 150 levels")
    assert http.get("variables").json()["total_entries"] == 0


def test_a_bug_is_a_500_in_json_that_is_logged_with_its_traceback(http, monkeypatch, caplog):
    from api.resources import variables

    def broken(*_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(variables, "document", broken)
    answer = http.post("variables", {"key": "v", "value": "x"})
    assert (answer.status_code, list(answer.json())) == (500, ["detail"])
    assert "a bug" not in answer.json()["detail"]
    assert any(record.exc_info and record.exc_info[0] is ZeroDivisionError for record in caplog.records)


def test_an_empty_limit_is_none(etl, run, http):
    assert http.get("dags/etl/dagRuns?limit=&offset=").json()["total_entries"] == 1
