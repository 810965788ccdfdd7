"""What an action needs of a DAG's definition: one that cannot be read is a sentence for the person, or none."""

from __future__ import annotations

from uuid import UUID

from scheduler_app import timetables
from scheduler_app.engine.graph import Graph
from scheduler_app.models import DagModel, graphs
from scheduler_app.timetables import Timetable

from .errors import Refused


def needed(version_id: UUID) -> Graph:
    """Raises Refused where it cannot be read: what was asked for cannot be done without it."""
    found, errors = graphs.readable([version_id])
    if version_id in errors:
        raise Refused(f"The definition of the DAG cannot be read: {errors[version_id]}")
    return found[version_id] if version_id in found else graphs.graph_of(version_id)


def known(version_id: UUID | None) -> Graph | None:
    """None where it is not stored or cannot be read: what was asked for can be done without it."""
    return None if version_id is None else graphs.readable([version_id]).graphs.get(version_id)


def timetable(dag: DagModel) -> Timetable:
    """Its schedule. Raises Refused where it cannot be read (a kind of a plugin that is gone)."""
    try:
        return timetables.from_doc(dag.timetable or {"kind": "null"})
    except ValueError as error:
        raise Refused(f"The schedule of the DAG {dag.dag_id} cannot be read: {error}") from error
