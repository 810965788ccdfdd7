"""The serialised DAG, as plain values: what a DAG file says, without its code.

This module is the contract between ``sdk/serialize.py`` (writes the document, in a child process) and
everything on our side (reads it). The document is JSON: each class below is an object whose keys are the
field names, **a field that equals its default is left out**, datetimes are ISO 8601 with offset, durations
are seconds (float). ``docs/borders.md`` tells the rest.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

Json = Any

#: Raised by one when old documents can no longer be read.
SCHEMA_VERSION = 1

DEFAULT_POOL = "default_pool"
DEFAULT_QUEUE = "default"


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a DAG. Field names are those of Airflow's API where it has one."""

    task_id: str
    task_display_name: str | None = None
    #: class name of the operator, as the API shows it ("BashOperator", "@task" → "_PythonDecoratedOperator")
    operator_name: str = "BaseOperator"
    #: the operator as people see it where that is another name ("@task", "@task.bash")
    operator_display_name: str | None = None
    #: module of that class, by the path under which the author imported it
    operator_module: str = ""
    owner: str = "airflow"
    doc_md: str | None = None
    ui_color: str = "#fff"
    ui_fgcolor: str = "#000"
    downstream: tuple[str, ...] = ()
    trigger_rule: str = "all_success"
    depends_on_past: bool = False
    wait_for_downstream: bool = False
    ignore_first_depends_on_past: bool = False
    #: a skip by its trigger rule waits until the past lets it run
    wait_for_past_depends_before_skipping: bool = False
    start_date: str | None = None
    end_date: str | None = None
    retries: int = 0
    retry_delay: float = 300.0
    #: 0 = constant delay; true in a DAG file = 2.0
    retry_exponential_backoff: float = 0.0
    max_retry_delay: float | None = None
    execution_timeout: float | None = None
    sla: float | None = None
    pool: str = DEFAULT_POOL
    pool_slots: int = 1
    queue: str = DEFAULT_QUEUE
    executor: str | None = None
    priority_weight: int = 1
    #: downstream | upstream | absolute | custom (then `weight` is what the child's strategy gave)
    weight_rule: str = "downstream"
    weight: int | None = None
    max_active_tis_per_dag: int | None = None
    max_active_tis_per_dagrun: int | None = None
    #: keyed limits, by name: {"name", "units" (if not 1), and where the file says how much there is "amount" and, of a
    #: rate, "per_seconds"}
    limits: tuple[Json, ...] = ()
    is_setup: bool = False
    is_teardown: bool = False
    on_failure_fail_dagrun: bool = False
    #: nothing to execute: an EmptyOperator without callbacks, outlets or pre/post hooks; it succeeds without a hand-out
    is_empty: bool = False
    #: it begins in a trigger, without a hand-out: {"classpath", "kwargs", "next_method", "next_kwargs", "timeout" (s or
    #: null)}, the values encoded
    start_trigger: Json = None
    #: BranchMixin/ShortCircuit/LatestOnly: may skip its followers when it ends
    can_skip_downstream: bool = False
    #: what it is mapped over (MapInput document), None for a task that is not mapped itself
    mapped: Json = None
    map_index_template: str | None = None
    #: ids of tasks or groups that are mapped over this task's return value: its length is stored with the XCom
    feeds_mapping: bool = False
    template_fields: tuple[str, ...] = ()
    multiple_outputs: bool = False
    callbacks: tuple[str, ...] = ()  # subset of execute, success, failure, retry, skipped
    email_on_failure: bool = False
    email_on_retry: bool = False
    email: tuple[str, ...] = ()
    #: asset documents ({"name", "uri", "group", "extra"} or {"alias": name}) that it updates / reads
    outlets: tuple[Json, ...] = ()
    inlets: tuple[Json, ...] = ()
    extra_links: tuple[str, ...] = ()
    #: "sensor" operators: poke | reschedule (None for others)
    sensor_mode: str | None = None
    #: its operator has a ``resume_execution`` of its own: it judges itself what a deferral that timed out means
    judges_deferral: bool = False
    executor_config: Json = None
    #: its own, beyond those of the DAG: name → {"schema", "value" (unless required), "description"}
    params: dict[str, Json] = field(default_factory=dict)

    @property
    def shown_operator(self) -> str:
        """The operator as people see it: "@task", or the name of its class."""
        return self.operator_display_name or self.operator_name


@dataclass(frozen=True, slots=True)
class Group:
    """A task group; the DAG's root is the group with ``group_id`` None. Groups form a tree by ``children``."""

    group_id: str | None
    display_name: str | None = None
    tooltip: str = ""
    ui_color: str = "CornflowerBlue"
    ui_fgcolor: str = "#000"
    #: in definition order: {"task": task_id} or {"group": group_id}
    children: tuple[Json, ...] = ()
    parent: str | None = None
    mapped: Json = None
    upstream_group_ids: tuple[str, ...] = ()
    downstream_group_ids: tuple[str, ...] = ()
    upstream_task_ids: tuple[str, ...] = ()
    downstream_task_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dag:
    """One DAG. ``tasks`` is in definition order, ``groups`` begins with the root."""

    dag_id: str
    schema_version: int = SCHEMA_VERSION
    dag_display_name: str | None = None
    description: str | None = None
    doc_md: str | None = None
    tags: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    owner_links: dict[str, str] = field(default_factory=dict)
    timezone: str = "UTC"
    start_date: str | None = None
    end_date: str | None = None
    catchup: bool = False
    #: None = the file does not say: the setting holds
    max_active_runs: int | None = None
    max_active_tasks: int | None = None
    max_consecutive_failed_dag_runs: int = 0
    dagrun_timeout: float | None = None
    fail_fast: bool = False
    #: of slots that fell due while nobody created them: skip | latest | all; None = all with catch-up, else latest
    misfire_policy: str | None = None
    #: with all: at most so many, the most recent ones
    misfire_limit: int | None = None
    #: of a slot that is due while max_active_runs are under way: queue | skip | cancel_oldest
    overlap_policy: str = "queue"
    #: each run comes up to so many seconds after its slot
    schedule_jitter: float = 0.0
    #: what decides a run: leaves | any_failed
    run_state: str = "leaves"
    is_paused_upon_creation: bool | None = None
    render_template_as_native_obj: bool = False
    #: name → {"value": …, "schema": {…}, "description": …}; no "value" key = required
    params: dict[str, Json] = field(default_factory=dict)
    #: their names as the file lists them: PostgreSQL keeps no order of keys
    param_order: tuple[str, ...] = ()
    #: timetable document: {"kind": …, …}, see timetables/__init__.py
    timetable: Json = field(default_factory=lambda: {"kind": "null"})
    timetable_summary: str | None = None
    timetable_description: str | None = None
    timetable_periodic: bool = False
    callbacks: tuple[str, ...] = ()  # subset of success, failure, sla_miss
    deadline: tuple[Json, ...] = ()
    access_control: Json = None
    default_args: dict[str, Json] = field(default_factory=dict)
    template_search_path: tuple[str, ...] = ()
    has_sla: bool = False
    #: "upstream>downstream" → label
    edge_labels: dict[str, str] = field(default_factory=dict)
    tasks: tuple[Task, ...] = ()
    groups: tuple[Group, ...] = ()

    @property
    def task_dict(self) -> dict[str, Task]:
        return {task.task_id: task for task in self.tasks}


def to_doc(value: Dag | Task | Group) -> dict[str, Json]:
    """The JSON object of a value: required fields, and those that differ from their default."""
    doc: dict[str, Json] = {}
    for spec in dataclasses.fields(value):
        item = getattr(value, spec.name)
        if spec.default is not dataclasses.MISSING and item == spec.default and spec.name != "schema_version":
            continue
        if spec.default_factory is not dataclasses.MISSING and item == spec.default_factory():
            continue
        if spec.name in ("tasks", "groups"):
            item = [to_doc(child) for child in item]
        elif isinstance(item, tuple):
            item = list(item)
        doc[spec.name] = item
    return doc


def from_doc(doc: dict[str, Json]) -> Dag:
    """The value of a JSON object. Unknown keys raise TypeError, a newer schema ValueError."""
    if doc.get("schema_version", SCHEMA_VERSION) > SCHEMA_VERSION:
        raise ValueError(
            f"DAG {doc.get('dag_id')!r} was serialised by a newer version of this scheduler "
            f"(schema {doc['schema_version']}, this one reads up to {SCHEMA_VERSION}): "
            "upgrade it, or parse the file again."
        )
    fields = dict(doc)
    fields["tasks"] = tuple(Task(**_tuples(Task, item)) for item in doc.get("tasks", ()))
    fields["groups"] = tuple(Group(**_tuples(Group, item)) for item in doc.get("groups", ()))
    return Dag(**_tuples(Dag, fields))


def _tuples(kind: type, doc: dict[str, Json]) -> dict[str, Json]:
    wanted = _TUPLE_FIELDS[kind]
    return {key: tuple(item) if key in wanted else item for key, item in doc.items()}


_TUPLE_FIELDS: dict[type, frozenset[str]] = {
    kind: frozenset(spec.name for spec in dataclasses.fields(kind) if str(spec.type).startswith("tuple"))
    for kind in (Task, Group, Dag)
}
