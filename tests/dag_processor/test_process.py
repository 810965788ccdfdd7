"""The whole processor with real children."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler_app import access
from scheduler_app.actions import backfills
from scheduler_app.conf import Conf
from scheduler_app.dag_processor import inventory, process
from scheduler_app.dag_processor.bundle import Bundle, bundles_of
from scheduler_app.dag_processor.process import run_dag_processor
from scheduler_app.models import DagModel, DagRun, DagVersion, Job, ParseError

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

CUSTOM = """
from datetime import datetime, timedelta
from airflow import DAG
from airflow.operators.empty import EmptyOperator
from airflow.timetables.base import DagRunInfo, DataInterval, Timetable


class EverySecondHour(Timetable):
    def infer_manual_data_interval(self, *, run_after):
        return DataInterval(run_after - timedelta(hours=2), run_after)

    def next_dagrun_info(self, *, last_automated_data_interval, restriction):
        start = last_automated_data_interval.end if last_automated_data_interval else restriction.earliest
        return DagRunInfo.interval(start, start + timedelta(hours=2))


with DAG("custom", start_date=datetime(2030, 1, 1), schedule=EverySecondHour(), catchup=True):
    EmptyOperator(task_id="only")
"""


@pytest.fixture
def dags(tmp_path: Path, settings: Any) -> Path:
    folder = tmp_path / "dags"
    folder.mkdir()
    settings.SCHEDULER = {
        "home": tmp_path,
        "dags_folder": folder,
        "load_examples": False,
        "parse_timeout_seconds": 10.0,
    }
    return folder


def parse_once(**options: Any) -> None:
    run_dag_processor(threading.Event(), num_parses=1, **options)


def test_files_are_parsed_once_and_the_job_ends_in_order(dags: Path):
    (dags / "good.py").write_text(
        "from airflow import DAG\nfrom datetime import datetime\nfrom airflow.operators.empty import EmptyOperator\n"
        "with DAG('good', start_date=datetime(2024, 1, 1), schedule='@daily', catchup=True):\n"
        "    EmptyOperator(task_id='only')\n"
    )
    (dags / "bad.py").write_text("from airflow import DAG\nimport nothing_like_this\n")
    parse_once()
    row = DagModel.objects.get()
    assert (row.pk, row.timetable_summary, row.is_paused) == ("good", "0 0 * * *", True)
    assert row.next_dagrun_run_after == datetime(2024, 1, 1, tzinfo=UTC)
    assert ParseError.objects.get().stack_trace.endswith("ModuleNotFoundError: No module named 'nothing_like_this'")
    job = Job.objects.get()
    assert (job.job_type, job.state, job.bundle_names) == ("DagProcessorJob", "success", [])


def test_a_step_that_always_fails_keeps_no_other_from_its_own(dags: Path, monkeypatch: pytest.MonkeyPatch):
    (dags / "good.py").write_text("from airflow import DAG\nwith DAG('good', schedule=None):\n    pass\n")
    stop, probes = threading.Event(), []

    def probe(folders: object) -> None:
        probes.append(folders)
        if len(probes) == 60:
            stop.set()
        raise ValueError("a row that nobody understands")

    monkeypatch.setattr(inventory, "probe", probe)
    monkeypatch.setattr(process, "_DATABASE_RETRY_SECONDS", 0.0)
    run_dag_processor(stop, num_parses=1)
    assert DagModel.objects.get().pk == "good"
    assert probes


def test_a_file_that_takes_too_long_is_an_import_error_and_the_others_go_on(dags: Path, settings: Any):
    settings.SCHEDULER = {**settings.SCHEDULER, "parse_timeout_seconds": 1.0}
    (dags / "slow.py").write_text("import airflow, time  # dag\ntime.sleep(60)\n")
    (dags / "quick.py").write_text("from airflow import DAG\ndag = DAG('quick', schedule=None)\n")
    parse_once()
    assert list(DagModel.objects.values_list("pk", flat=True)) == ["quick"]
    assert ParseError.objects.get().stack_trace.startswith("The import took longer than 1 s and was stopped.")


def test_an_authors_own_timetable_is_planned_in_the_child_and_says_the_interval_of_a_manual_run(dags: Path):
    (dags / "custom.py").write_text(CUSTOM)
    parse_once()
    row = DagModel.objects.get()
    assert len(row.timetable["planned"]) == 64
    assert row.next_dagrun_data_interval_start == datetime(2030, 1, 1, tzinfo=UTC)
    assert row.next_dagrun_run_after == datetime(2030, 1, 1, 2, tzinfo=UTC)
    run = DagRun.objects.create(
        dag=row, run_id="r", run_type="manual", run_after=datetime(2026, 1, 1, tzinfo=UTC), interval_pending=True
    )
    parse_once()
    run.refresh_from_db()
    assert run.data_interval_start == run.run_after - timedelta(hours=2)
    assert (run.data_interval_end, run.interval_pending) == (run.run_after, False)
    assert DagVersion.objects.count() == 1


def test_an_authors_own_timetable_lists_the_slots_of_a_backfill_in_the_child(dags: Path):
    (dags / "custom.py").write_text(CUSTOM)
    parse_once()
    day = datetime(2026, 1, 1, tzinfo=UTC)
    wanted = backfills.Wanted("custom", day, day + timedelta(hours=7))
    row = backfills.create(access.system("person", "ann"), wanted, datetime(2026, 2, 1, tzinfo=UTC))
    parse_once()
    row.refresh_from_db()
    hours = [0, 2, 4, 6]
    assert list(row.slots.order_by("ordinal").values_list("data_interval_start", "run_after")) == [
        (day + timedelta(hours=n), day + timedelta(hours=n + 2)) for n in hours
    ]
    assert (row.slots_pending, row.error) == (False, None)


def test_every_example_loads(dags: Path, settings: Any):
    settings.SCHEDULER = {**settings.SCHEDULER, "load_examples": True}
    parse_once()
    assert dict(ParseError.objects.values_list("filename", "stack_trace")) == {}
    assert sorted(DagModel.objects.values_list("pk", flat=True)) == [
        "choose_a_path",
        "clean_up_always",
        "fail_and_recover",
        "first_steps",
        "make_prices",
        "sales_report",
        "share_the_slots",
        "use_prices",
        "wait_for_things",
    ]
    assert set(DagModel.objects.values_list("bundle_name", flat=True)) == {"examples"}


def test_examples_that_are_switched_off_leave_the_lists(dags: Path, settings: Any):
    settings.SCHEDULER = {**settings.SCHEDULER, "load_examples": True}
    parse_once()
    settings.SCHEDULER = {**settings.SCHEDULER, "load_examples": False}
    parse_once()
    assert DagModel.objects.active().count() == 0


def test_the_bundles_follow_the_settings_and_the_given_folder(tmp_path: Path):
    conf = Conf(dags_folder=tmp_path / "dags", load_examples=False)
    (tmp_path / "dags" / "team").mkdir(parents=True)
    (tmp_path / "one.py").touch()
    assert bundles_of(conf) == [Bundle("dags", tmp_path / "dags")]
    assert bundles_of(conf, tmp_path / "dags" / "team") == [Bundle("dags", tmp_path / "dags", "team")]
    assert bundles_of(conf, tmp_path / "one.py") == [Bundle(f"{tmp_path}/one.py", tmp_path, "one.py")]
    assert [bundle.name for bundle in bundles_of(Conf(dags_folder=tmp_path))] == ["dags", "examples"]
