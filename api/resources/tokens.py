"""``POST /auth/token``: name and password for a token."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import logout
from django.http import HttpResponse, HttpResponseRedirect
from django.utils.http import urlencode
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app.conf import conf

from .. import auth, bodies, errors
from ..endpoint import Endpoint


class LoginBody(bodies.Body):
    username = bodies.Text(max_length=500)
    password = bodies.Text(max_length=5000)


class TokenView(Endpoint):
    """201 with a token; 401 for a wrong name or password, 429 after too many of them."""

    authentication_classes = []
    needs = {"POST": None}

    def post(self, request: Request) -> Response:
        body = bodies.read(request, LoginBody)
        user = auth.login(request._request, body["username"], body["password"])
        if user is None:
            raise errors.Problem(401, "Invalid credentials")
        return Response({"access_token": auth.issue(user, self.seconds())}, status=201)

    def seconds(self) -> int:
        return conf().token_seconds


class BrowserView(Endpoint):
    """Sends a browser to the page where people log in; ``next`` is checked there."""

    authentication_classes = []
    needs = {"GET": None}
    to: str = settings.LOGIN_URL

    def get(self, request: Request) -> HttpResponse:
        wish = request.query_params.get("next")
        where = f"{self.to}?{urlencode({'next': wish})}" if wish else self.to
        answer = HttpResponseRedirect(where)
        answer.status_code = 307
        return answer


class LogoutView(BrowserView):
    """Ends a browser's session and sends it to the page where people log in. A token goes on until it runs out."""

    def get(self, request: Request) -> HttpResponse:
        logout(request._request)
        return super().get(request)


class CliTokenView(TokenView):
    """The same for command lines, with a shorter life."""

    def seconds(self) -> int:
        return conf().cli_token_seconds
