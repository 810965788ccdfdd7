"""The one port from task code to our side: what a running attempt may ask for (docs/borders.md §3)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

Json = Any


class Port(Protocol):
    """Values are Python values; the implementation encodes them. Requests are answered in order."""

    def get_variable(self, key: str) -> str | None: ...
    def set_variable(self, key: str, value: str, description: str | None = None) -> None: ...
    def delete_variable(self, key: str) -> None: ...
    def get_connection(self, conn_id: str) -> Json: ...
    def get_xcom(
        self, *, dag_id: str, run_id: str, task_id: str, map_index: int, key: str, include_prior_dates: bool = False
    ) -> tuple[bool, Any]: ...
    def get_xcoms(
        self, *, dag_id: str, run_id: str, task_id: str, key: str, map_indexes: Sequence[int] | None = None
    ) -> list[tuple[int, Any]]: ...
    def set_xcom(self, key: str, value: Any, map_length: int | None = None) -> None: ...
    def delete_xcom(self, key: str) -> None: ...
    def set_rendered_fields(self, fields: dict[str, Any]) -> None: ...
    def mask_secret(self, value: Any) -> None: ...
    def trigger_dag_run(
        self,
        *,
        dag_id: str,
        run_id: str | None = None,
        logical_date: dt.datetime | None = None,
        run_after: dt.datetime | None = None,
        conf: dict[str, Any] | None = None,
        note: str | None = None,
        reset: bool = False,
    ) -> Json: ...
    def get_dag_run_state(self, dag_id: str, run_id: str) -> str | None: ...
    def get_dr_count(
        self,
        *,
        dag_id: str,
        logical_dates: Iterable[dt.datetime] | None = None,
        run_ids: Iterable[str] | None = None,
        states: Iterable[str] | None = None,
    ) -> int: ...
    def get_ti_count(
        self,
        *,
        dag_id: str,
        task_ids: Iterable[str] | None = None,
        task_group_id: str | None = None,
        logical_dates: Iterable[dt.datetime] | None = None,
        run_ids: Iterable[str] | None = None,
        states: Iterable[str | None] | None = None,
        map_index: int | None = None,
    ) -> int: ...
    def get_task_states(
        self,
        *,
        dag_id: str,
        task_ids: Iterable[str] | None = None,
        task_group_id: str | None = None,
        logical_dates: Iterable[dt.datetime] | None = None,
        run_ids: Iterable[str] | None = None,
        map_index: int | None = None,
    ) -> dict[str, dict[str, str | None]]: ...
    def get_previous_run(self, *, dag_id: str, logical_date: dt.datetime, state: str | None = None) -> Json: ...
    def get_previous_ti(
        self,
        *,
        dag_id: str,
        task_id: str,
        logical_date: dt.datetime | None = None,
        map_index: int = -1,
        state: str | None = None,
    ) -> Json: ...
    def get_dag_document(self, dag_id: str) -> Json: ...
    def get_asset(self, *, name: str | None = None, uri: str | None = None) -> Json: ...
    def get_asset_events(self, **filters: Any) -> list[Json]: ...
    def get_asset_alias_events(self, **filters: Any) -> list[Json]: ...
    def get_state(self, *, scope: dict[str, Any], key: str) -> Json: ...
    def set_state(self, *, scope: dict[str, Any], key: str, value: Any, expires_after: float | None = None) -> None: ...
    def delete_state(self, *, scope: dict[str, Any], key: str | None = None) -> None: ...


_port: Port | None = None


def set_port(port: Port | None) -> None:
    """Sets the port of this process; None while no attempt runs."""
    global _port
    _port = port


def current_port() -> Port:
    """Raises RuntimeError where nobody answers: outside of a task and of the import of its DAG file."""
    if _port is None:
        raise RuntimeError(
            "Variables, connections and XComs can be read where a scheduler answers: in a running task, the first two "
            "also while its DAG file is read. This process is neither."
        )
    return _port


def has_port() -> bool:
    return _port is not None
