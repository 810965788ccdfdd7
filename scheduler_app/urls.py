"""Routes of the bundled project."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.utils.translation import gettext_lazy

from scheduler_app.ui import metrics
from scheduler_app.ui.away import handler500
from scheduler_app.ui.login import AdminLoginForm

__all__ = ["handler500", "urlpatterns"]

# The admin of a host project keeps its own face; this one is all ours.
admin.site.site_header = admin.site.site_title = gettext_lazy("Scheduler administration")
admin.site.index_title = gettext_lazy("What people set, and what the scheduler derived")
admin.site.login_form = AdminLoginForm
admin.site.index_template = admin.site.app_index_template = "scheduler/admin/index.html"

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("auth/", include(f"{settings.API_PACKAGE}.auth_urls")),
    path("api/v2/", include(f"{settings.API_PACKAGE}.urls")),
    path("metrics", metrics.show),
    path("", include("scheduler_app.ui.urls")),
]
