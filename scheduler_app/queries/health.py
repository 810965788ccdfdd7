"""Whether the processes of ours are alive: what ``/api/v2/monitor/health`` and the home page say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max

from scheduler_app.conf import conf
from scheduler_app.models import Job

#: component → its kind of job
COMPONENTS = {"scheduler": "SchedulerJob", "triggerer": "TriggererJob", "dag_processor": "DagProcessorJob"}


@dataclass(frozen=True, slots=True)
class Health:
    """``alive`` is None for a component that was never started here."""

    component: str
    alive: bool | None
    latest_heartbeat: datetime | None


def components(now: datetime) -> list[Health]:
    """The newest heartbeat of each component, and which are alive: two statements."""
    newest = dict(
        Job.objects.filter(job_type__in=COMPONENTS.values())
        .values_list("job_type")
        .annotate(at=Max("latest_heartbeat"))
    )
    running = set(Job.objects.alive(now, conf().lease_seconds).values_list("job_type", flat=True))
    return [
        Health(name, kind in running if kind in newest else None, newest.get(kind)) for name, kind in COMPONENTS.items()
    ]
