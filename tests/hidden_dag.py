"""One of everything of a DAG that a rule of the site hides from a person: its name is a word that nothing else has."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q

from scheduler_app.models import (
    Asset,
    AssetEvent,
    AssetQueuedEvent,
    AssetUse,
    Audit,
    Backfill,
    Callback,
    DagModel,
    DagRun,
    DagWarning,
    Deadline,
    Limit,
    ParseError,
    TaskInstance,
    TaskState,
    XCom,
    transitions,
)
from scheduler_app.models.state_store import QUESTION_KEY
from tests import rows
from tests.shapes import shape

WORD = "zzhidden"
RULE = f"{__name__}.not_the_hidden"


def not_the_hidden(actor: Any, verb: str) -> Q:
    return ~Q(dag_id=WORD)


def make(now: datetime, asset: Asset, seen: DagRun) -> DagModel:
    """The hidden DAG; the asset, the default pool and the limit ``shared`` are those of the DAG that is seen too."""
    dag = rows.store(shape("a >> b; c; d", WORD), relative_fileloc=f"{WORD}.py", owners=WORD)
    DagModel.objects.filter(pk=WORD).update(dag_display_name=WORD, next_dagrun_run_after=now, schedule_error=WORD)
    dag.tags.create(name=f"{WORD}-tag")
    run = rows.trigger(dag, 1, prefix=WORD)[0]
    own = {"dag_run": run, "dag_id": WORD, "task_id": "a"}
    XCom.objects.create(**own, key=WORD, value=1, timestamp=now)
    TaskState.objects.create(**own, key=QUESTION_KEY, value={"subject": WORD, "options": ["x"]}, updated_at=now)
    for kind, task_id in (("schedule", ""), ("outlet", "a"), ("inlet", "b")):
        AssetUse.objects.create(dag=dag, asset=asset, kind=kind, task_id=task_id, created_at=now)
    theirs = {"source_dag_id": WORD, "source_run_id": run.run_id, "source_task_id": "a"}
    event = AssetEvent.objects.create(asset=asset, timestamp=now, **theirs)
    event.created_dagruns.add(run, seen)
    AssetQueuedEvent.objects.create(dag=dag, asset=asset, event=event, created_at=now)
    asset.states.create(key="by-it", value=1, updated_at=now, updated_by={"dag_id": WORD, "task_id": "a"})
    Audit.objects.create(when=now, event="trigger", dag_id=WORD)
    ParseError.objects.create(pk=10**9, timestamp=now, filename=f"{WORD}.py", stack_trace=WORD)
    DagWarning.objects.create(dag=dag, warning_type="non-existent pool", message=WORD, timestamp=now)
    Backfill.objects.create(dag=dag, from_date=now, to_date=now, created_at=now, updated_at=now)
    Callback.objects.create(
        kind="dag_failure", dedupe_key=WORD, dag_id=WORD, dag_run=run, next_at=now, created_at=now, state="failed"
    )
    Deadline.objects.create(dag_id=WORD, dag_run=run, kind="run", name=WORD, due_at=now, created_at=now, missed_at=now)
    Limit.objects.create(name="shared", amount=1, declared_by=WORD)
    _in_each_state(run, now)
    return dag


def _in_each_state(run: DagRun, now: datetime) -> None:
    """One of its tasks runs, one waits for a slot, one failed; all want what is shared."""
    transitions.runs("start", [run.pk], now)
    TaskInstance.objects.filter(dag_run=run).update(limits="shared=1")
    key = dict(TaskInstance.objects.filter(dag_run=run).values_list("task_id", "pk"))
    transitions.tasks("schedule", [key["a"], key["c"], key["d"]], now)
    transitions.tasks("queue", [key["a"], key["d"]], now)
    transitions.tasks("start", [key["a"], key["d"]], now, hostname="node-1")
    transitions.tasks("fail", [key["d"]], now, reason=f"{WORD} broke")
