"""The DAGs of the world. Each seed plays some of them, so that a few meet often instead of all meeting seldom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduler_app.engine.dag import Dag, Group
from tests.rows import T0
from tests.shapes import shape

#: The schedule of the DAG that people backfill; its slots are the logical dates that its first runs have.
DAILY = {"kind": "cron_trigger", "expression": "0 12 * * *"}
OFTEN = {"kind": "cron_trigger", "expression": "*/5 * * * *"}
#: A deadline that some runs keep and others miss.
SOON = {
    "reference": {"kind": "dagrun_queued_at"},
    "interval": 120.0,
    "callback": {"path": "house.tell", "kwargs": {}, "sync": True},
}
#: Assets; nobody names the last one but through the alias.
SHIPPED, PAID, SENT = (
    {"name": name, "uri": f"x://{name}", "group": "asset", "extra": {}} for name in ("shipped", "paid", "sent")
)
#: A partition that both of its segments make.
ROLLED = {
    "class": "RollupMapper",
    "upstream_mapper": {"class": "FixedKeyMapper", "key": "both"},
    "window": {"class": "SegmentWindow", "segments": ["a", "b"]},
}
#: An alias of assets; partitions that events may name.
THINGS, PARTITIONS = "things", ("a", "b", "c")
#: Names of tasks tell what their attempts may do besides succeeding and failing (see ``attempts``).
WAITS, COUNTS, BRANCHES = "wait", "count", "branch"

#: Keyed limits: how much there is, and in how many seconds (None: at once). The file of ``limited`` declares them.
LIMITS: dict[str, tuple[int, float | None]] = {"crm": (3, None), "mail": (3, 10.0)}
#: Slots of each executor.
SLOTS = 5
POOLS = {"default_pool": 6, "narrow": 3, "kept": 2}
#: Pools in which a deferred task keeps its slots.
KEEPING = frozenset({"kept"})


@dataclass(frozen=True)
class Part:
    """A DAG of the world: what its file says now, and what else it may say later (its author changes it)."""

    dag_id: str
    text: str
    fields: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: manual runs at the start, a day apart
    runs: int = 0
    #: another text of the same file, and what its tasks are then
    later: str | None = None
    later_tasks: dict[str, dict[str, Any]] | None = None

    def dag(self, version: int = 0, **fields: Any) -> Dag:
        later = bool(version % 2 and self.later)
        text = (later and self.later) or self.text
        tasks = (later and self.later_tasks) or self.tasks
        return shape(text, self.dag_id, tasks=tasks, **{**self.fields, **fields})


def _mapped(task_id: str) -> dict[str, Any]:
    return {"mapped": {"style": "expand", "inputs": {"x": {"xcom": task_id}}}}


def _mapped_group(task_id: str, *inside: str) -> tuple[Group, ...]:
    """Of a DAG of a task, a group that is mapped over what it counts, and a task that gathers."""
    children = ({"task": task_id}, {"group": "g"}, {"task": "gather"})
    group = Group("g", children=tuple({"task": name} for name in inside), **_mapped(task_id))
    return (Group(None, children=children), group)


def _takes(**units: int) -> tuple[dict[str, Any], ...]:
    """What a task takes, and how much the file says there is."""
    made = []
    for name, count in units.items():
        amount, per_seconds = LIMITS[name]
        window = {} if per_seconds is None else {"per_seconds": per_seconds}
        made.append({"name": name, "units": count, "amount": amount, **window})
    return tuple(made)


def _start(minutes: int) -> str:
    return (T0 - timedelta(minutes=minutes)).isoformat()


CAST: tuple[Part, ...] = (
    Part(
        "diamond",
        "a >> [b, c] >> d",
        {"max_active_runs": 2, "callbacks": ("success", "failure")},
        {
            "*": {"retries": 2, "retry_delay": 5.0, "callbacks": ("failure", "retry", "success")},
            "d": {"outlets": (SHIPPED,)},
        },
        runs=3,
        later="a >> [b, e] >> d; c >> d",
    ),
    Part(
        "wide",
        "p0; p1; p2; p3; p4",
        {"max_active_tasks": 2},
        {"*": {"retries": 1, "retry_delay": 3.0}, "p4": {"priority_weight": 5}},
        2,
        "p0 >> p9",
    ),
    Part(
        "daily",
        "x >> y >> z",
        {"dagrun_timeout": 900.0, "timetable": DAILY, "deadline": (SOON,), "start_date": _start(60), "catchup": False},
        {"y": {"is_empty": True}, "z": {"trigger_rule": "all_done"}},
        3,
    ),
    Part(
        "one",
        "one",
        {"max_active_runs": 1},
        {"one": {"pool": "narrow", "pool_slots": 2, "max_active_tis_per_dag": 1}},
        3,
    ),
    Part(
        "chained",
        "s >> t >> u",
        {},
        {"t": {"depends_on_past": True, "retries": 3, "retry_delay": 1.0}, "s": {"wait_for_downstream": True}},
        3,
    ),
    Part(
        "fan",
        "first >> [w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13] >> last",
        {"max_active_tasks": 4},
        {"last": {"trigger_rule": "none_failed"}, "*": {"retries": 4, "retry_delay": 2.0}},
        1,
    ),
    Part(
        "often",
        "f >> g",
        {"timetable": OFTEN, "catchup": True, "start_date": _start(12), "max_active_runs": 2},
        {"g": {"outlets": (PAID,), "pool": "narrow"}},
    ),
    Part(
        "skipping",
        "f",
        {
            "timetable": OFTEN,
            "catchup": True,
            "start_date": _start(12),
            "max_active_runs": 1,
            "overlap_policy": "skip",
        },
    ),
    Part(
        "newest",
        "f >> g",
        {
            "timetable": OFTEN,
            "catchup": True,
            "start_date": _start(12),
            "max_active_runs": 1,
            "overlap_policy": "cancel_oldest",
        },
        {"*": {"callbacks": ("failure",)}},
    ),
    Part(
        "waiting",
        "h",
        {"timetable": {"kind": "asset", "condition": {"all": [{"asset": SHIPPED}, {"asset": PAID}]}}},
        later="h >> i",
    ),
    Part("either", "h", {"timetable": {"kind": "asset", "condition": {"any": [{"asset": SHIPPED}, {"asset": PAID}]}}}),
    Part("naming", "n", {}, {"n": {"outlets": ({"alias": THINGS},), "retries": 1, "retry_delay": 1.0}}, 3),
    Part("named", "h", {"timetable": {"kind": "asset", "condition": {"any": [{"alias": THINGS}, {"asset": SHIPPED}]}}}),
    Part(
        "parted",
        "h",
        {"timetable": {"kind": "partitioned", "condition": {"all": [{"asset": SHIPPED}, {"asset": PAID}]}}},
    ),
    Part(
        "rolled",
        "h",
        {"timetable": {"kind": "partitioned", "condition": {"asset": PAID}, "default_mapper": ROLLED}},
        later="h >> i",
    ),
    Part(
        "punctual",
        "f",
        {"timetable": OFTEN, "misfire_policy": "skip", "start_date": _start(30), "schedule_jitter": 40.0},
        {"f": {"priority_weight": 7}},
    ),
    Part("latest", "f >> g", {"timetable": OFTEN, "start_date": _start(30), "schedule_jitter": 500.0}),
    Part(
        "mapped",
        f"up >> {COUNTS} >> m >> down; m >> sum",
        {},
        {
            "up": {"is_setup": True},
            "down": {"is_teardown": True, "trigger_rule": "all_done_setup_success"},
            COUNTS: {"feeds_mapping": True},
            "m": {**_mapped(COUNTS), "max_active_tis_per_dagrun": 2, "retries": 1, "retry_delay": 1.0},
            "sum": {"trigger_rule": "none_failed_min_one_success"},
        },
        2,
        f"up >> {COUNTS} >> m >> down; m >> more",
        {
            "up": {"is_setup": True},
            "down": {"is_teardown": True, "trigger_rule": "all_done_setup_success"},
            COUNTS: {"feeds_mapping": True},
        },
    ),
    Part(
        "grouped",
        f"{COUNTS} >> {BRANCHES} >> [ga, gb]; ga >> gc; [gb, gc] >> gather",
        {"groups": _mapped_group(COUNTS, BRANCHES, "ga", "gb", "gc"), "max_active_tasks": 5},
        {
            COUNTS: {"feeds_mapping": True},
            BRANCHES: {"can_skip_downstream": True},
            "ga": {"retries": 1, "retry_delay": 1.0, "max_active_tis_per_dag": 2},
            "gather": {"trigger_rule": "none_failed_min_one_success"},
        },
        2,
    ),
    Part(
        "deferring",
        f"{WAITS}0 >> after; {WAITS}1 >> after; {WAITS}2",
        {"max_active_tasks": 3},
        {
            f"{WAITS}0": {"pool": "kept", "retries": 1, "retry_delay": 2.0, "callbacks": ("failure", "success")},
            f"{WAITS}1": {"pool": "kept", "pool_slots": 2, "judges_deferral": True},
        },
        2,
    ),
    Part(
        "limited",
        "l0; l1; l2; l3; l4",
        {},
        {
            "*": {"retries": 1, "retry_delay": 1.0, "limits": _takes(crm=1, mail=1)},
            "l0": {"limits": _takes(crm=2)},
        },
        2,
        "l0 >> l5; l6",
    ),
    Part(
        "branching",
        f"{BRANCHES} >> [l, r]; l >> ll; [ll, r] >> join",
        {"fail_fast": True, "max_consecutive_failed_dag_runs": 2},
        {BRANCHES: {"can_skip_downstream": True}, "join": {"trigger_rule": "none_failed_min_one_success"}},
        2,
        f"{BRANCHES} >> [l, r]; [l, r] >> join",
    ),
)
PARTS = {part.dag_id: part for part in CAST}

#: How a part's author may change its numbers.
NUMBERS: dict[str, Callable[[Any], int]] = {
    "max_active_tasks": lambda rng: rng.choice([1, 2, 4, 8]),
    "max_active_runs": lambda rng: rng.choice([1, 2, 3]),
}


def logical_date(run: int, of: int) -> datetime:
    return T0 - timedelta(days=of - run)
