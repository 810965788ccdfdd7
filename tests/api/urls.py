"""The API's routes alone: pages have tests of their own."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [path("auth/", include("api.auth_urls")), path("api/v2/", include("api.urls"))]
