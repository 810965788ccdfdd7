"""Task instances in the admin."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from scheduler_app.access import Actor
from scheduler_app.actions import hold
from scheduler_app.engine import states
from scheduler_app.models import TaskInstance

from .base import Derived, asked_in_admin, for_each, is_held, one_of, state_mark


@admin.register(TaskInstance)
class TaskInstanceAdmin(Derived):
    list_display = (
        "task_id",
        "map_index",
        "dag_id",
        "run_of",
        state_mark,
        is_held,
        "try_number",
        "pool",
        "start_date",
        "end_date",
    )
    list_filter = (one_of("state", _("state"), *(one or "none" for one in states.TASK_STATES)),)
    list_select_related = ("dag_run",)
    #: an id of the run (``ti_open``, ``task_instance_once``) finds by index; a text would read every row
    search_fields = ("dag_run__run_id__exact",)
    search_help_text = _("The run's id")
    ordering = ("-id",)
    actions = ("hold_tasks", "release_tasks")

    @admin.display(description=_("run"))
    def run_of(self, row: TaskInstance) -> str:
        return row.dag_run.run_id

    def dashboard_url(self, row: Any) -> str:
        where = [row.dag_id, row.dag_run.run_id, row.task_id]
        if row.map_index >= 0:
            return reverse("scheduler:task_mapped", args=[*where, row.map_index])
        return reverse("scheduler:task", args=where)

    @admin.action(description=_("Hold"), permissions=["act"])
    def hold_tasks(self, request: HttpRequest, rows: QuerySet[TaskInstance]) -> None:
        def act(row: TaskInstance, actor: Actor, now: datetime) -> None:
            run_id = row.dag_run.run_id
            hold.hold_task(actor, row.dag_id, run_id, row.task_id, now, why=asked_in_admin(), map_index=row.map_index)

        for_each(request, rows.select_related("dag_run"), act)

    @admin.action(description=_("Release"), permissions=["act"])
    def release_tasks(self, request: HttpRequest, rows: QuerySet[TaskInstance]) -> None:
        def act(row: TaskInstance, actor: Actor, now: datetime) -> None:
            hold.release_task(actor, row.dag_id, row.dag_run.run_id, row.task_id, now, map_index=row.map_index)

        for_each(request, rows.select_related("dag_run"), act)

    def has_act_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("scheduler_app.change_taskinstance")
