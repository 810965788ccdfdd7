"""DAGs in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from scheduler_app.actions import hold, pause
from scheduler_app.models import DagModel

from .base import Derived, asked_in_admin, for_each, is_held


@admin.register(DagModel)
class DagAdmin(Derived):
    list_display = (
        "dag_id",
        "is_paused",
        is_held,
        "is_stale",
        "has_import_errors",
        "timetable_summary",
        "next_dagrun_run_after",
        "owners",
    )
    list_filter = ("is_paused", "is_stale", "has_import_errors", "bundle_name")
    search_fields = ("dag_id__istartswith",)
    search_help_text = _("How the DAG's id begins")
    ordering = ("dag_id",)
    actions = ("pause_dags", "resume_dags", "hold_new_runs", "release_new_runs")

    def dashboard_url(self, row: Any) -> str:
        return reverse("scheduler:dag", args=[row.pk])

    @admin.action(description=_("Pause"), permissions=["act"])
    def pause_dags(self, request: HttpRequest, rows: QuerySet[DagModel]) -> None:
        for_each(request, rows, lambda dag, actor, now: pause.set_paused(actor, dag.pk, True, now))

    @admin.action(description=_("Resume"), permissions=["act"])
    def resume_dags(self, request: HttpRequest, rows: QuerySet[DagModel]) -> None:
        for_each(request, rows, lambda dag, actor, now: pause.set_paused(actor, dag.pk, False, now))

    @admin.action(description=_("Hold new runs"), permissions=["act"])
    def hold_new_runs(self, request: HttpRequest, rows: QuerySet[DagModel]) -> None:
        for_each(request, rows, lambda dag, actor, now: hold.hold_new_runs(actor, dag.pk, now, why=asked_in_admin()))

    @admin.action(description=_("Release new runs"), permissions=["act"])
    def release_new_runs(self, request: HttpRequest, rows: QuerySet[DagModel]) -> None:
        for_each(request, rows, lambda dag, actor, now: hold.release_new_runs(actor, dag.pk, now))

    def has_act_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("scheduler_app.change_dagmodel")
