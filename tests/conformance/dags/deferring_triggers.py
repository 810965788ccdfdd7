"""The trigger of the deferring cases (no DAG in here)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent


class Countdown(BaseTrigger):
    def __init__(self, seconds: float, payload: Any = None, explode: bool = False, silent: bool = False) -> None:
        super().__init__()
        self.seconds, self.payload, self.explode, self.silent = seconds, payload, explode, silent

    def serialize(self) -> tuple[str, dict[str, Any]]:
        kwargs = {"seconds": self.seconds, "payload": self.payload, "explode": self.explode, "silent": self.silent}
        return "deferring_triggers.Countdown", kwargs

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(self.seconds)
        if self.explode:
            raise RuntimeError("trigger exploded")
        if not self.silent:
            yield TriggerEvent(self.payload)
