"""``can`` and the QuerySets of what an actor may see: every read and every write of a person goes through them.

A site narrows access to single DAGs by the setting ``dag_access``: the dotted path of a function
``(actor, verb) -> Q | None`` whose Q is over :class:`DagModel` (None: no restriction); the verb is ``view`` or
``change``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.db.models import Model, Prefetch, Q, QuerySet
from django.utils.module_loading import import_string

from scheduler_app.conf import conf
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
    DagVersion,
    DagWarning,
    Deadline,
    Job,
    ParseError,
    TaskInstance,
    TaskInstanceHistory,
    XCom,
)

from .actor import Actor
from .permissions import KINDS, codename

Rule = Callable[[Actor, str], Q | None]
#: In place of the id of a DAG that the reader may not see.
ANOTHER_DAG = "another DAG"


def can(actor: Actor, verb: str, what: str | Model) -> bool:
    """Whether an actor may ``view``, ``add``, ``change`` or ``delete`` a kind (``"dag"``, ``"run"`` …) or one row.

    For a row that belongs to a DAG the per-DAG rule counts too.
    """
    kind = what if isinstance(what, str) else _KIND_OF[str(what._meta.model_name)]
    if codename(verb, kind) not in actor.permissions:
        return False
    dag_id = getattr(what, "dag_id", None) if isinstance(what, Model) else None
    rule = _restriction(actor, verb)
    if dag_id is None or rule is None:
        return True
    return DagModel.objects.filter(rule, pk=dag_id).exists()


def dags(actor: Actor, verb: str = "view") -> QuerySet[DagModel]:
    """The DAGs that an actor may see or (verb ``change``) act on."""
    rule = _restriction(actor, verb)
    return DagModel.objects.all() if rule is None else DagModel.objects.filter(rule)


def seen_dag_ids(actor: Actor, ids: Iterable[str]) -> set[str]:
    """Those of the ids that an actor may read; without a rule all of them, also those of DAGs that are gone."""
    rule, named = _restriction(actor, "view"), set(ids)
    return named if rule is None else set(DagModel.objects.filter(rule, pk__in=named).values_list("pk", flat=True))


def shown_dag_ids(actor: Actor, ids: Iterable[str | None]) -> dict[str | None, str | None]:
    """What an actor reads for each of the ids where totals are shared: the id, or that it is another DAG's."""
    named = {one for one in ids if one is not None}
    seen = seen_dag_ids(actor, named)
    return {None: None} | {one: one if one in seen else ANOTHER_DAG for one in named}


def runs(actor: Actor, verb: str = "view") -> QuerySet[DagRun]:
    return _of_dags(DagRun.objects.all(), actor, verb)


def task_instances(actor: Actor, verb: str = "view") -> QuerySet[TaskInstance]:
    return _of_dags(TaskInstance.objects.all(), actor, verb)


def history(actor: Actor) -> QuerySet[TaskInstanceHistory]:
    return _of_dags(TaskInstanceHistory.objects.all(), actor, "view")


def versions(actor: Actor) -> QuerySet[DagVersion]:
    return _of_dags(DagVersion.objects.all(), actor, "view")


def warnings(actor: Actor) -> QuerySet[DagWarning]:
    return _of_dags(DagWarning.objects.all(), actor, "view")


def xcoms(actor: Actor, verb: str = "view") -> QuerySet[XCom]:
    return _of_dags(XCom.objects.all(), actor, verb)


def queued_events(actor: Actor, verb: str = "view") -> QuerySet[AssetQueuedEvent]:
    return _of_dags(AssetQueuedEvent.objects.all(), actor, verb)


def assets(actor: Actor) -> QuerySet[Asset]:
    """All assets, which are shared by DAGs; of their ``uses`` those by the DAGs that the actor may see."""
    seen = _of_dags(AssetUse.objects.order_by("dag_id", "task_id", "id"), actor, "view")
    return Asset.objects.prefetch_related(Prefetch("uses", seen))


def asset_events(actor: Actor) -> QuerySet[AssetEvent]:
    """Events by hand or by the tasks of DAGs that the actor may see; of ``created_dagruns`` those of such DAGs."""
    rule = _restriction(actor, "view")
    rows = AssetEvent.objects.prefetch_related(Prefetch("created_dagruns", runs(actor)))
    if rule is None:
        return rows
    seen = DagModel.objects.filter(rule).values("pk")
    return rows.filter(Q(source_dag_id__isnull=True) | Q(source_dag_id__in=seen))


def jobs(actor: Actor) -> QuerySet[Job]:
    return Job.objects.all()


def callbacks(actor: Actor, verb: str = "view") -> QuerySet[Callback]:
    """Callbacks of the DAGs that the actor may see or change; the permission is that for their runs."""
    return _of_dags(Callback.objects.all(), actor, verb)


def backfills(actor: Actor, verb: str = "view") -> QuerySet[Backfill]:
    """Backfills of the DAGs that the actor may see or change; the permission is that for their runs."""
    return _of_dags(Backfill.objects.all(), actor, verb)


def deadlines(actor: Actor) -> QuerySet[Deadline]:
    return _of_dags(Deadline.objects.all(), actor, "view")


def import_errors(actor: Actor) -> QuerySet[ParseError]:
    """Import errors of files that define a DAG which the actor may see, or no DAG at all."""
    rule = _restriction(actor, "view")
    if rule is None:
        return ParseError.objects.all()
    seen = DagModel.objects.filter(rule).values("relative_fileloc")
    hidden = DagModel.objects.exclude(pk__in=DagModel.objects.filter(rule).values("pk")).values("relative_fileloc")
    return ParseError.objects.filter(Q(filename__in=seen) | ~Q(filename__in=hidden))


def audit(actor: Actor) -> QuerySet[Audit]:
    """Audit rows of the DAGs that the actor may see, and those of no DAG."""
    rule = _restriction(actor, "view")
    if rule is None:
        return Audit.objects.all()
    return Audit.objects.filter(Q(dag_id__isnull=True) | Q(dag_id__in=DagModel.objects.filter(rule).values("pk")))


def _of_dags(rows: QuerySet[Any], actor: Actor, verb: str) -> QuerySet[Any]:
    rule = _restriction(actor, verb)
    return rows if rule is None else rows.filter(dag_id__in=DagModel.objects.filter(rule).values("pk"))


def _restriction(actor: Actor, verb: str) -> Q | None:
    path = conf().dag_access
    if not path or actor.kind != "person":
        return None
    rule: Rule = import_string(path)
    return rule(actor, "view" if verb == "view" else "change")


#: model name → kind; an ended try is seen by whoever sees its task instance
_KIND_OF = {model: kind for kind, model in KINDS.items()} | {"taskinstancehistory": "task"}
