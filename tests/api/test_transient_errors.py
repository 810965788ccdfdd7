"""A deadlock is lost by one of two; the one that lost it tries again and nobody notices."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from api import endpoint
from scheduler_app import access
from scheduler_app.actions import pause
from scheduler_app.models import DagModel
from tests import rows
from tests.api.conftest import Http
from tests.shapes import shape


class Deadlock(Exception):
    pgcode = "40P01"


@pytest.fixture
def ada(transactional_db):
    rows.store(shape("a", "etl"))
    return Http(User.objects.create_superuser("ada"))


def losing(monkeypatch, times):
    done, real = [], pause.set_paused

    def act(*args, **kwargs):
        done.append(1)
        if len(done) <= times:
            raise OperationalError("deadlock detected") from Deadlock()
        return real(*args, **kwargs)

    monkeypatch.setattr(pause, "set_paused", act)
    return done


def test_a_lost_deadlock_is_tried_again(ada, monkeypatch):
    done = losing(monkeypatch, 2)
    answer = ada.patch("dags/etl", {"is_paused": True})
    assert (answer.status_code, answer.json()["is_paused"], len(done)) == (200, True, 3)


def test_but_not_for_ever(ada, monkeypatch):
    done = losing(monkeypatch, 99)
    answer = ada.patch("dags/etl", {"is_paused": True})
    assert (answer.status_code, len(done)) == (503, 3)
    assert answer.json() == {"detail": "The database does not answer; try again."}


def test_what_is_tried_again_is_allowed_first(transactional_db, monkeypatch):
    """The error may come before anybody has asked who it is."""
    rows.store(shape("a", "etl"))
    failures, real = [1], access.can

    def can(*args):
        if failures:
            failures.pop()
            raise OperationalError("server closed the connection") from Deadlock()
        return real(*args)

    monkeypatch.setattr(endpoint.access, "can", can)
    nobody = Http(User.objects.create_user("eve"))
    answer = nobody.patch("dags/etl", {"is_paused": True})
    assert (answer.status_code, failures) == (403, [])
    assert DagModel.objects.get(pk="etl").is_paused is False
