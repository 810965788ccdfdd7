"""How a request says who it is: a token (Bearer), name and password (Basic, by setting), or the browser's session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from django.conf import settings
from django.contrib.auth import authenticate, get_user_model
from django.utils.crypto import salted_hmac
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from scheduler_app.access import logins
from scheduler_app.conf import conf

ALGORITHM = "HS256"
AUDIENCE = "scheduler-api"


def issue(user: Any, seconds: int) -> str:
    """A token that says who the user is for so many seconds; a new password ends it at once."""
    now = datetime.now(UTC)
    claims = {
        "sub": str(user.pk),
        "aud": AUDIENCE,
        "iat": now,
        "exp": now + timedelta(seconds=seconds),
        "pwd": _fingerprint(user),
    }
    return jwt.encode(claims, _key(), algorithm=ALGORITHM)


def login(request: Any, username: str, password: str) -> Any:
    """The user with this name and password, None when there is none. Raises Throttled after too many failures."""
    if logins.is_shut(request, username):
        raise exceptions.Throttled(wait=conf().login_failure_seconds, detail=logins.TOO_MANY)
    user = authenticate(request, username=username, password=password)
    if user is None:
        logins.failed(request, username)
    else:
        logins.succeeded(request, username)
    return user


class Bearer(authentication.BaseAuthentication):
    """``Authorization: Bearer <token of POST /auth/token>``."""

    def authenticate(self, request: Request) -> tuple[Any, str] | None:
        scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        try:
            claims = jwt.decode(token.strip(), _key(), algorithms=[ALGORITHM], audience=AUDIENCE)
            user = get_user_model()._default_manager.get(pk=claims["sub"])
        except jwt.ExpiredSignatureError as error:
            raise exceptions.AuthenticationFailed("Token Expired") from error
        except (jwt.InvalidTokenError, get_user_model().DoesNotExist, ValueError, KeyError, UnicodeError) as error:
            raise exceptions.AuthenticationFailed("Invalid Auth Token") from error
        if not user.is_active or claims.get("pwd") != _fingerprint(user):
            raise exceptions.AuthenticationFailed("Invalid Auth Token")
        return user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class Basic(authentication.BasicAuthentication):
    """Name and password with each request, where the setting ``basic_auth`` allows it."""

    def authenticate(self, request: Request) -> Any:
        return super().authenticate(request) if conf().basic_auth else None

    def authenticate_credentials(self, userid: str, password: str, request: Any = None) -> tuple[Any, None]:
        user = login(request, userid, password)
        if user is None or not user.is_active:
            raise exceptions.AuthenticationFailed("Invalid credentials")
        return user, None


#: The session of the dashboard; DRF asks it for the CSRF token with every write.
Session = authentication.SessionAuthentication


def _key() -> bytes:
    return salted_hmac("scheduler.api.token", "key", secret=settings.SECRET_KEY, algorithm="sha256").digest()


def _fingerprint(user: Any) -> str:
    return salted_hmac("scheduler.api.password", user.password, algorithm="sha256").hexdigest()[:16]
