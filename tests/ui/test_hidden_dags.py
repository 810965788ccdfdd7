"""A person whom a rule of the site shows some DAGs only finds no other's name on any page, though they share pools."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from scheduler_app.models import Asset, AssetUse, Backfill, Callback, DagRun, Job, Pool, TaskInstance
from scheduler_app.ui import urls
from tests import hidden_dag
from tests.hidden_dag import WORD

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db
SEEN = {"dag_id": "sales", "run_id": "r1", "task_id": "load", "map_index": "0", "key": "nope"}
HIDDEN = {"dag_id": WORD, "run_id": f"{WORD}0", "task_id": "a", "map_index": "0", "key": "nope"}
#: Lists, narrowed by what a part of the hidden name finds.
NARROWED = (
    "/search/?q=zzhid",
    "/search/?q=",
    "/dags/?search=zzhid",
    "/runs/?search=zzhid",
    "/audit/?search=zzhid",
    "/live/?page=home",
    "/failures/?hours=24",
)


@pytest.fixture
def reader(admin: Client, settings: Any) -> Client:
    """The DAG that is seen waits for a slot and a limit that the hidden one has."""
    factory.make_job()
    factory.make_job("LocalTaskJob", executor_class="LocalExecutor", detail={"slots": 32})
    seen = factory.make_run(factory.make_dag("sales"), "r1", "running", {"load": "scheduled", "check": "failed"})
    asset = Asset.objects.create(name="orders", uri="s3://orders", created_at=NOW, updated_at=NOW)
    AssetUse.objects.create(dag=seen.dag, asset=asset, kind="schedule", created_at=NOW)
    Pool.objects.filter(pool="default_pool").update(slots=1)
    hidden_dag.make(NOW, asset, seen)
    TaskInstance.objects.filter(dag_run=seen, task_id="load").update(limits="shared=1")
    TaskInstance.objects.filter(dag_id=WORD, state="running").update(job_id=Job.objects.latest("pk").pk)
    settings.SCHEDULER = {**settings.SCHEDULER, "dag_access": hidden_dag.RULE}
    return admin


def addresses(ids: dict[str, str], numbers: dict[str, int]) -> dict[str, str]:
    found = {}
    for pattern in urls.urlpatterns:
        route = str(pattern.pattern)
        for name, converter in pattern.pattern.converters.items():
            kind = "int" if type(converter).__name__ == "IntConverter" else "str"
            route = route.replace(f"<{kind}:{name}>", str(numbers.get(name, ids.get(name, 1))))
        if pattern.name != "logout":
            found[str(pattern.name)] = f"/{route}"
    return found


def told(answer: Any) -> str:
    text = "".join(str(value) for value in answer.headers.values())
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return text + body.decode(errors="replace")


def test_no_page_names_it(reader: Client) -> None:
    numbers = {"asset_id": Asset.objects.get().pk}
    pages = {**addresses(SEEN, numbers), **{path: path for path in NARROWED}}
    found = {}
    for path in pages.values():
        text = told(reader.get(path))
        at = text.find(WORD)
        if at >= 0:
            found[path] = text[max(0, at - 100) : at + 30]
    assert found == {}


def test_what_waits_for_it_is_told_the_numbers_alone(reader: Client) -> None:
    page = told(reader.get("/dags/sales/runs/r1/tasks/load/"))
    assert "Pool default_pool has 0 of 1 slots free; it needs 1." in page or "Limit shared has 1" in page
    pools = told(reader.get("/pools/"))
    assert "As another DAG says" in pools


def test_each_address_of_it_answers_as_that_of_a_dag_that_is_not_there(reader: Client) -> None:
    numbers = {
        "backfill_id": Backfill.objects.get().pk,
        "callback_id": Callback.objects.get().pk,
    }
    wanted = addresses(HIDDEN, numbers)
    nowhere = addresses({**HIDDEN, "dag_id": "nowhere", "run_id": "none"}, dict.fromkeys(numbers, 10**9))
    there = {name: reader.get(path).status_code for name, path in wanted.items() if path != nowhere[name]}
    none = {name: reader.get(nowhere[name]).status_code for name in there}
    assert there == none
    assert set(there.values()) <= {400, 404, 405}
    assert DagRun.objects.filter(dag_id=WORD).exists()
