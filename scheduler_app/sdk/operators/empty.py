"""EmptyOperator: a task that does nothing."""

from __future__ import annotations

from typing import Any

from scheduler_app.sdk.operator import BaseOperator


class EmptyOperator(BaseOperator):
    """Joins and groups other tasks. Without callbacks and outlets it succeeds without a process."""

    ui_color = "#e8f7e4"
    inherits_from_empty_operator = True

    def execute(self, context: Any) -> Any:
        return None


DummyOperator = EmptyOperator
