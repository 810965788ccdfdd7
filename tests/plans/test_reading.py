"""Lists over all runs are read through indexes, however long the history is: pages touched, each within a budget.

A page of 50 rows is found in a range of each part's index and read row by row. Of the open task instances, which have
no index for people, each is looked at: the history of these tests has 49,000 of them.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from api import pages
from scheduler_app.models import DagModel, DagRun, TaskInstance
from scheduler_app.models.run import in_states
from scheduler_app.queries import merged, page_dags
from scheduler_app.queries import rows as queries
from tests.plans.conftest import DEFERRED, HOT, QUEUED, RUNNING, RUNNING_PER_DAG, SCHEDULED, WAITING, _explain
from tests.rows import T0

pytestmark = pytest.mark.django_db


def read(rows: Any, query: str, widen: Any, parts: Any) -> int:
    """Asks for one page as an endpoint does; the buffers of the statement that finds it."""
    allowed = {name: name for name in ("start_date", "end_date", "map_index", "run_after", "logical_date", "id")}
    asked = QueryDict(query)
    with CaptureQueriesContext(connection) as caught:
        found = pages.page(pages.ordered(rows, asked, allowed, ["id"]), asked, widen, parts)
    assert len(found.rows) == 50
    plan = _explain(caught[0]["sql"].replace("%", "%%"), {})
    assert "Seq Scan scheduler_task_instance" not in plan.text
    return plan.buffers


OPEN = HOT * RUNNING_PER_DAG * (SCHEDULED + WAITING + QUEUED + RUNNING + DEFERRED) // 12  # that many lie on a page


@pytest.mark.parametrize(
    ("order", "budget"), [("-start_date", OPEN + 600), ("end_date", OPEN + 600), ("map_index", 600), ("-id", 600)]
)
def test_a_page_of_all_task_instances(history: None, order: str, budget: int) -> None:
    rows = queries.timed_task_instances(TaskInstance.objects.all())
    assert read(rows, f"order_by={order}", queries.task_instances, merged.TASK_INSTANCES) <= budget


@pytest.mark.parametrize("order", ["-run_after", "-logical_date", "-start_date", "-id"])
def test_a_page_of_all_runs(history: None, order: str) -> None:
    assert read(queries.timed_runs(DagRun.objects.all()), f"order_by={order}", queries.runs, merged.RUNS) <= 500


def test_the_list_of_dags_finds_the_runs_that_go_on(history: None) -> None:
    """1,000 DAGs with their newest run each, and 800 runs that go on; the finished ones are not read."""
    with CaptureQueriesContext(connection) as caught:
        page_dags.dag_page(DagModel.objects.all(), page_dags.words_of(""), chip="all", page=1, size=50, now=T0)
    plan = _explain(caught[0]["sql"].replace("%", "%%"), {})
    assert "Seq Scan scheduler_dag_run" not in plan.text
    assert plan.buffers <= 6 * 1000 + 800


@pytest.mark.parametrize("state", ["queued", "running"])
def test_the_runs_of_a_state_that_goes_on_are_counted_in_its_index(history: None, state: str) -> None:
    with CaptureQueriesContext(connection) as caught:
        DagRun.objects.filter(in_states([state])).count()
    plan = _explain(caught[0]["sql"].replace("%", "%%"), {})
    assert "Seq Scan scheduler_dag_run" not in plan.text
    assert plan.buffers <= 620
