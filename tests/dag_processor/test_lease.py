"""Who owns a bundle: the processor whose job row is alive."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import timedelta

import pytest

from scheduler_app import process_tree
from scheduler_app.models import Job, db
from scheduler_app.models.lease import Lease, LeaseLost, bury_neighbours, claim_bundles, identity

from .conftest import T0, at

BORN = {"start_date": T0, "latest_heartbeat": T0}


def job(seconds: float = 0) -> Job:
    return Job.objects.create(job_type="DagProcessorJob", start_date=T0, latest_heartbeat=at(seconds))


@pytest.mark.django_db
def test_a_bundle_belongs_to_the_first_processor_until_its_lease_is_over():
    first, second = job(), job(25)
    assert claim_bundles(first.pk, ["dags", "examples"], at(0), 30) == {"dags", "examples"}
    assert claim_bundles(second.pk, ["dags", "more"], at(29), 30) == {"more"}
    assert claim_bundles(first.pk, ["dags", "examples"], at(29), 30) == {"dags", "examples"}
    assert claim_bundles(second.pk, ["dags", "more"], at(30), 30) == {"dags", "more"}
    first.refresh_from_db()
    assert (first.state, first.end_date, first.bundle_names) == ("failed", at(30), [])


@pytest.mark.django_db(transaction=True)
def test_a_lease_is_a_job_row_that_beats_and_ends():
    with Lease("DagProcessorJob", heartbeat_seconds=0.01, lease_seconds=30) as lease:
        row = Job.objects.get(pk=lease.job_id)
        waited = threading.Event()
        while Job.objects.get(pk=lease.job_id).latest_heartbeat <= row.latest_heartbeat:
            waited.wait(0.01)
        lease.check()
        lease.guard()
    row.refresh_from_db()
    assert (row.state, row.end_date) == ("success", row.latest_heartbeat)


@pytest.mark.django_db(transaction=True)
def test_a_job_that_somebody_ended_may_not_write_and_stays_ended():
    lease = Lease("DagProcessorJob", heartbeat_seconds=60, lease_seconds=30)
    with lease:
        Job.objects.filter(pk=lease.job_id).update(state="failed", end_date=T0)
        with pytest.raises(LeaseLost), db.atomic():
            lease.guard()
        assert lease.lost
    assert Job.objects.get(pk=lease.job_id).state == "failed"


@pytest.mark.django_db(transaction=True)
def test_S_25_a_process_that_could_not_beat_for_its_lease_counts_itself_as_dead(monkeypatch: pytest.MonkeyPatch):
    now = 1000.0
    monkeypatch.setattr("scheduler_app.models.lease.time.monotonic", lambda: now)
    with Lease("DagProcessorJob", heartbeat_seconds=60, lease_seconds=30) as lease:
        now += timedelta(seconds=30).total_seconds()
        lease.check()
        now += 0.1
        with pytest.raises(LeaseLost):
            lease.check()


@pytest.mark.django_db
def test_S_66_a_job_whose_process_is_gone_from_this_machine_is_ended_before_its_lease_is_over():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    here = identity()
    living = {**here, "start_ticks": process_tree.start_ticks(child.pid)}
    alive, reused, elsewhere = (
        Job.objects.create(job_type="DagProcessorJob", pid=child.pid, bundle_names=[name], detail=detail, **BORN)
        for name, detail in (
            ("dags", living),
            ("reused", {**here, "start_ticks": 1}),
            ("elsewhere", {"machine": "another", "start_ticks": 1}),
        )
    )
    assert bury_neighbours(at(1)) == [reused.pk]
    child.communicate(b"\n")
    assert claim_bundles(job(1).pk, ["dags", "elsewhere"], at(2), 30) == {"dags"}
    for row in (alive, elsewhere):
        row.refresh_from_db()
    assert [alive.state, elsewhere.state] == ["failed", "running"]
