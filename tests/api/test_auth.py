"""Tokens, Basic, the session with its CSRF token, and what happens to somebody who guesses passwords."""

from __future__ import annotations

import base64

import jwt
import pytest
from django.test import Client

from api import auth


def login(client, password, path="/auth/token"):
    return client.post(path, {"username": "ada", "password": password}, content_type="application/json")


def get(token):
    return Client().get("/api/v2/dags", headers={"Authorization": f"Bearer {token}"})


@pytest.mark.parametrize("path", ["/auth/token", "/auth/token/cli"])
def test_name_and_password_give_a_token_that_opens_the_api(admin, path):
    answer = login(Client(), "secret-of-ada", path)
    assert answer.status_code == 201
    assert get(answer.json()["access_token"]).status_code == 200


def test_a_wrong_password_is_401_and_a_body_without_one_422(admin):
    answer = login(Client(), "guess")
    assert (answer.status_code, answer.json()) == (401, {"detail": "Invalid credentials"})
    missing = Client().post("/auth/token", {"username": "ada"}, content_type="application/json")
    assert missing.status_code == 422
    assert missing.json()["detail"][0]["loc"] == ["body", "password"]


def test_guessing_is_stopped_for_that_name_and_address_alone(admin, settings):
    settings.SCHEDULER = {**settings.SCHEDULER, "login_failures": 3}
    client = Client()
    assert [login(client, "guess").status_code for _ in range(5)] == [401, 401, 401, 429, 429]
    late = login(client, "secret-of-ada")
    assert late.status_code == 429
    assert int(late.headers["Retry-After"]) > 0
    assert login(Client(REMOTE_ADDR="10.0.0.9"), "secret-of-ada").status_code == 201


@pytest.mark.parametrize(
    "token",
    ["", "x", "a.b.c", jwt.encode({"sub": "1", "aud": auth.AUDIENCE}, "k" * 40, algorithm="HS256")],
)
def test_a_token_that_is_not_ours_is_refused(db, token):
    assert get(token).status_code == 401


def test_a_token_ends_with_its_time_its_password_and_its_user(admin):
    assert get(auth.issue(admin, -1)).status_code == 401
    token = auth.issue(admin, 60)
    assert get(token).status_code == 200
    admin.set_password("another")
    admin.save()
    assert get(token).status_code == 401
    token = auth.issue(admin, 60)
    admin.is_active = False
    admin.save()
    assert get(token).status_code == 401


def test_basic_works_only_where_the_setting_allows_it(admin, settings):
    header = {"Authorization": "Basic " + base64.b64encode(b"ada:secret-of-ada").decode()}
    assert Client().get("/api/v2/dags", headers=header).status_code == 401
    settings.SCHEDULER = {**settings.SCHEDULER, "basic_auth": True}
    assert Client().get("/api/v2/dags", headers=header).status_code == 200
    wrong = {"Authorization": "Basic " + base64.b64encode(b"ada:no").decode()}
    assert Client().get("/api/v2/dags", headers=wrong).status_code == 401


def test_a_session_reads_freely_and_writes_with_a_csrf_token_only(admin, etl):
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin)
    assert client.get("/api/v2/dags").status_code == 200
    refused = client.patch("/api/v2/dags/etl", {"is_paused": True}, content_type="application/json")
    assert refused.status_code == 403
    from django.middleware.csrf import _get_new_csrf_string

    secret = _get_new_csrf_string()
    from django.conf import settings

    client.cookies[settings.CSRF_COOKIE_NAME] = secret
    allowed = client.patch(
        "/api/v2/dags/etl", {"is_paused": True}, content_type="application/json", headers={"X-CSRFToken": secret}
    )
    assert allowed.status_code == 200


def test_a_browser_is_sent_to_the_login_page(db):
    answer = Client().get("/api/v2/auth/login?next=/dags/a b")
    assert (answer.status_code, answer.headers["Location"]) == (307, "/login/?next=%2Fdags%2Fa+b")
