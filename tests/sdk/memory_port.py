"""A port that keeps everything in memory, and small ways to run attempts with it."""

from __future__ import annotations

import datetime as dt
from typing import Any

from scheduler_app import wire
from scheduler_app.usercode import execute

LOGICAL_DATE = "2024-03-15T10:20:30.456000+00:00"


class Refused(Exception):
    """What a real port raises when our side refuses."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class MemoryPort:
    """Answers from dicts; ``xcoms`` is {(task_id, map_index, key): value} of the one run."""

    def __init__(self, **variables: str) -> None:
        self.variables: dict[str, str] = dict(variables)
        self.connections: dict[str, dict[str, Any]] = {}
        self.xcoms: dict[tuple[str, int, str], Any] = {}
        self.lengths: dict[str, int | None] = {}
        self.rendered: dict[str, Any] = {}
        self.masked: list[Any] = []
        self.triggered: list[dict[str, Any]] = []
        self.run_states: dict[str, list[str]] = {}
        self.refusal: Refused | None = None
        self.ti_states: dict[str, str | None] = {}
        self.documents: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self.state: dict[str, Any] = {}
        self.previous: dict[str, Any] | None = None
        self.outcomes: dict[tuple[str, int], dict[str, Any]] = {}
        self.questions: list[tuple[str, dict[str, Any]]] = []
        self.now: tuple[str, int] = ("", -1)

    def get_variable(self, key: str) -> str | None:
        return self.variables.get(key)

    def set_variable(self, key: str, value: str, description: str | None = None) -> None:
        self.variables[key] = value

    def delete_variable(self, key: str) -> None:
        self.variables.pop(key, None)

    def get_connection(self, conn_id: str) -> Any:
        return self.connections.get(conn_id)

    def get_xcom(self, *, task_id: str, map_index: int, key: str, **_: Any) -> tuple[bool, Any]:
        return (task_id, map_index, key) in self.xcoms, self.xcoms.get((task_id, map_index, key))

    def get_xcoms(self, *, task_id: str, key: str, map_indexes: Any = None, **_: Any) -> list[tuple[int, Any]]:
        rows = [
            (index, value) for (name, index, name_of), value in self.xcoms.items() if (name, name_of) == (task_id, key)
        ]
        return sorted(row for row in rows if map_indexes is None or row[0] in map_indexes)

    def set_xcom(self, key: str, value: Any, map_length: int | None = None) -> None:
        stored = wire.decode(wire.encode(value, key), classes=wire.import_class)
        self.xcoms[(*self.now, key)] = stored
        self.lengths[self.now[0]] = map_length

    def delete_xcom(self, key: str) -> None:
        self.xcoms.pop((*self.now, key), None)

    def set_rendered_fields(self, fields: dict[str, Any]) -> None:
        self.rendered = fields

    def mask_secret(self, value: Any) -> None:
        self.masked.append(value)

    def trigger_dag_run(self, **arguments: Any) -> Any:
        if self.refusal is not None:
            raise self.refusal
        self.triggered.append(arguments)
        return {"run_id": arguments["run_id"] or "manual__1", "created": True}

    def get_dag_run_state(self, dag_id: str, run_id: str) -> str | None:
        states = self.run_states.get(run_id, ["success"])
        return states.pop(0) if len(states) > 1 else states[0]

    def get_dr_count(self, **filters: Any) -> int:
        self.questions.append(("get_dr_count", filters))
        return sum(1 for states in self.run_states.values() if states[0] in filters["states"])

    def get_ti_count(self, **filters: Any) -> int:
        self.questions.append(("get_ti_count", filters))
        names = filters.get("task_ids") or list(self.ti_states)
        return sum(1 for name in names if self.ti_states.get(name, "?") in filters["states"])

    def get_task_states(self, **filters: Any) -> dict[str, dict[str, str | None]]:
        self.questions.append(("get_task_states", filters))
        return {"run": dict(self.ti_states)} if self.ti_states else {}

    def get_previous_run(self, **filters: Any) -> Any:
        self.questions.append(("get_previous_run", filters))
        return self.previous

    def get_previous_ti(self, **_: Any) -> Any:
        return None

    def get_dag_document(self, dag_id: str) -> Any:
        return self.documents.get(dag_id)

    def get_asset(self, *, name: str | None = None, uri: str | None = None) -> Any:
        return None

    def get_asset_events(self, **filters: Any) -> list[Any]:
        self.questions.append(("get_asset_events", filters))
        return self.events

    def get_asset_alias_events(self, **filters: Any) -> list[Any]:
        self.questions.append(("get_asset_alias_events", filters))
        return self.events

    def get_state(self, *, scope: dict[str, Any], key: str) -> Any:
        return {"value": self.state[key]} if key in self.state else None

    def set_state(self, *, scope: dict[str, Any], key: str, value: Any, expires_after: float | None = None) -> None:
        self.state[key] = value

    def delete_state(self, *, scope: dict[str, Any], key: str | None = None) -> None:
        self.state.clear() if key is None else self.state.pop(key, None)


def start(
    dag: Any, task_id: str, map_index: int = -1, *, logical_date: str | None = LOGICAL_DATE, **changes: Any
) -> dict[str, Any]:
    """A ``start`` document. ``changes``: ``ti`` and ``run`` dicts are laid over the defaults."""
    ti = {
        "id": "7",
        "dag_id": dag.dag_id,
        "run_id": "conf_run",
        "task_id": task_id,
        "map_index": map_index,
        "try_number": 1,
        "max_tries": 0,
        "fence": 1,
        "queue": "default",
        "pool": "default_pool",
        "start_date": "2024-03-15T10:21:00+00:00",
        "first_start_date": "2024-03-15T10:21:00+00:00",
        "hostname": "here",
        "next_method": None,
        "next_kwargs": None,
    }
    run = {
        "dag_id": dag.dag_id,
        "run_id": "conf_run",
        "run_type": "manual",
        "logical_date": logical_date,
        "data_interval_start": logical_date,
        "data_interval_end": logical_date,
        "run_after": LOGICAL_DATE,
        "start_date": "2024-03-15T10:20:40+00:00",
        "end_date": None,
        "queued_at": None,
        "conf": {},
        "state": "running",
        "consumed_asset_events": [],
        "clear_number": 0,
    }
    return {
        "op": "start",
        "ti": ti | changes.get("ti", {}),
        "run": run | changes.get("run", {}),
        "upstream_map_lengths": {},
    }


def attempt(
    dag: Any, task_id: str, port: MemoryPort | None = None, map_index: int = -1, **changes: Any
) -> dict[str, Any]:
    """The outcome of one attempt."""
    port = port or MemoryPort()
    port.now = (task_id, map_index)
    return execute.run(dag, start(dag, task_id, map_index, **changes), port)


def run_all(dag: Any, port: MemoryPort | None = None) -> MemoryPort:
    """Runs every task once in topological order, mapped ones for each element; ``port.outcomes`` has the outcomes."""
    port = port or MemoryPort()
    for task in dag.topological_sort():
        for index in indexes(task, port):
            port.outcomes[task.task_id, index] = attempt(dag, task.task_id, port, index)
    return port


def indexes(task: Any, port: MemoryPort) -> list[int]:
    mapped = task if task.is_mapped else task.get_closest_mapped_task_group()
    if mapped is None:
        return [-1]
    document, count = mapped.expand_input.to_doc(), 1
    for ref in document["inputs"].values():
        count *= length(ref, port)
    return list(range(count))


def length(ref: dict[str, Any], port: MemoryPort) -> int:
    if "literal" in ref:
        return int(ref["literal"])
    if "map" in ref:
        return length(ref["map"], port)
    if "zip" in ref:
        return (max if ref["fill"] else min)(length(item, port) for item in ref["zip"])
    if "concat" in ref:
        return sum(length(item, port) for item in ref["concat"])
    rows = port.get_xcoms(task_id=ref["xcom"], key=ref["key"])
    return len(rows[0][1]) if rows and rows[0][0] < 0 else len(rows)


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)
