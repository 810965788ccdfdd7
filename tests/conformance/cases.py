"""The table of cases: which DAG is started how, and which of its facts count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.conformance import stories

WHEN = "2024-05-17T08:30:00.250000+00:00"  # a Friday


#: Tasks whose answer chose what is skipped: 3.3.2 loses the XCom of an answer that skips something, here it is kept.
CHOOSERS: dict[str, tuple[str, ...]] = {
    "setup_short_circuit": ("gate",),
    "branch_by_date": (
        "inside",
        "before",
        "after",
        "no_lower",
        "no_upper",
        "time_of_day",
        "over_midnight",
    ),
    "branch_by_weekday": (
        "friday",
        "monday",
        "enum",
        "weekend",
        "two",
    ),
    "branch_answers": (
        "none",
        "empty",
        "one",
        "both",
        "unknown",
        "number",
        "not_below",
        "tuple",
        "set",
    ),
    "branch_to_join_itself": (
        "choose",
        "choose_deep",
    ),
    "branch_nested": (
        "outer",
        "left.inner",
    ),
    "branch_custom_operator": ("by_conf",),
    "branch_fails_then_retries": ("second_time",),
    "circuit_respects_rules": (
        "cut",
        "zero",
        "text",
        "dict",
    ),
    "circuit_decorated": (
        "closed",
        "soft",
        "opened",
    ),
    "circuit_index_to_index": (
        "plain_gate",
        "arms",
    ),
    "grouping_branches": ("pick_group", "pick_mixed", "pick_in_group", "pick_nested_group"),
    "decorated_overrides": ("br2",),
    "teardowns_skipped": ("br", "gate", "gate2"),
    "decorated_gates": ("gate", "gate3", "gate4"),
    "past_latest_only": ("latest",),
    "past_skipped_counts": ("gate",),
}
#: Where Airflow 3.3.2 is not followed, and why.
DISPUTED: dict[str, str] = {
    "branch_in_mapped_group": "a branch in a mapped group skips its own index; 3.3.2 skips nothing (airflow#67265)",
    "circuit_in_mapped_group": "a gate in a mapped group skips its own index; 3.3.2 skips nothing (airflow#67265)",
    "mapping_groups": "results of a mapped group can be mapped over; 3.3.2 fails a task that returns a number there",
    "mapping_pulls": "xcom_pull gives its default here; 3.3.2 ignores it without map_indexes",
    "xcoms_pulls": "xcom_pull gives its default here; 3.3.2 ignores it without map_indexes",
    "xcoms_refused": "enums cross here, and the error of a value that cannot is a kind of TypeError of its own",
    "xcoms_types": "bytes and large whole numbers cross here; decimals keep their digits",
    "xcoms_classes": "data classes of the DAG's own file come back here; 3.3.2 refuses them",
    "retrying_ends": "a task that sends itself SIGTERM fails here",
    "templating_macros": "run types and states print as their value here, and names of Airflow 2 are found",
    "templating_fields": "an object without a text of its own is shown by its class",
    "dating_context": "run types print as their value here",
    "triggering_parent": "run types print as their value here",
    "deferring_own": "moments of pendulum stay such in events",
    "story_backfilling": "a backfill ends with its last run, so that it can be made again; an empty range is a mistake",
    "story_clearing": "a clear that names an unknown task is refused here",
    "story_refusing": "an interval that ends before it begins and a variable without a name are refused here",
}


@dataclass(frozen=True)
class Start:
    """One run started by hand."""

    run_id: str = "conf"
    logical_date: str | None = WHEN
    conf: dict[str, Any] = field(default_factory=dict)
    dag: str = ""  # empty: the case's own
    wait: bool = True  # for its end, before the next is started
    never_ends: bool = False


@dataclass(frozen=True)
class Case:
    dag: str
    name: str = ""
    starts: tuple[Start, ...] = (Start(),)
    also: tuple[str, ...] = ()  # other DAGs whose runs count too
    stay_paused: tuple[str, ...] = ()
    scheduled: bool = False  # unpaused and watched instead of started
    story: Callable[..., Any] | None = None  # does everything itself, gives the facts
    seconds: float = 150
    settle: float = 0
    leave_out: tuple[str, ...] = ()  # facts that depend on the moment
    no_xcom: tuple[str, ...] = ()  # tasks or keys whose XComs do
    fields: tuple[str, ...] = ()  # more fields of task instances
    rendered: bool = False
    markers: bool = False
    unfinished: bool = False  # some runs wait for ever
    alone: bool = False  # not beside other cases

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.dag)
        object.__setattr__(self, "no_xcom", (*self.no_xcom, *CHOOSERS.get(self.name, ())))

    @property
    def disputed(self) -> str:
        """Why Airflow is not followed here; empty where it is."""
        return DISPUTED.get(self.name, "")


def _plain(*dags: str) -> tuple[Case, ...]:
    return tuple(Case(dag) for dag in dags)


CASES: tuple[Case, ...] = (
    *_plain(
        "rule_all_failed",
        "rule_all_done_min_one_success",
        "rule_all_skipped",
        "rule_always",
        "rule_none_failed",
        "rule_none_skipped",
        "rule_one_done",
        "rule_one_success",
        "rule_all_success",
        "rule_setups",
    ),
    *_plain(
        "setup_nested",
        "setup_context_manager",
        "setup_teardown_decides",
        "setup_teardown_does_not_decide",
        "setup_only_teardown_leaf",
        "setup_in_groups",
        "setup_two_teardowns",
        "setup_mapped_work",
        "setup_mapped_group",
        "setup_short_circuit",
    ),
    *_plain(
        "branch_by_date",
        "branch_by_weekday",
        "branch_answers",
        "branch_to_join_itself",
        "branch_nested",
        "branch_in_mapped_group",
        "branch_custom_operator",
        "branch_fails_then_retries",
        "branch_mapped_operator",
    ),
    *_plain(
        "circuit_respects_rules",
        "circuit_decorated",
        "circuit_in_mapped_group",
        "circuit_mapped",
        "circuit_conditions",
        "circuit_index_to_index",
    ),
    *_plain(
        "mapping_shapes",
        "mapping_skips",
        "mapping_failures",
        "mapping_bad_values",
        "mapping_groups",
        "mapping_group_upstreams",
        "mapping_empty_group",
        "mapping_in_turn",
        "mapping_retries",
        "mapping_pulls",
    ),
    Case("mapping_names", fields=("rendered_map_index",)),
    Case("mapping_limits", seconds=300),
    Case("mapping_partial_templates", rendered=True),
    *_plain("xcoms_types", "xcoms_refused", "xcoms_classes", "xcoms_outputs", "xcoms_operators"),
    Case("xcoms_pulls", starts=(Start(), Start("conf_2", "2024-05-18T08:30:00+00:00"))),
    *_plain("pairing_zips", "pairing_dicts", "pairing_pulls"),
    *_plain("grouping_mapped", "grouping_ids", "grouping_edges", "grouping_empty", "grouping_defaults"),
    *_plain("grouping_branches"),
    Case("decorated_commands", rendered=True),
    *_plain("decorated_sensors", "decorated_conditions", "decorated_outputs", "decorated_overrides", "decorated_gates"),
    *_plain("teardowns_marked", "teardowns_alone", "teardowns_grouped", "teardowns_decorated", "teardowns_skipped"),
    *_plain("waiting_ends", "refusing_tasks", "refusing_dags", "importing_names"),
    *_plain("sensing_ends", "sensing_values", "sensing_kinds", "sensing_reschedule_retries"),
    *_plain("retrying_delays", "retrying_ends", "retrying_fail_fast", "retrying_bash", "retrying_hooks"),
    Case("retrying_dag_timeout"),
    *(
        Case(dag, markers=True, settle=8)
        for dag in (
            "callbacks_of_tasks",
            "callbacks_broken",
            "callbacks_dag_failure",
            "callbacks_dag_timeout",
            "callbacks_notifier",
        )
    ),
    Case("params_layers", starts=(Start(), Start("conf_2", None, {"a": 9, "new": True}))),
    Case("params_native", starts=(Start(), Start("conf_2", None, {"n": 4, "s": "[1]"}))),
    Case("params_required", starts=(Start(conf={"needed": "yes"}),)),
    *_plain("params_formats", "params_of_function"),
    Case("templating_fields", rendered=True, starts=(Start(conf={"k": "v"}),)),
    *_plain("templating_strict", "templating_lenient", "templating_context"),
    Case("templating_macros", starts=(Start(conf={"k": "v"}),)),
    Case("templating_no_date", starts=(Start(logical_date=None),)),
    *(
        Case(f"dating_{name}", scheduled=True, leave_out=("tasks",))
        for name in [
            "cron_trigger",
            "cron_trigger_interval",
            "cron_trigger_relative",
            "cron_interval_paris",
            "cron_interval_autumn",
            "autumn_daily",
            "autumn_hourly",
            "spring_hourly",
            "delta_interval",
            "delta_trigger",
            "delta_trigger_interval",
            "relativedelta",
            "several_crons",
            "events",
            "weekly_preset",
            "monthly_preset",
            "yearly_preset",
            "quarterly_preset",
            "nth_weekday",
            "last_day",
            "start_inside",
            "start_exact",
            "days_or",
            "once_future_end",
            "once_catchup_off",
            "end_before_now",
        ]
    ),
    *(Case(dag, scheduled=True) for dag in ("dating_tasks", "dating_context", "past_latest_only")),
    *(
        Case(dag, scheduled=True, unfinished=True)
        for dag in ("past_depends_fails", "past_skipped_counts", "past_wait_for_downstream", "past_ignores_first")
    ),
    Case(
        "triggering_parent",
        also=("triggering_child",),
        leave_out=("data_interval_start", "data_interval_end"),
        seconds=240,
    ),
    Case("watching", also=("watched",), starts=(Start(dag="watched"), Start()), seconds=240),
    *_plain("deferring_own", "deferring_sensors"),
    Case(
        "assets_source",
        also=("assets_any", "assets_all", "assets_by_alias", "assets_by_aliased", "assets_of_empty", "assets_of_bash"),
        leave_out=("run_id", "data_interval_start", "data_interval_end"),
        settle=6,
    ),
    Case("assets_reader", alone=True),  # reads what assets_source made
    Case("assets_decorated", also=("assets_second",), leave_out=("run_id", "data_interval_start", "data_interval_end")),
    Case("assets_multi"),
    *(
        Case(dag, name=f"story_{story.__name__}", story=story, seconds=200)
        for dag, story in (
            ("story_chain", stories.marking_tasks),
            ("story_slow", stories.marking_runs),
            ("story_branch", stories.clearing_a_branch),
            ("story_mapped", stories.clearing_mapped),
            ("story_past", stories.clearing_over_time),
            ("story_backfill", stories.backfilling),
        )
    ),
    *(
        Case(dag, name=f"story_{story.__name__}", story=story, seconds=200, alone=True)
        for dag, story in (
            ("story_slow", stories.marking_running_tasks),
            ("story_slow", stories.clearing_what_runs),
            ("story_chain", stories.clearing),
            ("story_chain", stories.refusing),
            ("story_chain", stories.listing),
        )
    ),
)
