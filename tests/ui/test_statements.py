"""Every page and every part of the table of routes costs the same number of statements, however many rows there are."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler_app.models import DagModel
from scheduler_app.ui import urls

from . import factory
from .test_pages import fill

pytestmark = pytest.mark.django_db

IDS = {"dag_id": "dag_000", "run_id": "r0", "task_id": "check", "map_index": "0", "key": "nope"}
#: answered with what differs by nature: a file, and whether a process is alive
OTHERS = {"log_download", "callback_log", "healthz", "logout", "live"}


def addresses() -> dict[str, str]:
    found = {}
    for pattern in urls.urlpatterns:
        route = str(pattern.pattern)
        for name, converter in pattern.pattern.converters.items():
            kind = "int" if type(converter).__name__ == "IntConverter" else "str"
            route = route.replace(f"<{kind}:{name}>", IDS.get(name, "1"))
        if pattern.name not in OTHERS:
            found[pattern.name] = f"/{route}"
    return found


def costs(client: Client) -> dict[str, int]:
    found = {}
    for name, path in addresses().items():
        if client.get(path).status_code == 405:  # it is only posted to
            continue
        with CaptureQueriesContext(connection) as caught:
            client.get(path)
        found[name] = len(caught)
    return found


def test_BC_115_no_page_asks_more_where_there_is_more(admin: Client) -> None:
    factory.make_job()
    fill(2, 2)
    few = costs(admin)
    DagModel.objects.all().delete()
    fill(20, 20)
    many = costs(admin)
    assert many == few
    assert len(few) > 20
    assert max(few.values()) <= 20


@pytest.mark.parametrize("page", ["dags", "run:dag_000/r0"])
def test_a_poll_without_a_change_is_one_statement_beside_the_session(admin: Client, page: str) -> None:
    fill(3, 3)
    token = admin.get(f"/live/?page={page}").json()["v"]
    with CaptureQueriesContext(connection) as caught:
        assert admin.get(f"/live/?page={page}&token={token}").status_code == 204
    assert len(caught) == 3
