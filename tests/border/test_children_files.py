"""Our side of children when something goes wrong in between: no file stays open, nothing that was said is lost."""

from __future__ import annotations

import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from border.conftest import Seen
from scheduler_app.supervisor.child import Child, Clocks
from scheduler_app.supervisor.events import Events
from scheduler_app.wire import Channel, pack

CLOCKS = Clocks(time.monotonic, lambda: datetime.now(UTC))


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("fails", [1, 2])
def test_a_child_that_cannot_be_opened_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    real, calls = os.pipe, []

    def pipe() -> tuple[int, int]:
        calls.append(1)
        if len(calls) == fails:
            raise OSError(24, "Too many open files")
        return real()

    events = Events()
    before = open_files()
    monkeypatch.setattr(os, "pipe", pipe)
    with pytest.raises(OSError, match="Too many open files"):
        Child(events, tmp_path / "a.log", 1000, CLOCKS, Seen())
    assert open_files() == before
    assert events.poll(0) == 0
    events.close()


def test_a_child_whose_log_cannot_be_opened_leaves_no_file_open(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("no folder")
    events = Events()
    before = open_files()
    with pytest.raises(OSError, match="folder"):
        Child(events, tmp_path / "folder" / "a.log", 1000, CLOCKS, Seen())
    assert open_files() == before
    events.close()


def test_a_message_that_cannot_be_dealt_with_takes_none_of_the_others_along() -> None:
    ours, theirs = socket.socketpair()
    heard: list[Any] = []

    def hear(message: Any) -> None:
        if message == {"op": "bad"}:
            raise KeyError("op")
        heard.append(message)

    events = Events()
    events.watch(Channel(ours), hear, heard.append)
    theirs.sendall(b"".join(pack({"op": op}) for op in ("first", "bad", "last")))
    events.poll(1)
    assert heard == [{"op": "first"}, {"op": "last"}]
    theirs.close()
    events.poll(1)
    assert heard[-1] == ""
    events.close()
    ours.close()
