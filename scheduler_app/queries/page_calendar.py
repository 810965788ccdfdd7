"""How the runs of each day ended."""

from __future__ import annotations

from datetime import date, datetime

from scheduler_app.models import db


def states_by_day(dag_id: str, since: datetime, until: datetime, zone: str) -> dict[date, dict[str, int]]:
    """Day in that zone → state → how many runs of the DAG had their ``run_after`` on it. One query."""
    records = db.fetch(
        """
        SELECT (run_after AT TIME ZONE %s)::date AS day, state, count(*) FROM scheduler_dag_run
        WHERE dag_id = %s AND run_after >= %s AND run_after < %s GROUP BY day, state ORDER BY day
        """,
        [zone, dag_id, since, until],
    )
    found: dict[date, dict[str, int]] = {}
    for day, state, count in records:
        found.setdefault(day, {})[state] = count
    return found
