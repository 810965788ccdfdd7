"""A person whom a rule of the site shows one DAG only learns nothing of the others: no name, no number, no error."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db.models import Q

from scheduler_app.models import (
    Asset,
    AssetEvent,
    AssetQueuedEvent,
    AssetUse,
    Audit,
    Backfill,
    Callback,
    DagRun,
    DagWarning,
    ParseError,
    TaskInstance,
    TaskState,
    XCom,
)
from scheduler_app.models.state_store import QUESTION_KEY
from tests import rows
from tests.api.every_route import ADMIN, TABLE, ask
from tests.rows import T0
from tests.shapes import shape

WORD = "zzhidden"


def not_the_hidden(actor: Any, verb: str) -> Q:
    return ~Q(dag_id=WORD)


@pytest.fixture
def hidden(world, settings):
    """One of everything of a DAG that the rule hides; the assets are shared with the DAG that is seen."""
    dag = rows.store(shape("a >> b", WORD), relative_fileloc=f"{WORD}.py", owners=WORD)
    dag.tags.create(name=f"{WORD}-tag")
    run = rows.trigger(dag, 1, prefix=WORD)[0]
    own = {"dag_run": run, "dag_id": WORD, "task_id": "a"}
    XCom.objects.create(**own, key=WORD, value=1, timestamp=T0)
    TaskState.objects.create(**own, key=QUESTION_KEY, value={"subject": WORD, "options": ["x"]}, updated_at=T0)
    asset = Asset.objects.get(pk=1)
    for kind, task_id in (("schedule", ""), ("outlet", "a"), ("inlet", "b")):
        AssetUse.objects.create(dag=dag, asset=asset, kind=kind, task_id=task_id, created_at=T0)
    theirs = {"source_dag_id": WORD, "source_run_id": run.run_id, "source_task_id": "a"}
    event = AssetEvent.objects.create(asset=asset, timestamp=T0, **theirs)
    event.created_dagruns.add(run, DagRun.objects.get(dag_id="etl"))
    AssetQueuedEvent.objects.create(dag=dag, asset=asset, event=event, created_at=T0)
    asset.states.create(key="by-it", value=1, updated_at=T0, updated_by={"dag_id": WORD, "task_id": "a"})
    Audit.objects.create(when=T0, event="trigger", dag_id=WORD)
    ParseError.objects.create(pk=10**9, timestamp=T0, filename=f"{WORD}.py", stack_trace=WORD)
    DagWarning.objects.create(dag=dag, warning_type="non-existent pool", message=WORD, timestamp=T0)
    Backfill.objects.create(dag=dag, from_date=T0, to_date=T0, created_at=T0, updated_at=T0)
    Callback.objects.create(
        kind="dag_failure", dedupe_key=WORD, dag_id=WORD, dag_run=run, next_at=T0, created_at=T0, state="failed"
    )
    settings.SCHEDULER = {**settings.SCHEDULER, "dag_access": f"{__name__}.not_the_hidden"}
    return world(ADMIN)


def test_no_answer_names_it(hidden):
    told = {
        f"{method} {route}": text[max(0, text.find(WORD) - 80) : text.find(WORD) + 20]
        for method, route in TABLE
        for text in [ask(hidden, method, route)[1]]
        if WORD in text
    }
    assert told == {}


def test_no_list_counts_it(hidden):
    counted = {
        path: hidden.get(path).json()["total_entries"]
        for path in (
            f"dags?dag_id_pattern={WORD}",
            f"dags/~/dagRuns?dag_id_pattern={WORD}",
            f"dags/~/dagRuns/~/taskInstances?dag_id_pattern={WORD}",
            f"dags/~/dagRuns/~/xcomEntries?xcom_key_pattern={WORD}".replace("/~/xcom", "/~/taskInstances/~/xcom"),
            f"dagTags?tag_name_pattern={WORD}",
            f"dagStats?dag_ids={WORD}",
            f"dagWarnings?dag_id={WORD}",
            f"assets?dag_ids={WORD}",
            f"assets/events?source_dag_id={WORD}",
            f"eventLogs?dag_id={WORD}",
            f"importErrors?filename_pattern={WORD}",
            f"callbacks?dag_id={WORD}",
            f"backfills?dag_id={WORD}",
        )
    }
    assert counted == dict.fromkeys(counted, 0)


def test_each_operation_on_it_is_a_404_and_changes_nothing(hidden):
    before = Audit.objects.count()
    there, nowhere = {}, {}
    for method, route in TABLE:
        names = re.findall(r"{(\w+)}", route)
        if "dag_id" not in names or route.endswith("/list"):
            continue
        ids = {"dag_id": WORD} | ({"dag_run_id": f"{WORD}0"} if "dag_run_id" in names else {})
        ids |= {"task_id": "a"} if "task_id" in names else {}
        there[method, route] = ask(hidden, method, route, **ids)[0].status_code
        nowhere[method, route] = ask(hidden, method, route, **{**ids, "dag_id": "nowhere"})[0].status_code
    assert there == nowhere
    assert {key: status for key, status in there.items() if status not in (400, 404, 422)} == {
        ("PATCH", "dags/{dag_id}/dagRuns"): 200,  # a list of no actions
        ("PATCH", "dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances"): 200,
    }
    assert Audit.objects.count() == before
    assert TaskInstance.objects.filter(dag_id=WORD).count() == 2
