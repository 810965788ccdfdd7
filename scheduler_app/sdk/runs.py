"""The run and the task instance as task code sees them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from pendulum import UTC, DateTime

from scheduler_app.sdk import timezone
from scheduler_app.sdk.runtime import current_port
from scheduler_app.sdk.states import DagRunState, DagRunType
from scheduler_app.sdk.xcom_arg import NOTSET, XCOM_RETURN_KEY, is_arg_set


def moment(text: Any) -> Any:
    """A pendulum DateTime of ISO text; None stays None."""
    if text is None:
        return None
    value = dt.datetime.fromisoformat(text) if isinstance(text, str) else text
    if value.tzinfo is dt.UTC:
        # as below, without pendulum's search for the zone: each attempt makes half a dozen of these
        day = (value.year, value.month, value.day)
        return DateTime(*day, value.hour, value.minute, value.second, value.microsecond, tzinfo=UTC, fold=value.fold)
    return timezone.coerce_datetime(value)


class DagRun:
    """A run, from its document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self.dag_id: str = document["dag_id"]
        self.run_id: str = document["run_id"]
        self.conf: dict[str, Any] = document.get("conf") or {}
        self.note = document.get("note")
        self.triggering_user_name = document.get("triggering_user_name")
        self.consumed_asset_events = document.get("consumed_asset_events") or []
        self.clear_number = document.get("clear_number", 0)
        self.partition_key = document.get("partition_key")
        self.dag_version = document.get("dag_version")

    def __repr__(self) -> str:
        return f"<DagRun {self.dag_id} {self.run_id}: {self.state}>"

    def has(self, name: str) -> bool:
        """Whether its document gives that."""
        return self._document.get(name) is not None

    @cached_property
    def run_type(self) -> Any:
        return _enum(DagRunType, self._document.get("run_type"))

    @cached_property
    def state(self) -> Any:
        return _enum(DagRunState, self._document.get("state"))

    @cached_property
    def logical_date(self) -> Any:
        return moment(self._document.get("logical_date"))

    @cached_property
    def data_interval_start(self) -> Any:
        return moment(self._document.get("data_interval_start"))

    @cached_property
    def data_interval_end(self) -> Any:
        return moment(self._document.get("data_interval_end"))

    @cached_property
    def run_after(self) -> Any:
        return moment(self._document.get("run_after"))

    @cached_property
    def start_date(self) -> Any:
        return moment(self._document.get("start_date"))

    @cached_property
    def end_date(self) -> Any:
        return moment(self._document.get("end_date"))

    @cached_property
    def queued_at(self) -> Any:
        return moment(self._document.get("queued_at"))

    @cached_property
    def partition_date(self) -> Any:
        return moment(self._document.get("partition_date"))

    @property
    def execution_date(self) -> Any:
        return self.logical_date

    @property
    def external_trigger(self) -> bool:
        return self.run_type == DagRunType.MANUAL

    def get_task_instance(self, task_id: str, map_index: int = -1) -> TaskInstanceView | None:
        """The state of another task of the run, or None when there is no such instance."""
        states = current_port().get_task_states(dag_id=self.dag_id, task_ids=[task_id], run_ids=[self.run_id])
        key = task_id if map_index < 0 else f"{task_id}_{map_index}"
        found = states.get(self.run_id, {})
        return TaskInstanceView(self.dag_id, self.run_id, task_id, map_index, found[key]) if key in found else None

    def get_task_instances(self) -> list[TaskInstanceView]:
        states = current_port().get_task_states(dag_id=self.dag_id, run_ids=[self.run_id]).get(self.run_id, {})
        return [TaskInstanceView(self.dag_id, self.run_id, key, -1, state) for key, state in states.items()]


class TaskInstanceView:
    """What ``dag_run.get_task_instance`` gives: names and the state."""

    def __init__(self, dag_id: str, run_id: str, task_id: str, map_index: int, state: str | None) -> None:
        self.dag_id, self.run_id, self.task_id, self.map_index, self.state = dag_id, run_id, task_id, map_index, state

    def current_state(self) -> str | None:
        return self.state


def _enum(kind: Any, value: Any) -> Any:
    try:
        return kind(value) if value is not None else None
    except ValueError:
        return value


class RuntimeTaskInstance:
    """The running attempt's task instance."""

    def __init__(self, document: dict[str, Any], dag_run: DagRun, task: Any) -> None:
        self._document = document
        self.id = document.get("id")
        self.dag_id: str = document["dag_id"]
        self.run_id: str = document["run_id"]
        self.task_id: str = document["task_id"]
        self.map_index: int = document.get("map_index", -1)
        self.try_number: int = document.get("try_number", 1)
        self.max_tries: int = document.get("max_tries", 0)
        self.queue, self.pool = document.get("queue"), document.get("pool")
        self.hostname = document.get("hostname")
        self.priority_weight = document.get("priority_weight")
        self.task_display_name = document.get("task_display_name") or self.task_id
        self.end_date = None
        self.state: str | None = document.get("state", "running")
        self.log_url = document.get("log_url")
        self.mark_success_url = document.get("mark_success_url")
        self.reschedule_count = document.get("reschedule_count", 0)
        self.rendered_map_index: str | None = None
        self.is_mapped = self.map_index >= 0
        self.dag_run, self.task = dag_run, task
        self.context: Any = None

    @cached_property
    def start_date(self) -> Any:
        return moment(self._document.get("start_date"))

    @cached_property
    def first_start_date(self) -> Any:
        return moment(self._document.get("first_start_date")) or self.start_date

    def __repr__(self) -> str:
        index = f" [{self.map_index}]" if self.map_index >= 0 else ""
        return f"<TaskInstance: {self.dag_id}.{self.task_id} {self.run_id}{index}>"

    @property
    def key(self) -> str:
        return f"{self.dag_id}__{self.task_id}"

    @property
    def logical_date(self) -> Any:
        return self.dag_run.logical_date

    @property
    def execution_date(self) -> Any:
        return self.dag_run.logical_date

    @property
    def operator(self) -> str:
        return self.task.task_type

    @property
    def prev_attempted_tries(self) -> int:
        return self.try_number

    @property
    def is_premature(self) -> bool:
        return False

    def current_state(self) -> str | None:
        return self.state

    def is_eligible_to_retry(self) -> bool:
        return self.try_number <= self.max_tries

    def get_template_context(self, *args: Any, **kwargs: Any) -> Any:
        return self.context

    def get_dagrun(self, *args: Any) -> DagRun:
        return self.dag_run

    def render_templates(self, context: Any = None, jinja_env: Any = None) -> Any:
        self.task.render_template_fields(context or self.context, jinja_env)
        return self.task

    # -- XComs ------------------------------------------------------------------------------------------------------

    def xcom_push(self, key: str, value: Any) -> None:
        """Stores a value under ``key``. The value must be able to cross the border (docs/borders.md §2)."""
        current_port().set_xcom(key, own_value(value), None)

    def xcom_pull(
        self,
        task_ids: str | Iterable[str] | None = None,
        dag_id: str | None = None,
        key: str = XCOM_RETURN_KEY,
        include_prior_dates: bool = False,
        *,
        map_indexes: int | Iterable[int] | None = NOTSET,
        default: Any = None,
        run_id: str | None = None,
        session: Any = None,
    ) -> Any:
        """What tasks pushed. One task id gives its value (a list when the task is mapped), several give a list."""
        dag_id, run_id = dag_id or self.dag_id, run_id or self.run_id
        single = task_ids is None or isinstance(task_ids, str)
        ids = [self.task_id] if task_ids is None else [task_ids] if isinstance(task_ids, str) else list(task_ids)
        if is_arg_set(map_indexes):
            indexes = (
                [-1 if map_indexes is None else map_indexes]
                if not isinstance(map_indexes, Iterable)
                else list(map_indexes)
            )
            values = [
                self._one(dag_id, run_id, task_id, key, index, include_prior_dates, default)
                for task_id in ids
                for index in indexes
            ]
            return values[0] if single and len(indexes) == 1 else values
        found: list[Any] = []
        for task_id in ids:
            rows = self._all(dag_id, run_id, task_id, key, include_prior_dates)
            found.extend(value for _, value in rows) if rows else found.append(default)
            if single and len(rows) > 1:  # a mapped task of one instance gives its value, as in Airflow
                return [value for _, value in rows]
        return found[0] if single else found

    def _all(self, dag_id: str, run_id: str, task_id: str, key: str, prior: bool) -> list[tuple[int, Any]]:
        port = current_port()
        rows = port.get_xcoms(dag_id=dag_id, run_id=run_id, task_id=task_id, key=key, map_indexes=None)
        if not rows and prior:
            found, value = port.get_xcom(
                dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=-1, key=key, include_prior_dates=True
            )
            return [(-1, value)] if found else []
        return rows

    def _one(self, dag_id: str, run_id: str, task_id: str, key: str, map_index: int, prior: bool, default: Any) -> Any:
        found, value = current_port().get_xcom(
            dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index, key=key, include_prior_dates=prior
        )
        return value if found else default

    def find_xcom(self, task_id: str, key: str, *, map_index: int) -> tuple[bool, Any]:
        """Whether a task of this run pushed ``key``, and the value."""
        return current_port().get_xcom(
            dag_id=self.dag_id,
            run_id=self.run_id,
            task_id=task_id,
            map_index=map_index,
            key=key,
            include_prior_dates=False,
        )

    def find_xcoms(self, task_id: str, key: str) -> list[Any]:
        """What all instances of a task of this run pushed, by map index."""
        rows = current_port().get_xcoms(
            dag_id=self.dag_id, run_id=self.run_id, task_id=task_id, key=key, map_indexes=None
        )
        return [value for _, value in rows]

    # -- questions to our side --------------------------------------------------------------------------------------

    @staticmethod
    def get_ti_count(dag_id: str, **filters: Any) -> int:
        return current_port().get_ti_count(dag_id=dag_id, **filters)

    @staticmethod
    def get_task_states(dag_id: str, **filters: Any) -> dict[str, Any]:
        return current_port().get_task_states(dag_id=dag_id, **filters)

    @staticmethod
    def get_dr_count(dag_id: str, **filters: Any) -> int:
        return current_port().get_dr_count(dag_id=dag_id, **filters)

    @staticmethod
    def get_dagrun_state(dag_id: str, run_id: str) -> str | None:
        return current_port().get_dag_run_state(dag_id, run_id)

    def get_previous_dagrun(self, state: str | None = None) -> DagRun | None:
        if self.dag_run.logical_date is None:
            return None
        found = current_port().get_previous_run(
            dag_id=self.dag_id, logical_date=self.dag_run.logical_date, state=None if state is None else str(state)
        )
        return DagRun(found) if found else None

    def get_previous_ti(self, state: str | None = None) -> Any:
        return current_port().get_previous_ti(
            dag_id=self.dag_id,
            task_id=self.task_id,
            logical_date=self.dag_run.logical_date,
            map_index=self.map_index,
            state=None if state is None else str(state),
        )

    def get_first_reschedule_date(self, context: Any = None) -> Any:
        return self.first_start_date


def own_value(value: Any) -> Any:
    """A value as it is stored: a lazy sequence of results becomes a list, wherever in the value it sits."""
    from scheduler_app.sdk.lazy_sequence import LazyXComSequence

    return _without_lazy(value, LazyXComSequence) if LazyXComSequence.exist else value


def _without_lazy(value: Any, lazy: type) -> Any:
    if isinstance(value, lazy):
        return list(value)
    if type(value) is list:
        return [_without_lazy(item, lazy) for item in value]
    if type(value) is tuple:
        return tuple(_without_lazy(item, lazy) for item in value)
    if type(value) is dict:
        return {key: _without_lazy(item, lazy) for key, item in value.items()}
    return value


TaskInstance = RuntimeTaskInstance
