"""State that outlives an attempt: of a task instance across its tries, of an asset across runs."""

from __future__ import annotations

import datetime as dt
from typing import Any

from scheduler_app.sdk.runtime import current_port


async def _in_a_thread(function: Any, *args: Any) -> Any:
    import asyncio  # here: with ssl it makes every fork dearer, and few attempts need it

    return await asyncio.to_thread(function, *args)


class _NeverExpire:
    def __repr__(self) -> str:
        return "NEVER_EXPIRE"


#: as ``retention``: keep until deleted
NEVER_EXPIRE: Any = _NeverExpire()


class StateStore:
    """Keys and values of one scope; ``aget``, ``aset``, ``adelete`` for async tasks."""

    def __init__(self, scope: dict[str, Any]) -> None:
        self._scope = scope

    def get(self, key: str, default: Any = None) -> Any:
        found = current_port().get_state(scope=self._scope, key=key)
        return default if found is None else found["value"]

    def set(self, key: str, value: Any, retention: Any = None) -> None:
        """``retention``: a timedelta, NEVER_EXPIRE, or None for the server's default."""
        seconds = retention.total_seconds() if isinstance(retention, dt.timedelta) else None
        if retention is NEVER_EXPIRE:
            seconds = float("inf")
        current_port().set_state(scope=self._scope, key=key, value=value, expires_after=seconds)

    def delete(self, key: str) -> None:
        current_port().delete_state(scope=self._scope, key=key)

    def clear(self) -> None:
        current_port().delete_state(scope=self._scope, key=None)

    async def aget(self, key: str, default: Any = None) -> Any:
        return await _in_a_thread(self.get, key, default)

    async def aset(self, key: str, value: Any, retention: Any = None) -> None:
        await _in_a_thread(self.set, key, value, retention)

    async def adelete(self, key: str) -> None:
        await _in_a_thread(self.delete, key)

    def __repr__(self) -> str:
        return f"<state of {self._scope}>"


class TaskStateStore(StateStore):
    """``task_state_store`` of the context: this task instance, whatever its try."""

    def __init__(self, ti: Any) -> None:
        super().__init__(
            {"task": {"dag_id": ti.dag_id, "run_id": ti.run_id, "task_id": ti.task_id, "map_index": ti.map_index}}
        )


class AssetStateStores:
    """``asset_state_store[asset]`` of the context."""

    def __init__(self, assets: list[Any]) -> None:
        self._assets = assets

    def __getitem__(self, asset: Any) -> StateStore:
        return StateStore({"asset": {"name": asset.name, "uri": asset.uri}})

    def __repr__(self) -> str:
        return f"<state of assets {self._assets!r}>"
