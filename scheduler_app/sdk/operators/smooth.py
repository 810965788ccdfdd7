"""SmoothOperator: an easter egg that authors may import."""

from __future__ import annotations

from typing import Any

from scheduler_app.sdk.operator import BaseOperator


class SmoothOperator(BaseOperator):
    """Logs where to listen to the song."""

    ui_color = "#e8f7e4"

    def execute(self, context: Any) -> None:
        self.log.info("Enjoy Sade - Smooth Operator.")
