"""LatestOnlyOperator: what comes after runs in the newest scheduled run only."""

from __future__ import annotations

from typing import Any

from scheduler_app.sdk import timezone
from scheduler_app.sdk.operators.branch import BaseBranchOperator
from scheduler_app.sdk.states import DagRunType
from scheduler_app.sdk.timetables import DataInterval, TimeRestriction


class LatestOnlyOperator(BaseBranchOperator):
    """Skips its direct children unless now lies between this run and the next one. Runs by hand skip nothing."""

    ui_color = "#e9ffdb"

    def choose_branch(self, context: Any) -> Any:
        dag_run = context["dag_run"]
        children = list(self.get_direct_relative_ids(upstream=False))
        if dag_run.run_type == DagRunType.MANUAL:
            self.log.info("The run was started by hand: nothing is skipped.")
            return children
        start, end = self._window(dag_run)
        now = timezone.utcnow()
        if start is None or end is None or start < now <= end:
            self.log.info("This is the latest run: nothing is skipped.")
            return children
        self.log.info("This is not the latest run (that lies between %s and %s): the children are skipped.", start, end)
        return []

    def _window(self, dag_run: Any) -> tuple[Any, Any]:
        """From this run's due time to that of the next slot, which may lie behind the DAG's end date."""
        start, end = dag_run.data_interval_start, dag_run.data_interval_end
        if start is None or end is None:
            return None, None
        restriction = TimeRestriction(earliest=None, latest=None, catchup=True)
        following = self.dag.timetable.next_dagrun_info(  # type: ignore[union-attr]
            last_automated_data_interval=DataInterval(start, end), restriction=restriction
        )
        return end, following.run_after if following is not None else None
