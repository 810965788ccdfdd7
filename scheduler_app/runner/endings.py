"""How an attempt's process ended, in words with which a person can do something: pure."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from scheduler_app.engine.resources import Resources
from scheduler_app.supervisor.base import Exit

#: What a signal says that a program sends itself, or the kernel sends for what it did.
_MEANINGS = {
    signal.SIGSEGV: "a crash in native code",
    signal.SIGBUS: "a crash in native code, or a mapped file that became shorter",
    signal.SIGILL: "a crash in native code",
    signal.SIGFPE: "a crash in native code",
    signal.SIGABRT: "native code gave up (abort)",
    signal.SIGXFSZ: "a file became larger than the system allows",
    signal.SIGXCPU: "it used more CPU time than the system allows",
}
_SENT_BY_OTHERS = "which the scheduler did not send"
#: SIGKILL leaves no trace of its sender.
_WHO_KILLS = "the kernel when memory is short, a limit of its container, or a person"
#: What an attempt that hears SIGTERM says of itself.
_TERMINATED = "AirflowTaskTerminated"


def of_process(exit: Exit, stopped_for: str, limits: Resources, *, out_of_memory: str = "") -> str:
    """The whole reason of an attempt that ended without an outcome.

    `stopped_for`: why we ended it. `out_of_memory`: where the kernel killed for lack of memory since it began.
    """
    if stopped_for:
        return _sentence(stopped_for if exit.code is None else f"{stopped_for}; {exit.text}")
    return _sentence(exit.text + _cause(exit, limits, out_of_memory))


def of_error(text: str, kind: str, stopped_for: str) -> str:
    """The reason of an attempt that said itself how it failed."""
    terminated = _is_terminated(kind)
    if stopped_for:
        return _sentence(f"{stopped_for}; it ended with {text}" if text and not terminated else stopped_for)
    if terminated:
        return f"{text} The signal came from outside: the scheduler did not send it."
    return text


def is_by_signal(exit: Exit, outcome: Mapping[str, Any] | None) -> bool:
    """Whether a signal, to it or to what it was forked from, ended an attempt that had said nothing else."""
    if outcome is None:
        return exit.code is None or exit.code < 0
    return _is_terminated((outcome.get("error") or {}).get("type") or "")


def _is_terminated(kind: str) -> bool:
    return kind.rpartition(".")[2] == _TERMINATED


def _cause(exit: Exit, limits: Resources, out_of_memory: str) -> str:
    if exit.code is None or exit.why:
        return ""
    if exit.code >= 0:
        return " before its task was over: user code ended it (os._exit, or a library that does so)"
    if exit.code == -signal.SIGKILL:
        if limits.cpu_seconds and exit.cpu_seconds >= limits.cpu_seconds:
            return f": it used more CPU time than its limit of {limits.cpu_seconds:g} s (limits.cpu_seconds)"
        if out_of_memory:
            return f": the kernel was out of memory ({out_of_memory}; it had used {exit.max_rss_kb // 1024} MB)"
        return f", {_SENT_BY_OTHERS}: {_WHO_KILLS} does so"
    meaning = _MEANINGS.get(-exit.code)  # type: ignore[call-overload]
    return f": {meaning}" if meaning else f", {_SENT_BY_OTHERS}"


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
