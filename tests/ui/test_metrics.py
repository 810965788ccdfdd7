"""``/metrics`` is for a token or for a person who may see jobs."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.test import Client, override_settings

pytestmark = pytest.mark.django_db


def with_token(text: str) -> override_settings:
    return override_settings(SCHEDULER={**settings.SCHEDULER, "metrics_token": text})


def test_a_stranger_gets_no_numbers(client: Client) -> None:
    assert client.get("/metrics").status_code == 401
    with with_token("right"):
        assert client.get("/metrics", headers={"authorization": "Bearer wrong"}).status_code == 401


def test_an_empty_token_lets_nobody_in(client: Client) -> None:
    with with_token(""):
        assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 401


def test_the_token_and_a_viewer_see_the_scheduler(client: Client) -> None:
    with with_token("right"):
        answer = client.get("/metrics", headers={"authorization": "Bearer right"})
    assert answer.status_code == 200
    assert "scheduler_loop_duration_seconds" in answer.content.decode()
    viewer = User.objects.create_user("vera", password="x")
    viewer.groups.add(Group.objects.get(name="Viewer"))
    client.force_login(viewer)
    assert client.get("/metrics").status_code == 200


def test_a_user_without_any_role_is_refused(client: Client) -> None:
    client.force_login(User.objects.create_user("nora", password="x"))
    assert client.get("/metrics").status_code == 403
