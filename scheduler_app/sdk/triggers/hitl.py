"""HITLTrigger: waits until a person answered. The answer is kept in the state store of the task instance."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator
from typing import Any

from scheduler_app.sdk import timezone
from scheduler_app.sdk.runtime import current_port
from scheduler_app.sdk.triggers.base import BaseTrigger, TriggerEvent

#: key of the answer: {"chosen_options": […], "params_input": {…}, "responded_by_user": {"id", "name"},
#: "responded_at": iso}
RESPONSE_KEY = "hitl_response"


class HITLTrigger(BaseTrigger):
    """Fires with the answer; at ``timeout_datetime`` with the defaults, or as an error when there are none."""

    def __init__(
        self,
        *,
        scope: dict[str, Any],
        options: list[str],
        params: dict[str, Any] | None = None,
        defaults: list[str] | None = None,
        multiple: bool = False,
        timeout_datetime: dt.datetime | None = None,
        poke_interval: float = 5.0,
    ) -> None:
        super().__init__()
        self.scope, self.options, self.params, self.defaults = scope, options, params or {}, defaults
        self.multiple, self.timeout_datetime, self.poke_interval = multiple, timeout_datetime, poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("scope", "options", "params", "defaults", "multiple", "timeout_datetime", "poke_interval")
        return "airflow.providers.standard.triggers.hitl.HITLTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:  # type: ignore[override]
        while True:
            found = await asyncio.to_thread(current_port().get_state, scope=self.scope, key=RESPONSE_KEY)
            if found is not None:
                yield TriggerEvent({**found["value"], "timedout": False})
                return
            if self.timeout_datetime is not None and timezone.utcnow() >= self.timeout_datetime:
                yield TriggerEvent(await asyncio.to_thread(self._timed_out))
                return
            await asyncio.sleep(self.poke_interval)

    def _timed_out(self) -> dict[str, Any]:
        if self.defaults is None:
            return {"error": "Nobody answered in time, and there are no defaults.", "error_type": "timeout"}
        answer = {
            "chosen_options": self.defaults,
            "params_input": self.params,
            "responded_by_user": None,
            "responded_at": timezone.utcnow().isoformat(),
        }
        # people who look at the question see how it was answered
        current_port().set_state(scope=self.scope, key=RESPONSE_KEY, value=answer, expires_after=float("inf"))
        return {**answer, "timedout": True}
