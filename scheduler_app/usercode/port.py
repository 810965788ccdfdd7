"""The child's end of the wire: one method for each request of docs/borders.md §3.

Requests wait for their answer; what the supervisor buffers anyway (XComs, rendered fields, masks) is sent one-way, so a
task that pushes fifty values waits for none of them.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from scheduler_app import wire
from scheduler_app.attempt_log import Masks
from scheduler_app.sdk import backends
from scheduler_app.wire import BlockingChannel, Json


class RequestError(Exception):
    """The supervisor refused a request. ``kind`` is the error's name ("DagNotFound"), the text says why."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class WirePort:
    """Asks the supervisor. Any thread of the task may call; a process that the task forked may not."""

    def __init__(self, channel: BlockingChannel, masks: Masks) -> None:
        self._channel, self._masks = channel, masks
        self._lock = threading.Lock()
        self._last_id = 0
        self._pid = os.getpid()
        #: dag id, run id, task id and map index of the task that asks, and what it pushed: the supervisor stores that
        #: later, but the task may read it at once
        self.own: tuple[str, str, str, int] | None = None
        self._pushed: dict[str, Json] = {}

    def request(self, op: str, **arguments: Any) -> Json:
        """The answer to one request. Raises RequestError, and EOFError or OSError when the supervisor is gone."""
        self._check_process(op)
        with self._lock:
            self._last_id += 1
            self._channel.send({"id": self._last_id, "op": op, **arguments})
            answer = self._channel.receive()
        if "error" in answer:
            raise RequestError(answer["error"]["type"], answer["error"]["message"])
        return answer.get("ok")

    def tell(self, op: str, **arguments: Any) -> None:
        """A message without an answer."""
        self._check_process(op)
        with self._lock:
            self._channel.send({"op": op, **arguments})

    def _check_process(self, op: str) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(
                f"{op} was called in a process that the task started itself; only the task's own process may talk "
                "to the scheduler. Fetch the value before you start the process and hand it over."
            )

    # Variables and connections

    def get_variable(self, key: str) -> str | None:
        found = self.request("get_variable", key=key)
        return None if found is None else found["value"]

    def set_variable(self, key: str, value: str, description: str | None = None) -> None:
        self.request("set_variable", key=key, value=value, description=description)

    def delete_variable(self, key: str) -> None:
        self.request("delete_variable", key=key)

    def get_connection(self, conn_id: str) -> Json:
        found = self.request("get_connection", conn_id=conn_id)
        if found is not None and found.get("password"):
            self._masks.add(found["password"])
        return found

    # XComs and rendered fields

    def get_xcom(
        self,
        *,
        dag_id: str,
        run_id: str,
        task_id: str,
        map_index: int,
        key: str,
        include_prior_dates: bool = False,
    ) -> tuple[bool, Any]:
        """Whether it was pushed, and the value."""
        place = (dag_id, run_id, task_id, map_index)
        if place == self.own and key in self._pushed:
            return True, backends.loaded(decode(self._pushed[key]), key, *place)
        answer = self.request(
            "get_xcom",
            dag_id=dag_id,
            run_id=run_id,
            task_id=task_id,
            map_index=map_index,
            key=key,
            include_prior_dates=include_prior_dates,
        )
        value = decode(answer["value"])
        return answer["found"], backends.loaded(value, key, *place) if answer["found"] else value

    def get_xcoms(
        self, *, dag_id: str, run_id: str, task_id: str, key: str, map_indexes: Sequence[int] | None = None
    ) -> list[tuple[int, Any]]:
        """The values that were pushed, by map index."""
        indexes = None if map_indexes is None else list(map_indexes)
        rows = self.request("get_xcoms", dag_id=dag_id, run_id=run_id, task_id=task_id, key=key, map_indexes=indexes)
        found = {int(place): decode(value) for place, value in rows}
        *mine, index = self.own or (None, -1)
        if mine == [dag_id, run_id, task_id] and key in self._pushed and (indexes is None or index in indexes):
            found[index] = decode(self._pushed[key])
        return [
            (place, backends.loaded(value, key, dag_id, run_id, task_id, place))
            for place, value in sorted(found.items())
        ]

    def set_xcom(self, key: str, value: Any, map_length: int | None = None) -> None:
        """Raises wire.EncodeError, which names where in the value the trouble sits."""
        document = wire.encode(backends.stored(value, key, self.own), key)
        try:
            self.tell("set_xcom", key=key, value=document, map_length=map_length)
        except wire.FrameTooLarge as large:
            raise large.about(f"XCom {key!r}") from None
        self._pushed[key] = document

    def delete_xcom(self, key: str) -> None:
        self._pushed.pop(key, None)
        self.tell("delete_xcom", key=key)

    def set_rendered_fields(self, fields: dict[str, Any]) -> None:
        # Shown, never read back: secrets stand there masked, and what the database cannot take escaped.
        document = wire.encode(fields, "a rendered field")
        shown = document if document is fields else wire.plain(document)
        self.tell("set_rendered_fields", fields=self._masks.clean_all(shown))

    def mask_secret(self, value: Any) -> None:
        self._masks.add(value)
        self.tell("mask_secret", value=wire.encode(value, "the secret"))

    # Runs and task instances

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
    ) -> Json:
        return self.request(
            "trigger_dag_run",
            dag_id=dag_id,
            run_id=run_id,
            logical_date=iso(logical_date),
            run_after=iso(run_after),
            conf=wire.encode(conf or {}, "conf"),
            note=note,
            reset=reset,
        )

    def get_dag_run_state(self, dag_id: str, run_id: str) -> str | None:
        answer: str | None = self.request("get_dag_run_state", dag_id=dag_id, run_id=run_id)
        return answer

    def get_dr_count(
        self,
        *,
        dag_id: str,
        logical_dates: Iterable[dt.datetime] | None = None,
        run_ids: Iterable[str] | None = None,
        states: Iterable[str] | None = None,
    ) -> int:
        answer: int = self.request(
            "get_dr_count",
            dag_id=dag_id,
            logical_dates=isos(logical_dates),
            run_ids=listed(run_ids),
            states=listed(states),
        )
        return answer

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
    ) -> int:
        answer: int = self.request(
            "get_ti_count",
            dag_id=dag_id,
            task_ids=listed(task_ids),
            task_group_id=task_group_id,
            logical_dates=isos(logical_dates),
            run_ids=listed(run_ids),
            states=listed(states),
            map_index=map_index,
        )
        return answer

    def get_task_states(
        self,
        *,
        dag_id: str,
        task_ids: Iterable[str] | None = None,
        task_group_id: str | None = None,
        logical_dates: Iterable[dt.datetime] | None = None,
        run_ids: Iterable[str] | None = None,
        map_index: int | None = None,
    ) -> dict[str, dict[str, str | None]]:
        answer: dict[str, dict[str, str | None]] = self.request(
            "get_task_states",
            dag_id=dag_id,
            task_ids=listed(task_ids),
            task_group_id=task_group_id,
            logical_dates=isos(logical_dates),
            run_ids=listed(run_ids),
            map_index=map_index,
        )
        return answer

    def get_previous_run(self, *, dag_id: str, logical_date: dt.datetime, state: str | None = None) -> Json:
        return self.request("get_previous_run", dag_id=dag_id, logical_date=iso(logical_date), state=state)

    def get_previous_ti(
        self,
        *,
        dag_id: str,
        task_id: str,
        logical_date: dt.datetime | None = None,
        map_index: int = -1,
        state: str | None = None,
    ) -> Json:
        return self.request(
            "get_previous_ti",
            dag_id=dag_id,
            task_id=task_id,
            logical_date=iso(logical_date),
            map_index=map_index,
            state=state,
        )

    def get_dag_document(self, dag_id: str) -> Json:
        return self.request("get_dag_document", dag_id=dag_id)

    # Assets and the state store

    def get_asset(self, *, name: str | None = None, uri: str | None = None) -> Json:
        return self.request("get_asset", name=name, uri=uri)

    def get_asset_events(self, **filters: Any) -> list[Json]:
        answer: list[Json] = self.request("get_asset_events", **{key: iso(value) for key, value in filters.items()})
        return answer

    def get_asset_alias_events(self, **filters: Any) -> list[Json]:
        answer: list[Json] = self.request(
            "get_asset_alias_events", **{key: iso(value) for key, value in filters.items()}
        )
        return answer

    def get_state(self, *, scope: dict[str, Any], key: str) -> Any:
        return decode(self.request("get_state", scope=scope, key=key))

    def set_state(self, *, scope: dict[str, Any], key: str, value: Any, expires_after: float | None = None) -> None:
        document = wire.encode(value, key)
        # JSON has no infinity
        seconds = "never" if expires_after == float("inf") else expires_after
        self.request("set_state", scope=scope, key=key, value=document, expires_after=seconds)

    def delete_state(self, *, scope: dict[str, Any], key: str | None = None) -> None:
        self.request("delete_state", scope=scope, key=key)

    # The end

    def send_outcome(self, outcome: dict[str, Any]) -> None:
        """The error becomes the row's reason, which people read: secrets in it are masked as in the log."""
        said = {key: value for key, value in outcome.items() if key != "op"}
        if said.get("error"):
            said["error"] = self._masks.clean_all(said["error"])
        self.tell("outcome", **said)

    def send_end(self) -> None:
        """After the outcome, the exit handlers and the threads: nothing of the task runs in this process any more."""
        self.tell("end")


def decode(document: Json) -> Any:
    """A value in a process of user code: classes are rebuilt."""
    return wire.decode(document, classes=wire.import_class)


def iso(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.datetime) else value


def isos(values: Iterable[Any] | None) -> list[Any] | None:
    return None if values is None else [iso(value) for value in values]


def listed(values: Iterable[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)
