"""Who did it? All actions, narrowed by person, event, DAG and time; or those on one DAG."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils.translation import gettext_lazy

from scheduler_app import access
from scheduler_app.models import Audit
from scheduler_app.queries.page_slice import page_slice

from .page import Ask, page, page_number

SIZE: Final = 50
#: ``?since=`` → label and how far back
SPANS: Final = {
    "1d": (gettext_lazy("24 hours"), timedelta(days=1)),
    "7d": (gettext_lazy("7 days"), timedelta(days=7)),
    "30d": (gettext_lazy("30 days"), timedelta(days=30)),
}


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "audit")
    asked = {name: ask.request.GET.get(name, "").strip() for name in ("owner", "event", "dag", "since")}
    rows = access.audit(ask.actor)
    if asked["owner"]:
        rows = rows.filter(owner=asked["owner"])
    if asked["event"]:
        rows = rows.filter(event__icontains=asked["event"])
    if asked["dag"]:
        rows = rows.filter(dag_id=asked["dag"])
    if asked["since"] in SPANS:
        rows = rows.filter(when__gt=ask.now - SPANS[asked["since"]][1])
    context = {"section": "scheduler:audit", "asked": asked, "filtered": any(asked.values()), "spans": SPANS}
    return ask.show("audit.html", context | _page_of(ask, rows))


@page
def of_dag(ask: Ask, dag_id: str) -> HttpResponse:
    ask.need("view", "audit")
    dag = ask.dag(dag_id)
    rows = access.audit(ask.actor).filter(dag_id=dag_id)
    return ask.show("dag_audit.html", {"section": "scheduler:dags", "tab": "audit", "dag": dag, **_page_of(ask, rows)})


def _page_of(ask: Ask, rows: QuerySet[Audit]) -> dict[str, Any]:
    number = page_number(ask.request)
    found, more = page_slice(rows.order_by("-when", "-id"), number, SIZE)
    return {"rows": found, "page": number, "more": more}
