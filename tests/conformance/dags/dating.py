"""Schedules that catch up: triggers, intervals, several crons, events, clock changes, start and end dates of tasks."""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.operators.empty import EmptyOperator
from airflow.sdk import (
    DAG,
    CronDataIntervalTimetable,
    CronTriggerTimetable,
    DeltaDataIntervalTimetable,
    DeltaTriggerTimetable,
    MultipleCronTriggerTimetable,
    task,
)
from dateutil.relativedelta import relativedelta

PARIS = "Europe/Paris"


def utc(*when):
    return pendulum.datetime(*when, tz="UTC")


def dated(dag_id, schedule, start, end=None, **more):
    with DAG(
        dag_id, schedule=schedule, start_date=start, end_date=end, catchup=True, max_active_runs=3, **more
    ) as made:
        EmptyOperator(task_id="noop")
    return made


dated("dating_cron_trigger", CronTriggerTimetable("0 6 * * *", timezone="UTC"), utc(2024, 1, 1, 7), utc(2024, 1, 4, 6))
dated(
    "dating_cron_trigger_interval",
    CronTriggerTimetable("0 6 * * MON-FRI", timezone=PARIS, interval=timedelta(days=1)),
    utc(2024, 1, 5),
    utc(2024, 1, 9, 12),
)
dated(
    "dating_cron_trigger_relative",
    CronTriggerTimetable("0 0 1 * *", timezone="UTC", interval=relativedelta(months=1)),
    utc(2024, 1, 1),
    utc(2024, 3, 2),
)
dated(
    "dating_cron_interval_paris",
    CronDataIntervalTimetable("30 2 * * *", timezone=PARIS),
    pendulum.datetime(2024, 3, 29, tz=PARIS),
    pendulum.datetime(2024, 4, 2, tz=PARIS),
)
dated(
    "dating_cron_interval_autumn",
    CronDataIntervalTimetable("30 2 * * *", timezone=PARIS),
    pendulum.datetime(2024, 10, 25, tz=PARIS),
    pendulum.datetime(2024, 10, 29, tz=PARIS),
)
dated(
    "dating_autumn_daily",
    "30 2 * * *",
    pendulum.datetime(2024, 10, 26, tz=PARIS),
    pendulum.datetime(2024, 10, 29, tz=PARIS),
)
dated(
    "dating_autumn_hourly",
    "15 * * * *",
    pendulum.datetime(2024, 10, 27, 0, tz=PARIS),
    pendulum.datetime(2024, 10, 27, 5, tz=PARIS),
)
dated(
    "dating_spring_hourly",
    "15 */1 * * *",
    pendulum.datetime(2024, 3, 31, 0, tz=PARIS),
    pendulum.datetime(2024, 3, 31, 5, tz=PARIS),
)
dated("dating_delta_interval", DeltaDataIntervalTimetable(timedelta(hours=6)), utc(2024, 1, 1, 1), utc(2024, 1, 1, 23))
dated("dating_delta_trigger", DeltaTriggerTimetable(timedelta(hours=6)), utc(2024, 1, 1, 1), utc(2024, 1, 1, 23))
dated(
    "dating_delta_trigger_interval",
    DeltaTriggerTimetable(timedelta(hours=6), interval=timedelta(hours=2)),
    utc(2024, 1, 1, 1),
    utc(2024, 1, 1, 23),
)
dated("dating_relativedelta", relativedelta(months=1), utc(2024, 1, 31), utc(2024, 5, 1))
dated(
    "dating_several_crons",
    MultipleCronTriggerTimetable("0 6 * * *", "30 18 * * *", timezone="UTC"),
    utc(2024, 1, 1),
    utc(2024, 1, 2, 12),
)
dated("dating_weekly_preset", "@weekly", utc(2024, 1, 1), utc(2024, 1, 22))
dated("dating_monthly_preset", "@monthly", utc(2023, 12, 15), utc(2024, 3, 1))
dated("dating_yearly_preset", "@yearly", utc(2021, 6, 1), utc(2024, 1, 1))
dated("dating_quarterly_preset", "@quarterly", utc(2023, 6, 1), utc(2024, 1, 1))
dated("dating_nth_weekday", "0 9 * * MON#1", utc(2024, 1, 1), utc(2024, 4, 1))
dated("dating_last_day", "0 9 L * *", utc(2024, 1, 1), utc(2024, 4, 1))
dated("dating_start_inside", "0 0 * * *", utc(2024, 1, 1, 0, 0, 1), utc(2024, 1, 3))
dated("dating_start_exact", "0 0 * * *", utc(2024, 1, 1), utc(2024, 1, 3))
dated("dating_days_or", "0 0 13 * FRI", utc(2024, 9, 1), utc(2024, 9, 30))

with DAG(
    "dating_tasks",
    schedule="@daily",
    start_date=utc(2024, 1, 1),
    end_date=utc(2024, 1, 4),
    catchup=True,
    max_active_runs=1,
):
    early = EmptyOperator(task_id="early", end_date=utc(2024, 1, 2))
    late = EmptyOperator(task_id="late", start_date=utc(2024, 1, 3))
    always = EmptyOperator(task_id="always")
    early >> late >> always

with DAG(
    "dating_context",
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=utc(2024, 1, 1),
    end_date=utc(2024, 1, 3),
    catchup=True,
    max_active_runs=1,
):

    @task
    def seen(
        ds,
        ts,
        data_interval_start,
        data_interval_end,
        run_id,
        prev_data_interval_start_success,
        prev_data_interval_end_success,
        dag_run,
        logical_date,
    ):
        return [
            ds,
            ts,
            str(data_interval_start),
            str(data_interval_end),
            run_id,
            str(prev_data_interval_start_success),
            str(prev_data_interval_end_success),
            str(dag_run.run_type),
            str(logical_date),
            str(dag_run.run_after),
        ]

    seen()

with DAG("dating_once_future_end", schedule="@once", start_date=utc(2024, 1, 1), catchup=True):
    EmptyOperator(task_id="noop")

with DAG("dating_once_catchup_off", schedule="@once", start_date=utc(2024, 1, 1), catchup=False):
    EmptyOperator(task_id="noop")

with DAG(
    "dating_end_before_now", schedule="@daily", start_date=utc(2024, 1, 1), end_date=utc(2024, 1, 3), catchup=False
):
    EmptyOperator(task_id="noop")

with DAG(
    "past_depends_fails",
    schedule="@daily",
    start_date=utc(2024, 1, 1),
    end_date=utc(2024, 1, 3),
    catchup=True,
    max_active_runs=3,
):

    @task(depends_on_past=True)
    def fails_on_second(ds):
        if ds == "2024-01-02":
            raise ValueError(ds)
        return ds

    @task
    def free():
        return 1

    fails_on_second() >> EmptyOperator(task_id="after")
    free()

with DAG(
    "past_skipped_counts",
    schedule="@daily",
    start_date=utc(2024, 1, 1),
    end_date=utc(2024, 1, 3),
    catchup=True,
    max_active_runs=3,
):

    @task.short_circuit
    def gate(ds):
        return ds != "2024-01-02"

    gate() >> EmptyOperator(task_id="dependent", depends_on_past=True)

with DAG(
    "past_wait_for_downstream",
    schedule="@daily",
    start_date=utc(2024, 1, 1),
    end_date=utc(2024, 1, 3),
    catchup=True,
    max_active_runs=3,
):

    @task(wait_for_downstream=True)
    def first(ds):
        return ds

    @task
    def second(ds):
        if ds == "2024-01-02":
            raise ValueError(ds)

    first() >> second()

with DAG("past_latest_only", schedule="@daily", start_date=utc(2024, 1, 1), end_date=utc(2024, 1, 2), catchup=True):
    from airflow.operators.latest_only import LatestOnlyOperator

    (
        LatestOnlyOperator(task_id="latest")
        >> EmptyOperator(task_id="skipped")
        >> EmptyOperator(task_id="always", trigger_rule="all_done")
    )

with DAG(
    "past_ignores_first",
    schedule="@daily",
    start_date=utc(2024, 1, 1),
    end_date=utc(2024, 1, 2),
    catchup=True,
    max_active_runs=1,
    default_args={"depends_on_past": True, "ignore_first_depends_on_past": False},
):
    EmptyOperator(task_id="waits")
