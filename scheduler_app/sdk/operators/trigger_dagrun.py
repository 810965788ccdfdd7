"""TriggerDagRunOperator: starts a run of another DAG, and may wait for it."""

from __future__ import annotations

import datetime as dt
import json
import time
from typing import Any

from scheduler_app.sdk import timezone
from scheduler_app.sdk.exceptions import AirflowException, AirflowSkipException, DagRunAlreadyExists
from scheduler_app.sdk.links import BaseOperatorLink
from scheduler_app.sdk.operator import BaseOperator
from scheduler_app.sdk.refusals import as_known
from scheduler_app.sdk.runtime import current_port
from scheduler_app.sdk.xcom_arg import NOTSET, is_arg_set

XCOM_RUN_ID = "trigger_run_id"
XCOM_LOGICAL_DATE_ISO = "trigger_logical_date_iso"


class TriggerDagRunLink(BaseOperatorLink):
    """To the run that was started."""

    name = "Triggered DAG"  # type: ignore[assignment]

    def get_link(self, operator: Any, *, ti_key: Any = None) -> str:
        return f"/dags/{operator.trigger_dag_id}"


class TriggerDagRunOperator(BaseOperator):
    """``logical_date``: left out = now, None = a run without one. ``reset_dag_run`` clears a run that exists already.

    With ``wait_for_completion`` the task ends when the run is in one of ``allowed_states`` (success) and fails when
    it is in one of ``failed_states`` (failed); ``deferrable`` does the waiting in the triggerer.
    """

    template_fields = (
        "trigger_dag_id",
        "trigger_run_id",
        "logical_date",
        "conf",
        "wait_for_completion",
        "skip_when_already_exists",
    )
    template_fields_renderers = {"conf": "py"}
    ui_color = "#ffefeb"
    operator_extra_links = (TriggerDagRunLink(),)

    def __init__(
        self,
        *,
        trigger_dag_id: str,
        trigger_run_id: str | None = None,
        conf: dict[str, Any] | None = None,
        logical_date: str | dt.datetime | None = NOTSET,
        execution_date: str | dt.datetime | None = NOTSET,
        run_after: str | dt.datetime | None = None,
        reset_dag_run: bool = False,
        wait_for_completion: bool = False,
        poke_interval: float = 60,
        allowed_states: list[str] | None = None,
        failed_states: list[str] | None = None,
        skip_when_already_exists: bool = False,
        fail_when_dag_is_paused: bool = False,
        note: str | None = None,
        deferrable: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        chosen = execution_date if is_arg_set(execution_date) else logical_date
        if is_arg_set(chosen) and chosen is not None and not isinstance(chosen, (str, dt.datetime)):
            raise TypeError(f"logical_date of task {self.task_id!r} is a text, a datetime or None, not {chosen!r}.")
        self.trigger_dag_id, self.trigger_run_id, self.conf = trigger_dag_id, trigger_run_id, conf
        self.logical_date = chosen
        self.run_after = run_after
        self.reset_dag_run, self.wait_for_completion = reset_dag_run, wait_for_completion
        self.poke_interval = poke_interval
        self.allowed_states = [str(state) for state in allowed_states] if allowed_states is not None else ["success"]
        self.failed_states = [str(state) for state in failed_states] if failed_states is not None else ["failed"]
        self.skip_when_already_exists, self.fail_when_dag_is_paused = skip_when_already_exists, fail_when_dag_is_paused
        self.note, self.deferrable = note, deferrable

    def execute(self, context: Any) -> None:
        date = self._date()
        run_id = self._trigger(date)
        ti = context["ti"]
        ti.xcom_push(key=XCOM_RUN_ID, value=run_id)
        if date is not None:
            ti.xcom_push(key=XCOM_LOGICAL_DATE_ISO, value=date.isoformat())
        if self.wait_for_completion:
            self._wait(run_id)

    def _date(self) -> Any:
        if not is_arg_set(self.logical_date):
            return timezone.utcnow()
        if isinstance(self.logical_date, str):
            return timezone.parse(self.logical_date) if self.logical_date not in ("", "None") else None
        return timezone.coerce_datetime(self.logical_date)

    def _trigger(self, date: Any) -> str:
        try:
            conf = json.loads(self.conf) if isinstance(self.conf, str) else self.conf
            json.dumps(conf)
        except (TypeError, ValueError):
            raise ValueError(f"conf of task {self.task_id!r} must be JSON; it is {self.conf!r}.") from None
        if self.fail_when_dag_is_paused:
            document = current_port().get_dag_document(self.trigger_dag_id)
            if document is not None and document.get("is_paused"):
                raise AirflowException(f"DAG {self.trigger_dag_id!r} is paused: unpause it.")
        try:
            answer = current_port().trigger_dag_run(
                dag_id=self.trigger_dag_id,
                run_id=str(self.trigger_run_id) if self.trigger_run_id else None,
                logical_date=date,
                run_after=timezone.parse(self.run_after) if isinstance(self.run_after, str) else self.run_after,
                conf=conf,
                note=self.note,
                reset=self.reset_dag_run,
            )
        except Exception as error:
            known = as_known(error)
            if isinstance(known, DagRunAlreadyExists) and self.skip_when_already_exists:
                raise AirflowSkipException(f"The run exists already: {known}") from error
            raise known from error
        self.log.info(
            "Run %s of DAG %s was %s.",
            answer["run_id"],
            self.trigger_dag_id,
            "made" if answer.get("created", True) else "reset",
        )
        return str(answer["run_id"])

    def _wait(self, run_id: str) -> None:
        if self.deferrable:
            from scheduler_app.sdk.triggers.external_task import DagStateTrigger

            trigger = DagStateTrigger(
                dag_id=self.trigger_dag_id,
                states=[*self.allowed_states, *self.failed_states],
                run_ids=[run_id],
                poll_interval=self.poke_interval,
            )
            self.defer(trigger=trigger, method_name="execute_complete", kwargs={"run_id": run_id})
        while not self._is_done(current_port().get_dag_run_state(self.trigger_dag_id, run_id), run_id):
            time.sleep(self.poke_interval)

    def _is_done(self, state: str | None, run_id: str) -> bool:
        if state in self.failed_states:
            raise AirflowException(f"Run {run_id!r} of DAG {self.trigger_dag_id!r} ended as {state}.")
        if state in self.allowed_states:
            self.log.info("Run %s of DAG %s ended as %s.", run_id, self.trigger_dag_id, state)
            return True
        return False

    def execute_complete(self, context: Any, event: Any = None, run_id: str | None = None) -> None:
        run_id = run_id or context["ti"].xcom_pull(key=XCOM_RUN_ID)
        state = current_port().get_dag_run_state(self.trigger_dag_id, str(run_id))
        if not self._is_done(state, str(run_id)):
            raise AirflowException(f"Run {run_id!r} of DAG {self.trigger_dag_id!r} is {state}, which is no end.")
