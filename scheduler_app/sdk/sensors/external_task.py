"""ExternalTaskSensor: waits for a task, a group or a run of another DAG; ExternalTaskMarker: the other end of that."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable
from typing import Any

from scheduler_app.sdk.exceptions import AirflowException, AirflowSkipException
from scheduler_app.sdk.external_state import count_matches
from scheduler_app.sdk.links import BaseOperatorLink
from scheduler_app.sdk.operators.empty import EmptyOperator
from scheduler_app.sdk.operators.python import call_arguments
from scheduler_app.sdk.runtime import current_port
from scheduler_app.sdk.sensor_base import BaseSensorOperator
from scheduler_app.sdk.states import DagRunState, TaskInstanceState


class ExternalDagNotFoundError(AirflowException):
    """``check_existence``: there is no such DAG."""


class ExternalTaskNotFoundError(AirflowException):
    """``check_existence``: the DAG has no such task."""


class ExternalTaskGroupNotFoundError(AirflowException):
    """``check_existence``: the DAG has no such group."""


class ExternalDagFailedError(AirflowException):
    """The run that was waited for is in a failed state."""


class ExternalTaskFailedError(AirflowException):
    """A task that was waited for is in a failed state."""


class ExternalTaskGroupFailedError(AirflowException):
    """The group that was waited for is in a failed state."""


class DuplicateStateError(AirflowException):
    """A state is in two of the lists."""


class ExternalDagLink(BaseOperatorLink):
    """To the DAG that is waited for."""

    name = "External DAG"  # type: ignore[assignment]

    def get_link(self, operator: Any, *, ti_key: Any = None) -> str:
        return f"/dags/{operator.external_dag_id}"


class ExternalTaskSensor(BaseSensorOperator):
    """Waits until the external task(s), group or DAG of the same logical date is in one of ``allowed_states``.

    ``execution_delta`` looks that much earlier; ``execution_date_fn(logical_date)`` gives the date(s) itself.
    """

    template_fields = ("external_dag_id", "external_task_id", "external_task_ids", "external_task_group_id")
    ui_color = "#4db7db"
    operator_extra_links = (ExternalDagLink(),)

    def __init__(
        self,
        *,
        external_dag_id: str,
        external_task_id: str | None = None,
        external_task_ids: Collection[str] | None = None,
        external_task_group_id: str | None = None,
        allowed_states: Iterable[str] | None = None,
        skipped_states: Iterable[str] | None = None,
        failed_states: Iterable[str] | None = None,
        execution_delta: dt.timedelta | None = None,
        execution_date_fn: Callable[..., Any] | None = None,
        check_existence: bool = False,
        poll_interval: float = 2.0,
        deferrable: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.allowed_states = [str(state) for state in allowed_states] if allowed_states else ["success"]
        self.skipped_states = [str(state) for state in skipped_states or ()]
        self.failed_states = [str(state) for state in failed_states or ()]
        self._check_states(bool(external_task_id or external_task_ids or external_task_group_id))
        if execution_delta is not None and execution_date_fn is not None:
            raise ValueError(f"Sensor {self.task_id!r}: give execution_delta or execution_date_fn, not both.")
        if sum(value is not None for value in (external_task_id, external_task_ids, external_task_group_id)) > 1:
            raise ValueError(
                f"Sensor {self.task_id!r}: give one of external_task_id, external_task_ids, external_task_group_id."
            )
        self.external_dag_id = external_dag_id
        self.external_task_id = external_task_id
        self.external_task_ids = [external_task_id] if external_task_id is not None else external_task_ids
        self.external_task_group_id = external_task_group_id
        self.execution_delta, self.execution_date_fn = execution_delta, execution_date_fn
        self.check_existence, self.poll_interval, self.deferrable = check_existence, poll_interval, deferrable

    def _check_states(self, of_tasks: bool) -> None:
        lists = [self.allowed_states, self.skipped_states, self.failed_states]
        everything = [state for states in lists for state in states]
        if len(everything) > len(set(everything)):
            raise DuplicateStateError(
                f"Sensor {self.task_id!r}: a state is in two of allowed, skipped and failed states."
            )
        known = {str(state) for state in (TaskInstanceState if of_tasks else DagRunState)}
        unknown = sorted(set(everything) - known)
        if unknown:
            raise ValueError(
                f"Sensor {self.task_id!r}: {unknown} are no states of a {'task' if of_tasks else 'run'}: use "
                f"{sorted(known)}."
            )

    def _dates(self, context: Any) -> list[Any]:
        """The logical dates that are waited for."""
        date = context.get("logical_date") or context["dag_run"].run_after
        if self.execution_delta is not None:
            return [date - self.execution_delta]
        if self.execution_date_fn is not None:
            arguments = call_arguments(self.execution_date_fn, [date], dict(context), {})
            found = self.execution_date_fn(date, **arguments)
            return list(found) if isinstance(found, (list, tuple, set)) else [found]
        return [date]

    def _count(self, states: list[str], dates: list[Any], *, whole: bool) -> float:
        return count_matches(
            dag_id=self.external_dag_id,
            task_ids=list(self.external_task_ids) if self.external_task_ids else None,
            group_id=self.external_task_group_id,
            logical_dates=dates,
            run_ids=None,
            states=states,
            whole=whole,
        )

    def poke(self, context: Any) -> bool:
        dates = self._dates(context)
        self.log.info("Waiting for %s at %s", self._target(), ", ".join(map(str, dates)))
        if self.check_existence:
            self._check_existence()
        if self.failed_states and self._count(self.failed_states, dates, whole=False) > 0:
            self._fail()
        if self.skipped_states and self._count(self.skipped_states, dates, whole=False) > 0:
            raise AirflowSkipException(f"{self._target()} is in one of the states {self.skipped_states}.")
        return self._count(self.allowed_states, dates, whole=True) >= len(dates)

    def _target(self) -> str:
        if self.external_task_ids:
            return f"task(s) {', '.join(self.external_task_ids)} of DAG {self.external_dag_id}"
        if self.external_task_group_id:
            return f"group {self.external_task_group_id} of DAG {self.external_dag_id}"
        return f"DAG {self.external_dag_id}"

    def _fail(self) -> None:
        text = f"{self._target()} is in one of the states {self.failed_states}."
        if self.soft_fail:
            raise AirflowSkipException(text)
        if self.external_task_ids:
            raise ExternalTaskFailedError(text)
        if self.external_task_group_id:
            raise ExternalTaskGroupFailedError(text)
        raise ExternalDagFailedError(text)

    def _check_existence(self) -> None:
        document = current_port().get_dag_document(self.external_dag_id)
        if document is None:
            raise ExternalDagNotFoundError(f"There is no DAG {self.external_dag_id!r}.")
        known = {task["task_id"] for task in document.get("tasks", ())}
        for task_id in self.external_task_ids or ():
            if task_id not in known:
                raise ExternalTaskNotFoundError(f"DAG {self.external_dag_id!r} has no task {task_id!r}.")
        groups = {group.get("group_id") for group in document.get("groups", ())}
        if self.external_task_group_id and self.external_task_group_id not in groups:
            raise ExternalTaskGroupNotFoundError(
                f"DAG {self.external_dag_id!r} has no group {self.external_task_group_id!r}."
            )

    def execute(self, context: Any) -> Any:
        ids = list(self.external_task_ids or ())  # templates until now
        if len(set(ids)) < len(ids):
            raise ValueError(f"Sensor {self.task_id!r}: external_task_ids has an id twice.")
        if not self.deferrable:
            return super().execute(context)
        from scheduler_app.sdk.triggers.external_task import WorkflowTrigger

        if self.check_existence:
            self._check_existence()
        trigger = WorkflowTrigger(
            external_dag_id=self.external_dag_id,
            logical_dates=self._dates(context),
            external_task_ids=list(self.external_task_ids) if self.external_task_ids else None,
            external_task_group_id=self.external_task_group_id,
            failed_states=self.failed_states,
            skipped_states=self.skipped_states,
            allowed_states=self.allowed_states,
            poke_interval=self.poll_interval,
            soft_fail=self.soft_fail,
        )
        self.defer(trigger=trigger, method_name="execute_complete", timeout=self.timeout)

    def execute_complete(self, context: Any, event: Any = None) -> None:
        status = (event or {}).get("status")
        if status == "success":
            return
        if status == "skipped":
            raise AirflowSkipException(f"{self._target()} is in one of the states {self.skipped_states}.")
        if status == "failed":
            self._fail()
        raise AirflowException(f"The trigger ended with the unknown event {event!r}.")


class ExternalTaskMarker(EmptyOperator):
    """Says that a task of another DAG depends on this one. ``recursion_depth`` bounds a recursive clear."""

    template_fields = ("external_dag_id", "external_task_id", "logical_date")
    ui_color = "#4db7db"
    operator_extra_links = (ExternalDagLink(),)

    def __init__(
        self,
        *,
        external_dag_id: str,
        external_task_id: str,
        logical_date: str | dt.datetime | None = "{{ logical_date.isoformat() }}",
        execution_date: str | dt.datetime | None = None,
        recursion_depth: int = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.external_dag_id, self.external_task_id = external_dag_id, external_task_id
        chosen = execution_date or logical_date
        self.logical_date = chosen.isoformat() if isinstance(chosen, dt.datetime) else chosen
        if recursion_depth <= 0:
            raise ValueError("recursion_depth is 1 or more.")
        self.recursion_depth = recursion_depth
