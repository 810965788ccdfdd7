"""Who runs attempts now, which ones, and what waits for whom. Airflow's API has ``jobs`` alone."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.queries import workers

from ..endpoint import Endpoint
from ..render import stamp


class WorkersView(Endpoint):
    """Attempts of DAGs that the asker may not see are counted, not named."""

    kind = "job"

    def get(self, request: Request) -> Response:
        jobs = access.jobs(self.actor)
        found = workers.workers(jobs, access.task_instances(self.actor), self.now)
        return Response(
            {
                "workers": [_plain(one) for one in found],
                "queues": [_plain(one) for one in workers.queues(found)],
                "triggerers": [_plain(one) for one in workers.triggerers(jobs, self.now)],
            }
        )


def _plain(item: Any) -> Any:
    """A dataclass of ``queries.workers`` with its times as the API writes them."""
    if dataclasses.is_dataclass(item):
        return {field.name: _plain(getattr(item, field.name)) for field in dataclasses.fields(item)}
    if isinstance(item, tuple):
        return [_plain(one) for one in item]
    return stamp(item) if isinstance(item, datetime) else item
