"""The pages of assets: who makes one and who needs it, its events, and an event that a person creates."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler_app.models import Asset, AssetEvent, AssetQueuedEvent, AssetUse, Audit

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db


def make_asset(name: str) -> Asset:
    return Asset.objects.create(name=name, uri=f"s3://lake/{name}", created_at=NOW, updated_at=NOW)


@pytest.fixture
def orders() -> Asset:
    asset = make_asset("orders")
    maker = factory.make_dag("load_orders")
    user = factory.make_dag("report")
    run = factory.make_run(user, "asset__1", "success")
    AssetUse.objects.create(dag=maker, asset=asset, kind="outlet", task_id="load", created_at=NOW)
    AssetUse.objects.create(dag=user, asset=asset, kind="schedule", created_at=NOW)
    event = AssetEvent.objects.create(
        asset=asset,
        timestamp=NOW - timedelta(minutes=3),
        source_dag_id="load_orders",
        source_task_id="load",
        source_run_id="r1",
        source_map_index=-1,
        extra={"rows": 7},
    )
    event.created_dagruns.add(run)
    return asset


def body(client: Client, path: str, status: int = 200) -> str:
    response = client.get(path)
    assert response.status_code == status
    return response.content.decode()


def test_the_list_names_makers_users_and_the_last_update(admin: Client, orders: Asset) -> None:
    make_asset("untouched")
    html = body(admin, "/assets/")
    assert re.findall(r'<a class="id" href="/assets/\d+/">(\w+)</a>', html) == ["orders", "untouched"]
    row = html[html.index(">orders<") : html.index(">untouched<")]
    assert "3 min ago" in row
    assert re.findall(r'href="/dags/(\w+)/"', row) == ["load_orders", "report"]
    assert re.findall(r'<a class="id"[^>]*>(\w+)<', body(admin, "/assets/?q=ORD")) == ["orders"]
    assert "No asset matches" in body(admin, "/assets/?q=nothing")


def test_without_assets_the_list_shows_how_to_make_one(admin: Client) -> None:
    assert '@task(outlets=[Asset("orders")])' in body(admin, "/assets/")


def test_an_asset_is_drawn_between_its_neighbours_alone(admin: Client, orders: Asset) -> None:
    other = make_asset("other")
    AssetUse.objects.create(dag=factory.make_dag("stranger"), asset=other, kind="outlet", created_at=NOW)
    html = body(admin, f"/assets/{orders.pk}/")
    assert re.findall(r'data-from="([^"]+)" data-to="([^"]+)"', html) == [
        ("from:load_orders:load", "asset"),
        ("asset", "to:report:"),
    ]
    assert "stranger" not in html


def test_events_tell_whence_they_came_and_what_they_started(admin: Client, orders: Asset) -> None:
    html = body(admin, f"/assets/{orders.pk}/")
    events = html[html.index("<h2>Events</h2>") :]
    assert 'href="/dags/load_orders/runs/r1/"' in events
    assert 'href="/dags/report/runs/asset__1/"' in events
    assert "{&quot;rows&quot;: 7}" in events


def test_a_person_creates_an_event_and_is_told_whom_it_reached(admin: Client, orders: Asset) -> None:
    response = admin.post(f"/assets/{orders.pk}/event/", {"extra": '{"rows": 3}'}, follow=True)
    html = response.content.decode()
    assert "orders counts as updated; 1 DAG was told." in html
    assert "has one event of this asset that no run has used yet" in html
    assert AssetEvent.objects.latest("id").extra == {"rows": 3, "from_rest_api": True}
    assert list(AssetQueuedEvent.objects.values_list("dag_id", flat=True)) == ["report"]
    assert [row.event for row in Audit.objects.all()] == ["create_asset_event"]


@pytest.mark.parametrize("extra", ["{", "[1]"])
def test_an_extra_that_is_no_object_creates_nothing(admin: Client, orders: Asset, extra: str) -> None:
    path = f"/assets/{orders.pk}/"
    response = admin.post(f"{path}event/", {"extra": extra, "next": path}, follow=True)
    assert "The extra" in response.content.decode()
    assert AssetEvent.objects.count() == 1


def test_a_viewer_reads_but_creates_nothing(as_role: Callable[[str], Client], orders: Asset) -> None:
    client = as_role("Viewer")
    assert "/event/" not in body(client, f"/assets/{orders.pk}/")
    assert client.post(f"/assets/{orders.pk}/event/", {}).status_code == 403
    assert AssetEvent.objects.count() == 1
    stranger = as_role("")
    body(stranger, "/assets/", 403)
    body(stranger, f"/assets/{orders.pk}/", 403)


def test_an_unknown_asset_is_not_found(admin: Client) -> None:
    body(admin, "/assets/7/", 404)


def test_the_pages_ask_as_often_of_many_assets_as_of_few(admin: Client, orders: Asset) -> None:
    def counts() -> tuple[int, int]:
        found = []
        for path in ("/assets/", f"/assets/{orders.pk}/"):
            with CaptureQueriesContext(connection) as queries:
                body(admin, path)
            found.append(len(queries))
        return found[0], found[1]

    few = counts()
    for number in range(20):
        asset = make_asset(f"a{number}")
        dag = factory.make_dag(f"d{number}")
        AssetUse.objects.create(dag=dag, asset=asset, kind="outlet", task_id="load", created_at=NOW)
        AssetUse.objects.create(dag=dag, asset=orders, kind="schedule", created_at=NOW)
        AssetEvent.objects.create(asset=orders, timestamp=NOW)
    assert few == counts() == (6, 8)
