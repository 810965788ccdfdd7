"""Who did it: narrowed by person, event, DAG and time."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client

from scheduler_app.models import Audit

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db

ROWS = (
    ("ann", "trigger_dag_run", "sales", timedelta(minutes=1)),
    ("bob", "clear_dag_run", "sales", timedelta(days=2)),
    ("bob", "post_clear_task_instances", "stock", timedelta(days=20)),
    ("bob", "patch_pool", None, timedelta(days=90)),
)


@pytest.fixture(autouse=True)
def _rows(db: None) -> None:
    for owner, event, dag_id, ago in ROWS:
        Audit.objects.create(when=NOW - ago, event=event, owner=owner, dag_id=dag_id)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, [0, 1, 2, 3]),
        ({"owner": "bob"}, [1, 2, 3]),
        ({"event": "Clear"}, [1, 2]),
        ({"dag": "sales"}, [0, 1]),
        ({"since": "1d"}, [0]),
        ({"since": "7d"}, [0, 1]),
        ({"since": "30d"}, [0, 1, 2]),
        ({"since": "ever"}, [0, 1, 2, 3]),
        ({"owner": "bob", "event": "clear", "since": "7d"}, [1]),
    ],
)
def test_the_filters_narrow_together(admin: Client, asked: dict[str, str], found: list[int]) -> None:
    html = admin.get("/audit/", asked).content.decode()
    assert re.findall(r'<td class="mono nobreak">(\w+)', html) == [ROWS[number][1] for number in found]


def test_the_other_filters_stay_when_the_time_is_chosen(admin: Client) -> None:
    html = admin.get("/audit/", {"owner": "bob", "page": "2"}).content.decode()
    assert 'href="?owner=bob&amp;since=7d"' in html


def test_no_match_says_how_to_get_out(admin: Client) -> None:
    html = admin.get("/audit/", {"owner": "nobody"}).content.decode()
    assert "No action matches" in html
    Audit.objects.all().delete()
    factory.make_job()
    assert "Nobody changed anything yet" in admin.get("/audit/").content.decode()
