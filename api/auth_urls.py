"""Routes below ``/auth``: where a client gets its token."""

from __future__ import annotations

from django.urls import path

from .resources.tokens import CliTokenView, TokenView

urlpatterns = [
    path("token", TokenView.as_view()),
    path("token/cli", CliTokenView.as_view()),
]
