"""Log in."""

from __future__ import annotations

from django.contrib.auth.views import LoginView


class LoginPage(LoginView):
    template_name = "scheduler/login.html"
    redirect_authenticated_user = True
