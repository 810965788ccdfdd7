"""Who of our processes is alive."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler_app.models import Job


@dataclass(frozen=True, slots=True)
class Component:
    """One kind of process: the newest heartbeat of those that call themselves running."""

    job_type: str
    alive: int
    latest_heartbeat: datetime | None


#: The processes that a page asks about, in the order in which it lists them.
COMPONENTS = ("SchedulerJob", "DagProcessorJob", "TriggererJob")


def scheduler_alive(now: datetime, lease: timedelta) -> bool:
    """Whether any scheduler has a heartbeat younger than its lease. One query."""
    return Job.objects.alive(now, lease.total_seconds()).filter(job_type="SchedulerJob").exists()


def processor_alive(now: datetime, lease: timedelta) -> bool:
    """As :func:`scheduler_alive`, of DAG processors."""
    return Job.objects.alive(now, lease.total_seconds()).filter(job_type="DagProcessorJob").exists()


def components(now: datetime, lease: timedelta) -> list[Component]:
    """Each kind of :data:`COMPONENTS`, dead or alive. One query."""
    found: dict[str, list[datetime]] = {}
    running = Job.objects.filter(state="running", job_type__in=COMPONENTS)
    for kind, beat in running.values_list("job_type", "latest_heartbeat"):
        found.setdefault(kind, []).append(beat)
    return [
        Component(
            job_type=kind,
            alive=sum(1 for beat in found.get(kind, ()) if beat > now - lease),
            latest_heartbeat=max(found.get(kind, ()), default=None),
        )
        for kind in COMPONENTS
    ]
