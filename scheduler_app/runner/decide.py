"""What the end of an attempt means for its row: pure, with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduler_app.engine import retries, states
from scheduler_app.runner import endings
from scheduler_app.runner.claims import Claim

#: Of an error text what a row keeps (characters).
REASON_LENGTH = 2000
_DOES_NOT_COUNT = "This try does not count; the next one begins as soon as a scheduler runs."
_NOT_AGAIN = "A task without retries is not begun again by itself: clear it if it may run twice."


@dataclass(frozen=True, slots=True)
class Decision:
    """A verb of engine.states with the columns that go with it. ``callback``: the kind of callback that is due.

    ``cleared``: somebody wants another try, so nothing that this one pushed is kept.
    """

    verb: str
    columns: dict[str, Any] = field(default_factory=dict)
    callback: str | None = None
    cleared: bool = False


def decide(
    claim: Claim,
    outcome: Mapping[str, Any] | None,
    exit_text: str,
    state: str | None,
    now: datetime,
    *,
    stopped_for: str = "",
    again: bool | None = None,
    told: str | None = None,
) -> Decision:
    """`outcome` None: the process ended without one, as `exit_text` says. `state`: that of the row, now locked.

    `stopped_for`: why we ended it, if we did. `again`: a shutdown interrupted it, and whether it begins again; None:
    none did. `told`: the row's reason, which says who cleared it.
    """
    if state == states.RESTARTING:
        return Decision("retry", {"next_at": now, "reason": retries.cleared(told)}, cleared=True)
    if outcome is not None and outcome["state"] == states.FAILED:
        return failed(claim, outcome, now, stopped_for, again)
    if outcome is None:
        return failed(claim, {"retry": True, "error": {"type": "", "message": exit_text}}, now, again=again)
    return _OUTCOMES[outcome["state"]](claim, outcome, now)


def _succeeded(claim: Claim, outcome: Mapping[str, Any], now: datetime) -> Decision:
    columns = {"map_length": outcome.get("map_length"), "rendered_map_index": _index_text(outcome)}
    if outcome.get("skip"):
        columns["skips"] = outcome["skip"]
    return Decision("succeed", columns, "success")


def _index_text(outcome: Mapping[str, Any]) -> str | None:
    text = outcome.get("rendered_map_index")
    return None if text is None else storable(text)


def _skipped(claim: Claim, outcome: Mapping[str, Any], now: datetime) -> Decision:
    columns = {"reason": error_text(outcome) or None, "rendered_map_index": _index_text(outcome)}
    return Decision("skip", columns, "skipped")


def failed(
    claim: Claim, outcome: Mapping[str, Any], now: datetime, stopped_for: str = "", again: bool | None = None
) -> Decision:
    """Another try, or the end. When the task is gone from the DAG, nobody says how often it may be tried."""
    text = endings.of_error(error_text(outcome), (outcome.get("error") or {}).get("type") or "", stopped_for)
    columns = {"rendered_map_index": _index_text(outcome)}
    if claim.task is None:
        return Decision("fail", {**columns, "reason": text}, "failure")
    if again and outcome.get("retry", True):
        more = {"next_at": now, "max_tries": claim.max_tries + 1, "reason": f"{text} {_DOES_NOT_COUNT}"}
        return Decision("retry", {**columns, **more}, "retry")
    verdict = retries.after_failure(
        claim.task,
        claim.try_number,
        claim.max_tries,
        now,
        retry_allowed=outcome.get("retry", True),
        jitter_key=retries.instance_key(claim.run_pk, claim.task_id, claim.map_index),
        retry_delay=outcome.get("retry_delay"),
    )
    if isinstance(verdict, retries.Retry):
        return Decision("retry", {**columns, "next_at": verdict.at, "reason": text}, "retry")
    hint = f" {_NOT_AGAIN}" if again is False else ""
    return Decision("fail", {**columns, "reason": f"{text}\n{verdict.reason}{hint}".strip()}, "failure")


def _rescheduled(claim: Claim, outcome: Mapping[str, Any], now: datetime) -> Decision:
    return Decision("reschedule", {"next_at": datetime.fromisoformat(outcome["reschedule_at"])})


def _deferred(claim: Claim, outcome: Mapping[str, Any], now: datetime) -> Decision:
    defer = outcome["defer"]
    timeout = defer.get("timeout")
    try:
        trigger_timeout = None if timeout is None else now + timedelta(seconds=timeout)
    except OverflowError:
        text = f"The time-out of its deferral, {timeout:g} seconds, reaches beyond the calendar: make it shorter."
        return failed(claim, {"retry": False, "error": {"type": "", "message": text}}, now)
    columns = {
        "trigger_timeout": trigger_timeout,
        "next_method": defer["next_method"],
        "next_kwargs": defer.get("next_kwargs") or {},
    }
    return Decision("defer", columns)


_OUTCOMES = {
    states.SUCCESS: _succeeded,
    states.SKIPPED: _skipped,
    states.FAILED: failed,
    states.UP_FOR_RESCHEDULE: _rescheduled,
    states.DEFERRED: _deferred,
}


def error_text(outcome: Mapping[str, Any]) -> str:
    """The error of an outcome as the row's reason keeps it."""
    error = outcome.get("error") or {}
    kind, message = error.get("type") or "", error.get("message") or ""
    text = f"{kind}: {message}" if kind and message else kind or message
    return storable(text)[:REASON_LENGTH]


def storable(text: str) -> str:
    """A text as PostgreSQL takes it: NUL and lone surrogates stand there escaped."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
