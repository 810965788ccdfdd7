"""Triggers that wait for runs and tasks of other DAGs. They ask our side through the port, off the event loop's
thread."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator
from typing import Any

from scheduler_app.sdk.external_state import count_matches
from scheduler_app.sdk.runtime import current_port
from scheduler_app.sdk.triggers.base import BaseTrigger, TriggerEvent

_MODULE = "airflow.providers.standard.triggers.external_task"


class WorkflowTrigger(BaseTrigger):
    """Fires when tasks, a group or runs of a DAG reached one of the states; the event says which kind."""

    def __init__(
        self,
        external_dag_id: str,
        run_ids: list[str] | None = None,
        execution_dates: list[dt.datetime] | None = None,
        logical_dates: list[dt.datetime] | None = None,
        external_task_ids: list[str] | None = None,
        external_task_group_id: str | None = None,
        failed_states: list[str] | None = None,
        skipped_states: list[str] | None = None,
        allowed_states: list[str] | None = None,
        poke_interval: float = 2.0,
        soft_fail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.external_dag_id, self.run_ids = external_dag_id, run_ids
        self.logical_dates = logical_dates or execution_dates
        self.external_task_ids, self.external_task_group_id = external_task_ids, external_task_group_id
        self.failed_states, self.skipped_states, self.allowed_states = failed_states, skipped_states, allowed_states
        self.poke_interval, self.soft_fail = poke_interval, soft_fail

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = (
            "external_dag_id",
            "run_ids",
            "logical_dates",
            "external_task_ids",
            "external_task_group_id",
            "failed_states",
            "skipped_states",
            "allowed_states",
            "poke_interval",
            "soft_fail",
        )
        return f"{_MODULE}.WorkflowTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:  # type: ignore[override]
        wanted = len(self.run_ids or self.logical_dates or ())
        while True:
            if self.failed_states and await self._count(self.failed_states, whole=False) > 0:
                yield TriggerEvent({"status": "failed"})
                return
            if self.skipped_states and await self._count(self.skipped_states, whole=False) > 0:
                yield TriggerEvent({"status": "skipped"})
                return
            if await self._count(self.allowed_states or ["success"], whole=True) >= wanted:
                yield TriggerEvent({"status": "success"})
                return
            await asyncio.sleep(self.poke_interval)

    async def _count(self, states: list[str], *, whole: bool) -> float:
        return await asyncio.to_thread(
            count_matches,
            dag_id=self.external_dag_id,
            task_ids=self.external_task_ids,
            group_id=self.external_task_group_id,
            logical_dates=self.logical_dates,
            run_ids=self.run_ids,
            states=states,
            whole=whole,
        )


class DagStateTrigger(BaseTrigger):
    """Fires when the runs of a DAG reached one of the states."""

    def __init__(
        self,
        dag_id: str,
        states: list[str],
        run_ids: list[str] | None = None,
        execution_dates: list[dt.datetime] | None = None,
        poll_interval: float = 5.0,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.dag_id, self.states, self.run_ids = dag_id, states, run_ids
        self.execution_dates, self.poll_interval = execution_dates, poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("dag_id", "states", "run_ids", "execution_dates", "poll_interval")
        return f"{_MODULE}.DagStateTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:  # type: ignore[override]
        wanted = len(self.run_ids or self.execution_dates or ())
        while True:
            port = current_port()
            count = await asyncio.to_thread(
                port.get_dr_count,
                dag_id=self.dag_id,
                logical_dates=self.execution_dates,
                run_ids=self.run_ids,
                states=self.states,
            )
            if count >= wanted:
                break
            await asyncio.sleep(self.poll_interval)
        states = {}
        for run_id in self.run_ids or ():
            states[run_id] = await asyncio.to_thread(current_port().get_dag_run_state, self.dag_id, run_id)
        _, arguments = self.serialize()
        yield TriggerEvent(
            (
                "airflow.providers.standard.triggers.external_task.DagStateTrigger",
                {**arguments, "states_of_runs": states},
            )
        )
