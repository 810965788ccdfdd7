"""The compiled graph of a DAG version, kept by each process in a bounded cache (a version never changes)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from scheduler_app.engine.dag import from_doc
from scheduler_app.engine.graph import Graph

from .dag import DagVersion

#: Versions kept; the least recently used one goes first (S-68).
CACHE_SIZE = 2048

_cache: OrderedDict[UUID, Graph] = OrderedDict()
_lock = threading.Lock()


def graph_of(version_id: UUID) -> Graph:
    """The graph of one version. Raises DagVersion.DoesNotExist."""
    graphs = graphs_of([version_id])
    if version_id not in graphs:
        raise DagVersion.DoesNotExist(f"DAG version {version_id} is not stored")
    return graphs[version_id]


def graphs_of(version_ids: Iterable[UUID]) -> dict[UUID, Graph]:
    """The graphs of many versions by id, those that are not cached by one query; missing versions are left out."""
    wanted = set(version_ids)
    found: dict[UUID, Graph] = {}
    with _lock:
        for version_id in wanted:
            graph = _cache.get(version_id)
            if graph is not None:
                _cache.move_to_end(version_id)
                found[version_id] = graph
    missing = wanted - found.keys()
    if missing:
        rows: Any = DagVersion.objects.filter(pk__in=missing).values_list("pk", "document")
        for version_id, document in rows:
            found[version_id] = remember(version_id, Graph(from_doc(document)))
    return found


class Readable(NamedTuple):
    graphs: dict[UUID, Graph]
    #: versions whose document cannot be read, and why
    errors: dict[UUID, Exception]


def readable(version_ids: Iterable[UUID]) -> Readable:
    """As :func:`graphs_of`, for callers whose other rows must go on when one document cannot be read (I5)."""
    wanted = set(version_ids)
    try:
        return Readable(graphs_of(wanted), {})
    except (TypeError, ValueError, KeyError):
        found: dict[UUID, Graph] = {}
        errors: dict[UUID, Exception] = {}
        for version_id in wanted:
            try:
                found |= graphs_of([version_id])
            except (TypeError, ValueError, KeyError) as error:
                errors[version_id] = error
        return Readable(found, errors)


def remember(version_id: UUID, graph: Graph) -> Graph:
    """Puts a graph that somebody compiled already into the cache."""
    with _lock:
        _cache[version_id] = graph
        _cache.move_to_end(version_id)
        while len(_cache) > CACHE_SIZE:
            _cache.popitem(last=False)
    return graph


def forget() -> None:
    """Empties the cache (tests)."""
    with _lock:
        _cache.clear()
