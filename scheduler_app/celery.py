"""The Celery application: workers start with ``celery -A scheduler_app worker``."""

from __future__ import annotations

import os

from scheduler_app.conf import conf
from scheduler_app.executors.celery_app import make_app

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_app.settings")

app = make_app(conf())
