"""The names of states, trigger rules and weight rules, as DAG files spell them."""

from __future__ import annotations

from enum import Enum

from scheduler_app.sdk.nearest import did_you_mean


class _Text(str, Enum):
    """A text with a name; ``str()`` gives the text."""

    def __str__(self) -> str:
        return self.value


class TaskInstanceState(_Text):
    REMOVED = "removed"
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    RESTARTING = "restarting"
    FAILED = "failed"
    UP_FOR_RETRY = "up_for_retry"
    UP_FOR_RESCHEDULE = "up_for_reschedule"
    UPSTREAM_FAILED = "upstream_failed"
    SKIPPED = "skipped"
    DEFERRED = "deferred"


class DagRunState(_Text):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


class DagRunType(_Text):
    BACKFILL_JOB = "backfill"
    SCHEDULED = "scheduled"
    MANUAL = "manual"
    OPERATOR_TRIGGERED = "operator_triggered"
    ASSET_TRIGGERED = "asset_triggered"
    ASSET_MATERIALIZATION = "asset_materialization"


class DagRunTriggeredByType(_Text):
    """Who started a run."""

    CLI = "cli"
    OPERATOR = "operator"
    REST_API = "rest_api"
    UI = "ui"
    TEST = "test"
    TIMETABLE = "timetable"
    ASSET = "asset"
    BACKFILL = "backfill"


class State:
    """Both kinds of states under one name."""

    SUCCESS = TaskInstanceState.SUCCESS
    RUNNING = TaskInstanceState.RUNNING
    FAILED = TaskInstanceState.FAILED
    NONE = None
    REMOVED = TaskInstanceState.REMOVED
    SCHEDULED = TaskInstanceState.SCHEDULED
    QUEUED = TaskInstanceState.QUEUED
    RESTARTING = TaskInstanceState.RESTARTING
    UP_FOR_RETRY = TaskInstanceState.UP_FOR_RETRY
    UP_FOR_RESCHEDULE = TaskInstanceState.UP_FOR_RESCHEDULE
    UPSTREAM_FAILED = TaskInstanceState.UPSTREAM_FAILED
    SKIPPED = TaskInstanceState.SKIPPED
    DEFERRED = TaskInstanceState.DEFERRED

    finished = frozenset({SUCCESS, FAILED, SKIPPED, UPSTREAM_FAILED, REMOVED})
    unfinished = frozenset(
        {None, SCHEDULED, QUEUED, RUNNING, RESTARTING, UP_FOR_RETRY, UP_FOR_RESCHEDULE, DEFERRED},
    )
    failed_states = frozenset({FAILED, UPSTREAM_FAILED})
    success_states = frozenset({SUCCESS, SKIPPED})


class TriggerRule(_Text):
    ALL_SUCCESS = "all_success"
    ALL_FAILED = "all_failed"
    ALL_DONE = "all_done"
    ALL_DONE_MIN_ONE_SUCCESS = "all_done_min_one_success"
    ALL_DONE_SETUP_SUCCESS = "all_done_setup_success"
    ONE_SUCCESS = "one_success"
    ONE_FAILED = "one_failed"
    ONE_DONE = "one_done"
    NONE_FAILED = "none_failed"
    NONE_SKIPPED = "none_skipped"
    ALWAYS = "always"
    NONE_FAILED_MIN_ONE_SUCCESS = "none_failed_min_one_success"
    ALL_SKIPPED = "all_skipped"

    @classmethod
    def all_triggers(cls) -> set[str]:
        return {rule.value for rule in cls}

    @classmethod
    def is_valid(cls, rule: str) -> bool:
        return rule in cls.all_triggers()


class WeightRule(_Text):
    DOWNSTREAM = "downstream"
    UPSTREAM = "upstream"
    ABSOLUTE = "absolute"

    @classmethod
    def all_weight_rules(cls) -> set[str]:
        return {rule.value for rule in cls}


def read_trigger_rule(rule: str, owner: str) -> TriggerRule:
    """The rule of a name; ``owner`` names the task in the error. Raises ValueError."""
    try:
        return TriggerRule(rule)
    except ValueError:
        hint = did_you_mean(str(rule), TriggerRule.all_triggers())
        known = ", ".join(sorted(TriggerRule.all_triggers()))
        raise ValueError(f"{owner} has the unknown trigger_rule {rule!r}.{hint} The rules are: {known}.") from None
