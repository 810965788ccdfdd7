"""The world's log lines are its history; those of the scheduler would drown it."""

from __future__ import annotations

import logging

logging.getLogger("scheduler_app.scheduler").setLevel(logging.ERROR)
