"""The states of task instances and runs, and the table of legal moves between them.

Data, not code: ``models/transitions.py`` performs a move, this table allows it, the diagram in
``docs/states.md`` is drawn from it and the database trigger of the tests is filled from it.
``None`` is the state of a task instance that nobody has looked at yet (the API's ``null``).
"""

from __future__ import annotations

from typing import Final

State = str | None

NONE: Final = None
SCHEDULED: Final = "scheduled"
QUEUED: Final = "queued"
RUNNING: Final = "running"
RESTARTING: Final = "restarting"
DEFERRED: Final = "deferred"
UP_FOR_RETRY: Final = "up_for_retry"
UP_FOR_RESCHEDULE: Final = "up_for_reschedule"
SUCCESS: Final = "success"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
UPSTREAM_FAILED: Final = "upstream_failed"
REMOVED: Final = "removed"

#: Every state of a task instance, in the order in which pages list them.
TASK_STATES: Final[tuple[State, ...]] = (
    FAILED,
    RUNNING,
    RESTARTING,
    QUEUED,
    SCHEDULED,
    UP_FOR_RETRY,
    UP_FOR_RESCHEDULE,
    DEFERRED,
    NONE,
    UPSTREAM_FAILED,
    SKIPPED,
    SUCCESS,
    REMOVED,
)

#: Ended: nothing moves these but an action. (What a version of the DAG removed, a later one may bring back.)
FINISHED: Final[frozenset[State]] = frozenset({SUCCESS, FAILED, SKIPPED, UPSTREAM_FAILED, REMOVED})
UNFINISHED: Final[frozenset[State]] = frozenset(TASK_STATES) - FINISHED
#: Counted against ``max_active_tasks`` and its kin: handed out, or with a process, or waiting in a trigger.
ACTIVE: Final[frozenset[State]] = frozenset({QUEUED, RUNNING, RESTARTING, DEFERRED})
#: Hold a pool slot always; DEFERRED does so where the pool says ``include_deferred``.
OCCUPYING: Final[frozenset[State]] = frozenset({QUEUED, RUNNING, RESTARTING})
#: An attempt's process may be alive.
WITH_PROCESS: Final[frozenset[State]] = frozenset({RUNNING, RESTARTING})

#: verb → (states it may leave, state it enters). The loop, the runner and the triggerer use only these.
TASK_VERBS: Final[dict[str, tuple[frozenset[State], State]]] = {
    # schedule_tasks: its upstreams and dates allow it
    "schedule": (frozenset({NONE, UP_FOR_RETRY, UP_FOR_RESCHEDULE}), SCHEDULED),
    # its first step is a trigger: a new try begins, deferred, without a hand-out
    "start_deferred": (frozenset({NONE, UP_FOR_RETRY}), DEFERRED),
    # a trigger fired, or a deferral that needs user code to end
    "resume": (frozenset({DEFERRED}), SCHEDULED),
    # nothing to execute: it succeeds without a hand-out
    "settle": (frozenset({NONE, SCHEDULED, UP_FOR_RETRY}), SUCCESS),
    # admission gave it a slot; a new fence
    "queue": (frozenset({SCHEDULED}), QUEUED),
    # both at once: its upstreams allow it, and the admission in the transaction of that look gave it a slot
    "schedule_and_queue": (frozenset({NONE, UP_FOR_RETRY, UP_FOR_RESCHEDULE}), QUEUED),
    # the hand-out was lost before it began, or was refused
    "unqueue": (frozenset({QUEUED}), SCHEDULED),
    "start": (frozenset({QUEUED}), RUNNING),
    # an attempt reports it, or a trigger that ends its task itself
    "succeed": (frozenset({RUNNING, DEFERRED}), SUCCESS),
    "fail": (
        frozenset({NONE, SCHEDULED, QUEUED, RUNNING, RESTARTING, DEFERRED, UP_FOR_RETRY, UP_FOR_RESCHEDULE}),
        FAILED,
    ),
    "retry": (frozenset({QUEUED, RUNNING, DEFERRED, RESTARTING}), UP_FOR_RETRY),
    "reschedule": (frozenset({RUNNING}), UP_FOR_RESCHEDULE),
    "defer": (frozenset({RUNNING}), DEFERRED),
    "skip": (
        frozenset({NONE, SCHEDULED, QUEUED, RUNNING, RESTARTING, DEFERRED, UP_FOR_RETRY, UP_FOR_RESCHEDULE}),
        SKIPPED,
    ),
    "upstream_fail": (frozenset({NONE, UP_FOR_RETRY, UP_FOR_RESCHEDULE}), UPSTREAM_FAILED),
    # its task left the DAG
    "remove": (frozenset({NONE, SCHEDULED, UP_FOR_RETRY, UP_FOR_RESCHEDULE, DEFERRED}), REMOVED),
    # its task is back in the version that the run follows
    "restore": (frozenset({REMOVED}), NONE),
}

#: Actions only (I10): a person, a task or a backfill asked.
TASK_ACTIONS: Final[dict[str, tuple[frozenset[State], State]]] = {
    "clear": (frozenset(TASK_STATES) - WITH_PROCESS, NONE),
    # cleared while a process lives: it is told to stop, then goes on as "retry"
    "restart": (frozenset({RUNNING}), RESTARTING),
    # somebody holds it: what is handed out and has not begun does not begin
    "take_back": (frozenset({QUEUED}), SCHEDULED),
    "mark_success": (frozenset(TASK_STATES), SUCCESS),
    "mark_failed": (frozenset(TASK_STATES), FAILED),
    "mark_skipped": (frozenset(TASK_STATES), SKIPPED),
}

#: Runs: the loop's verbs, then those of the actions.
RUN_STATES: Final[tuple[str, ...]] = (QUEUED, RUNNING, SUCCESS, FAILED)
RUN_FINISHED: Final[frozenset[str]] = frozenset({SUCCESS, FAILED})
RUN_VERBS: Final[dict[str, tuple[frozenset[str], str]]] = {
    "start": (frozenset({QUEUED}), RUNNING),
    "succeed": (frozenset({RUNNING}), SUCCESS),
    "fail": (frozenset({QUEUED, RUNNING}), FAILED),
    # it waits for an older run that it keeps from starting
    "give_way": (frozenset({RUNNING}), QUEUED),
}
RUN_ACTIONS: Final[dict[str, tuple[frozenset[str], str]]] = {
    "clear": (frozenset(RUN_STATES), QUEUED),
    "mark_success": (frozenset(RUN_STATES), SUCCESS),
    "mark_failed": (frozenset(RUN_STATES), FAILED),
    "mark_queued": (frozenset(RUN_STATES), QUEUED),
}


def task_moves() -> set[tuple[State, State]]:
    """Every (from, to) that some verb or action allows; a state may also stay itself."""
    return {
        (source, target) for sources, target in [*TASK_VERBS.values(), *TASK_ACTIONS.values()] for source in sources
    }


def run_moves() -> set[tuple[str, str]]:
    """As :func:`task_moves`, for runs."""
    return {(source, target) for sources, target in [*RUN_VERBS.values(), *RUN_ACTIONS.values()] for source in sources}
