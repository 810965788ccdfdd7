"""Health, version, configuration, providers, plugins, jobs."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.db import Error
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.conf import Conf, conf
from scheduler_app.models import Job, db
from scheduler_app.queries import health

from .. import errors, pages, params
from ..endpoint import Endpoint
from ..render import stamp
from . import documents

#: The version of Airflow whose API this is; clients compare it.
API_OF_AIRFLOW = "3.3.2"


class HealthView(Endpoint):
    authentication_classes = []
    needs = {"GET": None}

    def get(self, request: Request) -> Response:
        try:
            found = {item.component: item for item in health.components(db.clock())}
        except Error:
            unknown: dict[str, Any] = {"status": None}
            return Response(
                {
                    "metadatabase": {"status": "unhealthy"},
                    "scheduler": unknown | {"latest_scheduler_heartbeat": None},
                    "triggerer": unknown | {"latest_triggerer_heartbeat": None},
                    "dag_processor": unknown | {"latest_dag_processor_heartbeat": None},
                }
            )
        words = {True: "healthy", False: "unhealthy", None: None}
        answer: dict[str, Any] = {"metadatabase": {"status": "healthy"}}
        for name, item in found.items():
            answer[name] = {
                "status": words[item.alive],
                f"latest_{name}_heartbeat": stamp(item.latest_heartbeat),
            }
        return Response(answer)


class VersionView(Endpoint):
    authentication_classes = []
    needs = {"GET": None}

    def get(self, request: Request) -> Response:
        return Response({"version": API_OF_AIRFLOW, "git_version": None})


def _options() -> dict[str, str]:
    """Knobs that may be shown; the value of a secret one is not."""
    values = conf()
    return {
        spec.name: str(getattr(values, spec.name)) if spec.repr else "< hidden >" for spec in dataclasses.fields(Conf)
    }


class ConfigView(Endpoint):
    """The scheduler's own knobs, as one section named ``scheduler``."""

    kind = "config"

    def get(self, request: Request) -> Response:
        section = request.query_params.get("section")
        if section not in (None, "scheduler"):
            raise errors.Problem(404, f"Section {section} not found.")
        options = [{"key": key, "value": value} for key, value in _options().items()]
        return Response({"sections": [{"name": "scheduler", "options": options}]})


class ConfigValueView(Endpoint):
    kind = "config"

    def get(self, request: Request, section: str, option: str) -> Response:
        options = _options()
        if section != "scheduler" or option not in options:
            raise errors.Problem(404, f"Option [{section}/{option}] not found.")
        return Response({"sections": [{"name": section, "options": [{"key": option, "value": options[option]}]}]})


class ProvidersView(Endpoint):
    """None: operators come with the scheduler, and provider packages run in the children alone."""

    kind = "provider"

    def get(self, request: Request) -> Response:
        pages.window(request.query_params)
        return Response({"providers": [], "total_entries": 0})


class PluginsView(Endpoint):
    """None: this server loads no plug-ins."""

    kind = "provider"

    def get(self, request: Request) -> Response:
        pages.window(request.query_params)
        return Response({"plugins": [], "total_entries": 0})


class PluginErrorsView(Endpoint):
    kind = "provider"

    def get(self, request: Request) -> Response:
        return Response({"import_errors": [], "total_entries": 0})


class JobsView(Endpoint):
    kind = "job"

    filters = (
        *params.bounds("start_date"),
        *params.bounds("end_date"),
        params.exact("job_state", "state"),
        params.exact("job_type"),
        params.exact("hostname"),
        params.exact("executor_class"),
    )
    order = {
        name: name
        for name in (
            "id",
            "state",
            "job_type",
            "start_date",
            "end_date",
            "latest_heartbeat",
            "executor_class",
            "hostname",
            "unixname",
        )
    } | {"dag_id": "id"}

    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = params.narrow(access.jobs(self.actor), self.filters, query)
        alive = params.get(query, "is_alive", params.flag)
        if alive is not None:
            living = Job.objects.alive(self.now, conf().lease_seconds).values("pk")
            rows = rows.filter(pk__in=living) if alive else rows.exclude(pk__in=living)
        found = pages.page(pages.ordered(rows, query, self.order, ["id"]), query)
        return Response({"jobs": [documents.job(row) for row in found.rows], "total_entries": found.total})
