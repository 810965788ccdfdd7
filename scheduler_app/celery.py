"""The Celery application: workers start with ``celery -A scheduler_app.celery worker``."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_app.settings")

app = Celery("scheduler_app")
app.config_from_object("django.conf:settings", namespace="CELERY")
