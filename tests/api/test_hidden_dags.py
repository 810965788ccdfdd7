"""A person whom a rule of the site shows one DAG only learns nothing of the others: no name, no number, no error."""

from __future__ import annotations

import re

import pytest

from scheduler_app.models import Asset, Audit, DagRun, TaskInstance
from tests import hidden_dag
from tests.api.every_route import ADMIN, TABLE, ask
from tests.hidden_dag import WORD
from tests.rows import T0


@pytest.fixture
def hidden(world, settings):
    hidden_dag.make(T0, Asset.objects.get(pk=1), DagRun.objects.get(dag_id="etl"))
    settings.SCHEDULER = {**settings.SCHEDULER, "dag_access": hidden_dag.RULE}
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
    assert TaskInstance.objects.filter(dag_id=WORD).count() == 4
