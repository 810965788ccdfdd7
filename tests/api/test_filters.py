"""Every filter and every order of every list does something that the database understands."""

from __future__ import annotations

import re

import pytest

from api import params
from scheduler_app.models import AssetEvent
from tests import rows
from tests.rows import T0
from tests.shapes import shape

LISTS = [
    "dags",
    "dags/etl/tasks",
    "dags/etl/dagVersions",
    "dags/~/dagVersions",
    "dagTags",
    "dagWarnings",
    "dags/etl/dagRuns",
    "dags/~/dagRuns",
    "dags/~/dagRuns/~/taskInstances",
    "dags/etl/dagRuns/run0/taskInstances",
    "dags/flow/dagRuns/run0/taskInstances/twice/listMapped",
    "dags/~/dagRuns/~/taskInstances/~/xcomEntries",
    "dags/etl/dagRuns/run0/taskInstances/load/xcomEntries",
    "assets",
    "assets/aliases",
    "assets/events",
    "dags/etl/assets/queuedEvents",
    "pools",
    "variables",
    "connections",
    "importErrors",
    "eventLogs",
    "jobs",
]
#: these take no ``order_by``
ONE_ORDER = {"dags/etl/assets/queuedEvents"}
#: values of every kind of parameter; each gets the first that it can read
SAMPLES = ["a", "1", "true", "2026-03-01T12:00:00+00:00", "success", "manual", "non-existent pool", "any"]


@pytest.fixture
def mapped(db):
    """A DAG with a mapped task, in its first run."""
    fields = {"mapped": {"style": "expand", "inputs": {"x": {"literal": 2}}}}
    return rows.trigger(rows.store(shape("twice", "flow", {"twice": fields})))[0]


@pytest.fixture
def asked(monkeypatch):
    """The tables of parameters that answers were narrowed by, as they are used."""
    seen = []
    narrow = params.narrow

    def spy(rows, table, query):
        seen.append(table)
        return narrow(rows, table, query)

    monkeypatch.setattr(params, "narrow", spy)
    return seen


def sample(param):
    for value in SAMPLES:
        try:
            param.read(value)
        except params.Wrong:
            continue
        return value
    raise AssertionError(f"no sample fits {param.name}")


@pytest.mark.parametrize("path", LISTS)
def test_every_filter_is_answered(http, etl, run, mapped, asked, path):
    from urllib.parse import quote

    assert http.get(path).status_code == 200
    table = [param for used in asked for param in used]
    answers = {param.name: http.get(f"{path}?{param.name}={quote(sample(param))}").status_code for param in table}
    assert answers == dict.fromkeys(answers, 200)


@pytest.mark.parametrize("path", [path for path in LISTS if path not in ONE_ORDER])
def test_every_order_is_answered_up_and_down(http, etl, run, mapped, path):
    refused = http.get(f"{path}?order_by=bogus")
    names = re.search(r"Use one of: (.*)\.", refused.json()["detail"])[1].split(", ")
    answers = {
        sign + name: http.get(f"{path}?order_by={sign}{name}").status_code for name in names for sign in ("", "-")
    }
    assert answers == dict.fromkeys(answers, 200)


def test_a_name_pattern_finds_the_runs_of_the_dags_that_fit(http, etl, run):
    rows.trigger(rows.store(shape("a", "other")))
    found = {
        query: [run["dag_id"] for run in http.get(f"dags/~/dagRuns?{query}").json()["dag_runs"]]
        for query in ("dag_id_pattern=THE", "dag_id_prefix_pattern=et", "dag_id_pattern=nope")
    }
    assert found == {"dag_id_pattern=THE": ["other"], "dag_id_prefix_pattern=et": ["etl"], "dag_id_pattern=nope": []}


@pytest.mark.parametrize("name", ["source_dag_id", "timestamp_gte"])
def test_the_filters_of_events_leave_the_others_out(http, name):
    from scheduler_app.models import Asset

    asset = Asset.objects.create(name="lake", uri="s3://lake", created_at=T0, updated_at=T0)
    AssetEvent.objects.create(asset=asset, timestamp=T0, source_dag_id="etl")
    value = {"source_dag_id": "etl", "timestamp_gte": "2026-03-01T12:00:00Z"}[name]
    other = {"source_dag_id": "x", "timestamp_gte": "2026-03-01T12:00:01Z"}[name]
    totals = [http.get(f"assets/events?{name}={given}").json()["total_entries"] for given in (value, other)]
    assert totals == [1, 0]
