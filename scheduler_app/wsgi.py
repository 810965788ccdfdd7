"""The WSGI application, for gunicorn and its kin."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from scheduler_app import proc

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_app.settings")
application = get_wsgi_application()
get_resolver().url_patterns  # noqa: B018  (loads every page and endpoint, so that no request has to)
proc.keep_what_is_loaded()
