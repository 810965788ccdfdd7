"""Routes of the bundled project."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("", include("django_prometheus.urls")),
]
if find_spec(f"{settings.API_PACKAGE}.urls"):
    urlpatterns.append(path("auth/", include(f"{settings.API_PACKAGE}.auth_urls")))
    urlpatterns.append(path("api/v2/", include(f"{settings.API_PACKAGE}.urls")))
if (Path(__file__).parent / "ui" / "urls.py").exists():
    urlpatterns.append(path("", include("scheduler_app.ui.urls")))
