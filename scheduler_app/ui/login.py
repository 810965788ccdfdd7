"""Log in."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from scheduler_app.access import logins


class LoginForm(AuthenticationForm):
    """Counts failures as the API does: a password cannot be tried out here either."""

    def clean(self) -> dict[str, Any]:
        name = self.cleaned_data.get("username")
        if not name or not self.cleaned_data.get("password"):
            return super().clean()
        if logins.is_shut(self.request, name):
            raise ValidationError(_("Too many failed logins. Wait some minutes and try again."), code="too_many")
        try:
            found = super().clean()
        except ValidationError:
            logins.failed(self.request, name)
            raise
        logins.succeeded(self.request, name)
        return found


class AdminLoginForm(LoginForm, AdminAuthenticationForm):
    """The same for the door of the Django admin."""


class LoginPage(LoginView):
    template_name = "scheduler/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True
