"""Clients who are somebody, and a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client, override_settings

from scheduler_app.models import db

from . import factory


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(db, "clock", lambda: factory.NOW)
    with time_machine.travel(factory.NOW, tick=False):
        yield


@pytest.fixture
def log_folder(tmp_path: Path, settings: Any) -> Iterator[Path]:
    with override_settings(SCHEDULER={**settings.SCHEDULER, "log_folder": tmp_path}):
        yield tmp_path


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("ann", password="x"))
    return client


@pytest.fixture
def as_role(db: None) -> Callable[[str], Client]:
    """A client who has one of the four roles, or none for ""."""

    def log_in(role: str) -> Client:
        user = get_user_model().objects.create_user(f"user-{role}", password="x")
        if role:
            user.groups.add(Group.objects.get(name=role))
        client = Client()
        client.force_login(user)
        return client

    return log_in
