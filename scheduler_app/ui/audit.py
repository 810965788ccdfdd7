"""Who did it?"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse

from scheduler_app import access
from scheduler_app.models import Audit

from .page import Ask, page, page_number

SIZE = 50


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "audit")
    rows = access.audit(ask.actor)
    owner = ask.request.GET.get("owner", "").strip()
    if owner:
        rows = rows.filter(owner=owner)
    return ask.show("audit.html", {"section": "scheduler:audit", "owner": owner, **_page_of(ask, rows)})


@page
def of_dag(ask: Ask, dag_id: str) -> HttpResponse:
    ask.need("view", "audit")
    dag = ask.dag(dag_id)
    rows = access.audit(ask.actor).filter(dag_id=dag_id)
    return ask.show("dag_audit.html", {"section": "scheduler:dags", "tab": "audit", "dag": dag, **_page_of(ask, rows)})


def _page_of(ask: Ask, rows: QuerySet[Audit]) -> dict[str, Any]:
    number = page_number(ask.request)
    start = (number - 1) * SIZE
    found = list(rows.order_by("-when", "-id")[start : start + SIZE + 1])
    return {"rows": found[:SIZE], "page": number, "more": len(found) > SIZE}
