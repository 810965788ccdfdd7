"""A worker on another machine: no folder of ours, no address but the database's and the broker's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from scheduler_app.models import DagModel, TaskInstance, XCom
from tests import rows
from tests.shapes import shape

from .brokers import Wire, Workers, wait_for
from .conftest import Scheduler, bundle, ti_of
from .elsewhere import Machine, NotHere, machine

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

#: A DAG of several modules, one of them in a package, and a file that is read.
OLD = {
    "dag.py": """
from datetime import datetime
from pathlib import Path

from airflow.sdk import dag, task

from team.numbers import answer


@dag(schedule=None, start_date=datetime(2024, 1, 1))
def far():
    @task
    def work():
        from team import late  # imported when the folder on the scheduler's side has changed

        return [answer(), late.WORD, Path(__file__).with_name("query.sql").read_text()]

    work()


far()
""",
    "team/__init__.py": "",
    "team/numbers.py": "from team.basis import ONE\n\n\ndef answer():\n    return ONE + 41\n",
    "team/basis.py": "ONE = 1\n",
    "team/late.py": "WORD = 'old'\n",
    "query.sql": "select 'old'",
}
#: What the folder holds by now: a module is gone, the others say something else.
NEW = OLD | {"team/late.py": "WORD = 'new'\n", "query.sql": "select 'new'", "team/basis.py": "ONE = 2\n"}


@pytest.fixture
def other() -> Iterator[Machine]:
    try:
        with machine() as made:
            yield made
    except NotHere as error:
        pytest.skip(f"no second machine can be made here: {error}")


@pytest.fixture
def far_workers(other: Machine, workers: Workers, broker_url: str, tmp_path: Path) -> Iterator[Workers]:
    """Workers over there; their database and broker are relays on the cable."""
    params = connection.get_connection_params()
    host, port = params.get("host") or "127.0.0.1", int(params.get("port") or 5432)
    user = f"{params.get('user', 'postgres')}:{params.get('password') or 'none'}"
    target = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)
    database = Wire(f"postgresql://{user}@{params['dbname']}/{params['dbname']}", other.here, target)
    broker = Wire(broker_url, other.here)
    home = tmp_path / "over-there"
    workers.url = broker.url
    workers.environ |= {
        "DATABASE_URL": database.url,
        "SCHEDULER_RUNS_FOLLOW_NEWEST_VERSION": "false",
        "SCHEDULER_DAGS_FOLDER": "/nowhere",
    }
    workers.prefix = other.prefix(tmp_path, home)
    yield workers
    workers.stop()
    for wire in (database, broker):
        wire.close()


def test_a_run_ends_in_the_version_that_it_began_with_on_a_machine_without_our_files(
    scheduler: Scheduler, far_workers: Workers, other: Machine
) -> None:
    dag = scheduler.stored(shape("work", "far"), OLD)
    (run,) = rows.trigger(dag, bundle_version=dag.bundle_version)
    DagModel.objects.filter(pk=dag.pk).update(bundle_version=bundle(NEW))
    far_workers.start()
    scheduler.hand_out(scheduler.queued(run))
    ended = wait_for(lambda: TaskInstance.objects.filter(dag_run=run, state__in=("success", "failed")).first(), 60)
    assert (ended.state, ended.reason) == ("success", None), far_workers.logs()
    assert XCom.objects.get(dag_run=run, key="return_value").value == [42, "old", "select 'old'"]
    assert ti_of(run, "work").job_id is not None
