"""The line that ends a hand-out's log: what became of it."""

from __future__ import annotations

from collections.abc import Callable

from scheduler_app.runner.decide import Decision

_SAID: dict[str, Callable[[Decision], tuple[str, str]]] = {
    "succeed": lambda decision: ("info", "The task succeeded."),
    "skip": lambda decision: ("info", "The task was skipped."),
    "retry": lambda decision: (
        "warning",
        (
            f"The try failed; the next one is due at {decision.columns['next_at'].isoformat()}."
            f" {decision.columns['reason']}"
        ),
    ),
    "fail": lambda decision: ("error", f"The task failed. {decision.columns['reason']}"),
    "reschedule": lambda decision: (
        "info",
        f"The task will look again at {decision.columns['next_at'].isoformat()}.",
    ),
    "defer": lambda decision: ("info", "The task waits for its trigger."),
}


def last_words(decision: Decision | None, stopped_for: str) -> tuple[str, str, str]:
    """Level, logger and text of the line that ends a hand-out's log."""
    if decision is None:
        why = stopped_for or "its task instance has moved on"
        return "warning", "task", f"The end of this attempt changes nothing: {why}."
    level, text = _SAID[decision.verb](decision)
    return level, "task", text
