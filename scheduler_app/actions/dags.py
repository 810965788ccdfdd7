"""What people do to a DAG besides pausing it: delete what is stored of it, ask for its file to be read again."""

from __future__ import annotations

from datetime import datetime

from scheduler_app.access import Actor
from scheduler_app.models import DagFile, DagModel, DagRun, TaskInstance, db

from . import journal, permit
from .errors import Conflict, Missing


def delete_dag(actor: Actor, dag_id: str, now: datetime, *, reason: str | None = None) -> None:
    """Deletes a DAG with its versions, runs, task instances and XComs; the audit stays.

    A file that still defines it brings it back as a new DAG. Raises Missing, Forbidden, Conflict (tasks are running).
    """
    permit.require(actor, "delete", "dag")
    with db.atomic():
        dag = permit.dag_to_change(actor, dag_id)
        list(DagRun.objects.filter(dag=dag).order_by("pk").select_for_update(no_key=True, of=("self",)).values("pk"))
        if TaskInstance.objects.filter(dag_id=dag_id, state__in=["queued", "running", "restarting"]).exists():
            raise Conflict(f"Task instances of dag with id: '{dag_id}' are still running")
        journal.record(
            actor,
            "delete_dag",
            now,
            dag_id=dag_id,
            reason=reason,
            before={"is_paused": dag.is_paused, "runs": DagRun.objects.filter(dag=dag).count()},
        )
        # Runs refer to versions: they go first.
        DagRun.objects.filter(dag=dag).delete()
        dag.delete()


def parse_now(actor: Actor, dag: DagModel, now: datetime) -> None:
    """The processor reads the DAG's file at its next look, changed or not. Raises Missing, Forbidden."""
    permit.require(actor, "change", "dag")
    with db.atomic():
        permit.dag_checked(actor, dag.dag_id)
        asked = DagFile.objects.filter(bundle_name=dag.bundle_name, relative_path=dag.relative_fileloc)
        if not asked.update(parse_requested_at=now):
            raise Missing(f"The DAG processor does not know the file {dag.relative_fileloc}.")
        journal.record(actor, "reparse_dag_file", now, dag_id=dag.dag_id, extra={"file": dag.relative_fileloc})
        db.notify()
