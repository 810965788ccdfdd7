"""Routes of the bundled project."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from scheduler_app.ui import metrics
from scheduler_app.ui.away import handler500

__all__ = ["handler500", "urlpatterns"]

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("auth/", include(f"{settings.API_PACKAGE}.auth_urls")),
    path("api/v2/", include(f"{settings.API_PACKAGE}.urls")),
    path("metrics", metrics.show),
    path("", include("scheduler_app.ui.urls")),
]
