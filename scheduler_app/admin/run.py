"""Runs in the admin."""

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
from scheduler_app.models import DagRun

from .base import Derived, asked_in_admin, for_each, is_held, one_of, state_mark


@admin.register(DagRun)
class DagRunAdmin(Derived):
    list_display = ("run_id", "dag_id", state_mark, is_held, "run_type", "run_after", "start_date", "end_date")
    list_filter = (one_of("state", _("state"), *states.RUN_STATES), "run_type")
    search_fields = ("dag_id__exact",)
    search_help_text = _("The DAG's id")
    ordering = ("-id",)
    actions = ("hold_runs", "release_runs")

    def dashboard_url(self, row: Any) -> str:
        return reverse("scheduler:run", args=[row.dag_id, row.run_id])

    @admin.action(description=_("Hold"), permissions=["act"])
    def hold_runs(self, request: HttpRequest, rows: QuerySet[DagRun]) -> None:
        def act(run: DagRun, actor: Actor, now: datetime) -> None:
            hold.hold_run(actor, run.dag_id, run.run_id, now, why=asked_in_admin())

        for_each(request, rows, act)

    @admin.action(description=_("Release"), permissions=["act"])
    def release_runs(self, request: HttpRequest, rows: QuerySet[DagRun]) -> None:
        for_each(request, rows, lambda run, actor, now: hold.release_run(actor, run.dag_id, run.run_id, now))

    def has_act_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("scheduler_app.change_dagrun")
