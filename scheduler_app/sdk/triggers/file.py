"""Triggers that wait for files."""

from __future__ import annotations

import asyncio
import datetime as dt
import glob
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from scheduler_app.sdk.triggers.base import BaseEventTrigger, BaseTrigger, TriggerEvent

_MODULE = "airflow.providers.standard.triggers.file"


class FileTrigger(BaseTrigger):
    """Fires when a file (or glob pattern) exists; ``poke_interval`` in seconds."""

    def __init__(self, filepath: str, recursive: bool = False, poke_interval: float = 5.0, **kwargs: Any) -> None:
        super().__init__()
        self.filepath, self.recursive, self.poke_interval = filepath, recursive, poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        arguments = {"filepath": self.filepath, "recursive": self.recursive, "poke_interval": self.poke_interval}
        return f"{_MODULE}.FileTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:  # type: ignore[override]
        while not (found := await asyncio.to_thread(find, self.filepath, self.recursive)):
            await asyncio.sleep(self.poke_interval)
        self.log.info("Found %s", found)
        yield TriggerEvent(True)


class FileDeleteTrigger(BaseEventTrigger):
    """Fires when the file exists, and deletes it."""

    def __init__(self, filepath: str, poke_interval: float = 5.0, **kwargs: Any) -> None:
        super().__init__()
        self.filepath, self.poke_interval = filepath, poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{_MODULE}.FileDeleteTrigger", {"filepath": self.filepath, "poke_interval": self.poke_interval}

    async def run(self) -> AsyncIterator[TriggerEvent]:  # type: ignore[override]
        while True:
            if await asyncio.to_thread(take, self.filepath):
                yield TriggerEvent(True)
                return
            await asyncio.sleep(self.poke_interval)


class DirectoryFileDeleteTrigger(BaseEventTrigger):
    """Fires when the folder holds the file, and deletes it."""

    def __init__(self, directory: str, filename: str, poke_interval: float = 5.0, **kwargs: Any) -> None:
        super().__init__()
        self.directory, self.filename, self.poke_interval = directory, filename, poke_interval
        self.shared_stream_key = ("directory-scan", directory, poke_interval)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        arguments = {"directory": self.directory, "filename": self.filename, "poke_interval": self.poke_interval}
        return f"{_MODULE}.DirectoryFileDeleteTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:  # type: ignore[override]
        path = os.path.join(self.directory, self.filename)
        while True:
            if await asyncio.to_thread(take, path):
                yield TriggerEvent(path)
                return
            await asyncio.sleep(self.poke_interval)


def find(pattern: str, recursive: bool = False) -> str | None:
    """The first file of a glob pattern, or the first folder with a file in it."""
    for path in glob.iglob(pattern, recursive=recursive):
        if os.path.isfile(path) or any(files for _, _, files in os.walk(path)):
            return path
    return None


def take(path: str) -> bool:
    """Deletes a file; False when there is none."""
    try:
        Path(path).unlink()
    except FileNotFoundError:
        return False
    return True


def modified(path: str) -> dt.datetime:
    """When a file was last written, in UTC."""
    return dt.datetime.fromtimestamp(os.path.getmtime(path), dt.UTC)
