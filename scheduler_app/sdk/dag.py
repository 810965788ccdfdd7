"""DAG: the container of tasks and the description of when they run. ``dag`` is the decorator."""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from scheduler_app.sdk import schedule_policies, scope, timezone
from scheduler_app.sdk.arguments import as_callbacks
from scheduler_app.sdk.exceptions import (
    AirflowDagCycleException,
    AirflowException,
    DuplicateTaskIdFound,
    FailFastDagInvalidTriggerRule,
    TaskNotFound,
)
from scheduler_app.sdk.nearest import did_you_mean
from scheduler_app.sdk.node import validate_id
from scheduler_app.sdk.params import DagParam, ParamsDict
from scheduler_app.sdk.schedule import as_timetable
from scheduler_app.sdk.schedule_policies import Policies
from scheduler_app.sdk.states import TriggerRule
from scheduler_app.sdk.task_group import TaskGroup
from scheduler_app.sdk.xcom_arg import NOTSET, is_arg_set

#: Arguments of Airflow 2 that a DAG no longer takes, and what to write in their place.
REMOVED_DAG_ARGUMENTS: dict[str, str] = {
    "schedule_interval": "schedule",
    "timetable": "schedule",
    "concurrency": "max_active_tasks",
    "fail_stop": "fail_fast",
    "default_view": "nothing (it has no effect any more)",
    "orientation": "nothing (it has no effect any more)",
    "full_filepath": "nothing",
    "last_loaded": "nothing",
}


#: What ``max_active_tasks`` and ``max_active_runs`` of a DAG read as while its file does not say them.
SHOWN_WHEN_UNSAID = 16


class DAG:
    """A workflow. Used as ``with DAG("id", schedule=…):``, or by ``dag=…`` of its tasks.

    ``schedule``: None, a cron expression or preset, a timedelta, a timetable, an asset expression, or a list of assets.
    Raises TypeError for arguments that do not exist (naming the replacement of removed ones), AirflowException for
    a wrong id, AirflowTimetableInvalid for a schedule that cannot be read.
    """

    def __init__(
        self,
        dag_id: str,
        *,
        description: str | None = None,
        schedule: Any = None,
        start_date: dt.datetime | None = None,
        end_date: dt.datetime | None = None,
        template_searchpath: str | Iterable[str] | None = None,
        template_undefined: Any = None,
        user_defined_macros: dict[str, Any] | None = None,
        user_defined_filters: dict[str, Callable[..., Any]] | None = None,
        default_args: dict[str, Any] | None = None,
        max_active_tasks: int | None = None,
        max_active_runs: int | None = None,
        max_consecutive_failed_dag_runs: int = 0,
        dagrun_timeout: dt.timedelta | None = None,
        sla_miss_callback: Any = None,
        catchup: bool = False,
        on_success_callback: Any = None,
        on_failure_callback: Any = None,
        deadline: Any = None,
        doc_md: str | None = None,
        params: Any = None,
        access_control: dict[str, Any] | None = None,
        is_paused_upon_creation: bool | None = None,
        jinja_environment_kwargs: dict[str, Any] | None = None,
        render_template_as_native_obj: bool = False,
        tags: Collection[str] | None = None,
        owner_links: dict[str, str] | None = None,
        auto_register: bool = True,
        fail_fast: bool = False,
        dag_display_name: str | None = None,
        disable_bundle_versioning: bool = False,
        allowed_run_types: Any = None,
        rerun_with_latest_version: bool | None = None,
        misfire_policy: str | None = None,
        misfire_limit: int | None = None,
        overlap_policy: str | None = None,
        schedule_jitter: dt.timedelta | None = None,
        run_state: str | None = None,
        dst_gap: str | None = None,
        dst_overlap: str | None = None,
        **removed: Any,
    ) -> None:
        _reject(dag_id, removed)
        self.dag_id = validate_id(dag_id, "dag_id")
        self.description = description
        self.default_args = dict(default_args or {})
        self.timezone, self.start_date, self.end_date = self._read_dates(start_date, end_date)
        self.template_searchpath = (
            [template_searchpath] if isinstance(template_searchpath, str) else list(template_searchpath or ())
        )
        self.template_undefined = template_undefined
        self.user_defined_macros, self.user_defined_filters = user_defined_macros, user_defined_filters
        self.unsaid = {
            name
            for name, value in (("max_active_tasks", max_active_tasks), ("max_active_runs", max_active_runs))
            if value is None
        }
        self.max_active_tasks = _from_one(max_active_tasks, "max_active_tasks", dag_id)
        self.max_active_runs = _from_one(max_active_runs, "max_active_runs", dag_id)
        self.max_consecutive_failed_dag_runs = _not_negative(max_consecutive_failed_dag_runs, dag_id)
        if dagrun_timeout is not None and not isinstance(dagrun_timeout, dt.timedelta):
            raise TypeError(f"dagrun_timeout of DAG {dag_id!r} is a timedelta, not {dagrun_timeout!r}.")
        self.dagrun_timeout = dagrun_timeout
        self.catchup = bool(catchup)
        self.sla_miss_callback = as_callbacks(sla_miss_callback, "sla_miss_callback", dag_id)
        self.on_success_callback = as_callbacks(on_success_callback, "on_success_callback", dag_id)
        self.on_failure_callback = as_callbacks(on_failure_callback, "on_failure_callback", dag_id)
        self.deadline = list(deadline) if isinstance(deadline, (list, tuple)) else [deadline] if deadline else []
        self.params = ParamsDict(self._all_params(params))
        self.access_control = access_control
        self.is_paused_upon_creation = is_paused_upon_creation
        self.jinja_environment_kwargs = jinja_environment_kwargs
        self.render_template_as_native_obj = render_template_as_native_obj
        self.tags = _read_tags(tags, dag_id)
        self.owner_links = dict(owner_links or {})
        self.auto_register, self.fail_fast = auto_register, fail_fast
        self._dag_display_name = dag_display_name
        self.disable_bundle_versioning = disable_bundle_versioning
        self.allowed_run_types, self.rerun_with_latest_version = allowed_run_types, rerun_with_latest_version
        self.edge_info: dict[str, dict[str, dict[str, Any]]] = {}
        self.task_dict: dict[str, Any] = {}
        self._mapped_over: dict[str, list[Any]] | None = None
        self.fileloc = _calling_file()
        self.relative_fileloc: str | None = None
        self.doc_md = self._read_doc(doc_md)
        self.schedule = schedule
        given = Policies(
            misfire_policy, misfire_limit, overlap_policy, schedule_jitter, run_state, dst_gap, dst_overlap
        )
        self.policies = schedule_policies.read(dag_id, given)
        self.timetable = schedule_policies.on_the_clock(as_timetable(schedule, self), dag_id, self.policies)
        self.task_group = TaskGroup.create_root(self)

    # -- reading arguments ------------------------------------------------------------------------------------------

    def _read_dates(self, start: dt.datetime | None, end: dt.datetime | None) -> tuple[Any, Any, Any]:
        first = start or self.default_args.get("start_date")
        if isinstance(first, str):
            first = timezone.parse(first)
        for name, value in (("start_date", first), ("end_date", end)):
            if value is not None and not isinstance(value, dt.datetime):
                raise TypeError(f"{name} of DAG {self.dag_id!r} is a datetime, not {value!r}.")
        zone = first.tzinfo if first is not None and first.tzinfo is not None else dt.UTC
        last = end or self.default_args.get("end_date")
        if isinstance(last, str):
            last = timezone.parse(last)
        if last is not None and last.tzinfo is None:
            last = last.replace(tzinfo=zone)
        if first is not None and first.tzinfo is None:
            first = first.replace(tzinfo=dt.UTC)
        return zone, timezone.convert_to_utc(first), timezone.convert_to_utc(last)

    def _all_params(self, params: Any) -> ParamsDict:
        merged = ParamsDict(params)
        for name, param in ParamsDict(self.default_args.pop("params", None)).params():
            merged[name] = param
        return merged

    def _read_doc(self, doc_md: str | None) -> str | None:
        if doc_md is not None and doc_md.endswith(".md"):
            path = os.path.join(self.folder, doc_md) if not os.path.isabs(doc_md) else doc_md
            try:
                with open(path, encoding="utf-8") as handle:
                    return handle.read()
            except FileNotFoundError:
                return doc_md
        return doc_md

    # -- names ------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<DAG: {self.dag_id}>"

    @property
    def dag_display_name(self) -> str:
        return self._dag_display_name or self.dag_id

    def said(self, name: str) -> Any:
        """The value of a limit that the file says; None where the setting of the scheduler holds."""
        value = getattr(self, name)
        return None if name in self.unsaid and value == SHOWN_WHEN_UNSAID else value

    @property
    def folder(self) -> str:
        return os.path.dirname(self.fileloc) if self.fileloc else ""

    @property
    def filepath(self) -> str:
        return self.fileloc

    @property
    def owner(self) -> str:
        return ", ".join(sorted({task.owner for task in self.tasks}))

    @property
    def timetable_summary(self) -> str:
        return self.timetable.summary

    # -- tasks ------------------------------------------------------------------------------------------------------

    @property
    def tasks(self) -> list[Any]:
        return list(self.task_dict.values())

    @property
    def task_ids(self) -> list[str]:
        return list(self.task_dict)

    @property
    def task_group_dict(self) -> dict[str | None, TaskGroup]:
        return {key: group for key, group in self.task_group.get_task_group_dict().items() if key is not None}

    @property
    def roots(self) -> list[Any]:
        return [task for task in self.tasks if not task.upstream_task_ids]

    @property
    def leaves(self) -> list[Any]:
        return [task for task in self.tasks if not task.downstream_task_ids]

    @property
    def teardowns(self) -> list[Any]:
        return [task for task in self.tasks if task.is_teardown]

    def has_task(self, task_id: str) -> bool:
        return task_id in self.task_dict

    def has_task_group(self, group_id: str) -> bool:
        return group_id in self.task_group_dict

    def get_task(self, task_id: str, include_subdags: bool = False) -> Any:
        try:
            return self.task_dict[task_id]
        except KeyError:
            hint = did_you_mean(task_id, self.task_dict)
            raise TaskNotFound(f"DAG {self.dag_id!r} has no task {task_id!r}.{hint}") from None

    def add_task(self, task: Any) -> None:
        """Raises DuplicateTaskIdFound; FailFastDagInvalidTriggerRule for a rule that ``fail_fast`` does not allow."""
        known = self.task_dict.get(task.task_id)
        if known is task:
            return
        if known is not None or task.task_id in self.task_group.used_group_ids:
            raise DuplicateTaskIdFound(
                f"Task id {task.task_id!r} was added to the DAG {self.dag_id!r} already: every task needs an id of "
                "its own."
            )
        if self.fail_fast and task.trigger_rule not in (TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE_SETUP_SUCCESS):
            raise FailFastDagInvalidTriggerRule(
                f"DAG {self.dag_id!r} has fail_fast, so task {task.task_id!r} can only have the rule all_success, "
                f"not {task.trigger_rule}."
            )
        self.task_dict[task.task_id] = task
        task._dag = self
        self._mapped_over = None
        if task.task_group is None:
            self.task_group.add(task)

    def add_tasks(self, tasks: Iterable[Any]) -> None:
        for task in tasks:
            self.add_task(task)

    def set_dependency(self, upstream_task_id: str, downstream_task_id: str) -> None:
        self.get_task(upstream_task_id).set_downstream(self.get_task(downstream_task_id))

    def set_edge_info(self, upstream_task_id: str, downstream_task_id: str, info: dict[str, Any]) -> None:
        self.edge_info.setdefault(upstream_task_id, {})[downstream_task_id] = info

    def get_edge_info(self, upstream_task_id: str, downstream_task_id: str) -> dict[str, Any]:
        return self.edge_info.get(upstream_task_id, {}).get(downstream_task_id, {})

    def param(self, name: str, default: Any = NOTSET) -> DagParam:
        return DagParam(current_dag=self, name=name, default=default)

    def topological_sort(self) -> list[Any]:
        """Tasks, each after all its upstreams. Raises AirflowDagCycleException that names the circle."""
        remaining = {task_id: len(task.upstream_task_ids) for task_id, task in self.task_dict.items()}
        ready = [task_id for task_id, count in remaining.items() if not count]
        order = []
        for task_id in ready:
            order.append(self.task_dict[task_id])
            for after in sorted(self.task_dict[task_id].downstream_task_ids):
                remaining[after] -= 1
                if not remaining[after]:
                    ready.append(after)
        if len(order) < len(self.task_dict):
            raise AirflowDagCycleException(self._describe_cycle({task_id for task_id, n in remaining.items() if n}))
        return order

    def _describe_cycle(self, stuck: set[str]) -> str:
        task_id = min(stuck)
        path: list[str] = []
        while task_id not in path:
            path.append(task_id)
            task_id = min(self.task_dict[task_id].upstream_task_ids & stuck)
        circle = [*path[path.index(task_id) :], task_id]
        return f"Cycle in DAG {self.dag_id!r}: {' >> '.join(reversed(circle))}. Remove one of these edges."

    def check_cycle(self) -> None:
        self.topological_sort()

    def validate(self) -> None:
        """What can only be said once the file is read: circles, params without default in a scheduled DAG, owners."""
        self.topological_sort()
        self._check_params()
        for owner, link in self.owner_links.items():
            if not re.match(r"(https?://|mailto:)", link):
                raise AirflowException(
                    f"owner_links of DAG {self.dag_id!r}: the link of {owner!r} is no URL: {link!r}."
                )

    def _check_params(self) -> None:
        from scheduler_app.sdk.exceptions import ParamValidationError

        for name, param in self.params.params():
            if not param.has_value:
                if self.timetable.can_be_scheduled:
                    raise AirflowException(
                        f"DAG {self.dag_id!r} is scheduled, so its param {name!r} needs a default that fits its schema."
                    )
                continue
            try:
                param.resolve()
            except ParamValidationError as error:
                raise ParamValidationError(f"Param {name!r} of DAG {self.dag_id!r}: {error}") from None

    # -- templates --------------------------------------------------------------------------------------------------

    def get_template_env(self, *, force_sandboxed: bool = False, force_native: bool | None = None) -> Any:
        from scheduler_app.sdk.jinja_env import environment

        native = self.render_template_as_native_obj if force_native is None else force_native
        folder = [self.folder] if self.folder else []
        return environment(
            native=native,
            search_path=[*folder, *self.template_searchpath],
            undefined=self.template_undefined,
            macros=self.user_defined_macros,
            filters=self.user_defined_filters,
            options=self.jinja_environment_kwargs,
        )

    def resolve_template_files(self) -> None:
        for task in self.tasks:
            if not task.is_mapped:
                task.resolve_template_files()

    # -- with DAG(...) ----------------------------------------------------------------------------------------------

    def __enter__(self) -> DAG:
        scope.push_dag(self)
        scope.push_group(self.task_group)
        return self

    def __exit__(self, *error: Any) -> None:
        scope.pop_group()
        scope.pop_dag()


def _reject(dag_id: Any, unknown: dict[str, Any]) -> None:
    if not unknown:
        return
    known = inspect.signature(DAG.__init__).parameters
    parts = []
    for name in unknown:
        instead = REMOVED_DAG_ARGUMENTS.get(name)
        parts.append(
            f"{name!r} (removed in Airflow 3; use {instead})" if instead else f"{name!r}.{did_you_mean(name, known)}"
        )
    raise TypeError(f"DAG {dag_id!r} does not take the argument(s) {' '.join(parts)}")


def _read_tags(tags: Any, dag_id: str) -> set[str]:
    if isinstance(tags, str):
        raise TypeError(f"tags of DAG {dag_id!r} is a list of texts, not a text: write [{tags!r}].")
    found = set(tags or ())
    for tag in found:
        if len(tag) > 100:
            raise AirflowException(f"A tag of DAG {dag_id!r} is longer than 100 characters: {tag[:40]!r}…")
    return found


def _from_one(value: int | None, name: str, dag_id: str) -> int:
    number = SHOWN_WHEN_UNSAID if value is None else int(value)
    if number < 1:
        raise ValueError(f"{name} of DAG {dag_id!r} is {value!r}: it is a number from 1 up. To stop a DAG, pause it.")
    return number


def _not_negative(value: int, dag_id: str) -> int:
    if value < 0:
        raise ValueError(f"max_consecutive_failed_dag_runs of DAG {dag_id!r} is 0 (off) or more, not {value}.")
    return int(value)


def _calling_file() -> str:
    """The file of the code that makes the DAG: the first frame outside this package."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("scheduler_app.sdk"):
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else ""


def dag(dag_id: Any = "", **options: Any) -> Any:
    """``@dag`` or ``@dag(…)``: calling the function makes the DAG; its arguments are the DAG's params."""

    def wrap(function: Callable[..., Any]) -> Callable[..., DAG]:
        @functools.wraps(function)
        def factory(*args: Any, **kwargs: Any) -> DAG:
            bound = inspect.signature(function).bind(*args, **kwargs)
            bound.apply_defaults()
            made = DAG(name, **{"doc_md": function.__doc__, **options})
            with made:
                arguments = {}
                for key, value in bound.arguments.items():
                    arguments[key] = made.param(key, value)
                function(**arguments)
            return made

        name = dag_id if isinstance(dag_id, str) and dag_id else function.__name__
        return factory

    if callable(dag_id):
        function, dag_id = dag_id, ""
        return wrap(function)
    return wrap


def get_dag(dags: Sequence[DAG], dag_id: str) -> DAG | None:
    return next((found for found in dags if found.dag_id == dag_id), None)


__all__ = ["DAG", "NOTSET", "dag", "is_arg_set"]
