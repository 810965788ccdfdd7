"""A schedule of named instants, given out of order."""

from __future__ import annotations

import pendulum
from airflow.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow.timetables.events import EventsTimetable

WHEN = [pendulum.datetime(2024, 1, 5), pendulum.datetime(2024, 1, 2), pendulum.datetime(2024, 2, 1, 12)]

with DAG("dating_events", schedule=EventsTimetable(WHEN), start_date=pendulum.datetime(2024, 1, 1), catchup=True):
    EmptyOperator(task_id="noop")
