"""A person's favourite DAGs. Who may see a DAG may keep it at hand."""

from __future__ import annotations

from datetime import datetime

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.models import DagModel, Favourite, db

from . import journal, permit
from .errors import Conflict, Missing, Refused


def add(actor: Actor, dag_id: str, now: datetime) -> None:
    """Makes a DAG a favourite; one that is one already stays so. Raises Missing, Forbidden, Refused."""
    dag, user_id = _checked(actor, dag_id)
    with db.atomic():
        _, made = Favourite.objects.get_or_create(dag=dag, user_id=user_id)
        if made:
            journal.record(actor, "favorite_dag", now, dag_id=dag.dag_id)


def remove(actor: Actor, dag_id: str, now: datetime) -> None:
    """Raises Missing, Forbidden, Conflict when the DAG is no favourite, Refused."""
    dag, user_id = _checked(actor, dag_id)
    with db.atomic():
        deleted, _ = dag.favourites.filter(user_id=user_id).delete()
        if not deleted:
            raise Conflict(f"The DAG `{dag_id}` is not one of your favorites")
        journal.record(actor, "unfavorite_dag", now, dag_id=dag.dag_id)


def _checked(actor: Actor, dag_id: str) -> tuple[DagModel, str]:
    permit.require(actor, "view", "dag")
    dag = access.dags(actor).filter(pk=dag_id).first()
    if dag is None:
        raise Missing(f"The DAG with ID: `{dag_id}` was not found")
    if actor.user_id is None:
        raise Refused("Favorites belong to people: log in as a user.")
    return dag, actor.user_id
