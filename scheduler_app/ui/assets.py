"""Who makes it, who needs it? The list of assets, and one asset with its neighbours and its events."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler_app import access
from scheduler_app.actions import assets as actions
from scheduler_app.actions.errors import Invalid
from scheduler_app.models import Asset, AssetQueuedEvent
from scheduler_app.queries import page_assets
from scheduler_app.queries.page_assets import Neighbour, Neighbours

from . import layout
from .page import Ask, deed, page, page_number

LONGEST_LABEL = 36
NODE_HEIGHT = 38.0


@dataclass(frozen=True, slots=True)
class Node:
    box: layout.Box
    label: str
    sub: str
    url: str


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "asset")
    text = ask.request.GET.get("q", "")
    result = page_assets.asset_page(access.assets(ask.actor), text, page_number(ask.request))
    return ask.show("assets.html", {"section": "scheduler:assets", "result": result, "q": text})


@page
def one(ask: Ask, asset_id: int) -> HttpResponse:
    asset = _find(ask, asset_id)
    number = page_number(ask.request)
    around = page_assets.neighbours(asset, access.dags(ask.actor))
    nodes, wires, size = picture(asset, around)
    events, more = (
        page_assets.events(asset, access.asset_events(ask.actor), number)
        if ask.can("view", "asset_event")
        else ([], False)
    )
    waits = page_assets.waiting(asset, access.queued_events(ask.actor)) if ask.can("view", "queued_event") else []
    return ask.show(
        "asset.html",
        {
            "section": "scheduler:assets",
            "asset": asset,
            "around": around,
            "nodes": nodes,
            "wires": wires,
            "size": size,
            "events": events,
            "page": number,
            "more": more,
            "waiting": waits,
        },
    )


@deed
def create_event(ask: Ask, asset_id: int) -> HttpResponse:
    asset = _find(ask, asset_id)
    asked = ask.request.POST
    event = actions.create_event(
        ask.actor,
        asset_id,
        ask.now,
        extra=_extra(asked.get("extra", "")),
        partition_key=asked.get("partition_key", "").strip() or None,
    )
    told = AssetQueuedEvent.objects.filter(event=event).count()
    messages.success(
        ask.request,
        ngettext(
            "%(asset)s counts as updated; %(n)s DAG was told.",
            "%(asset)s counts as updated; %(n)s DAGs were told.",
            told,
        )
        % {"asset": asset.name, "n": told},
    )
    return redirect("scheduler:asset", asset_id=asset_id)


def _find(ask: Ask, asset_id: int) -> Asset:
    ask.need("view", "asset")
    found = access.assets(ask.actor).prefetch_related(None).filter(pk=asset_id).first()
    if found is None:
        raise Http404(_("There is no asset %(id)s.") % {"id": asset_id})
    return found


def _extra(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Invalid("extra", _("The extra is no JSON: %(error)s") % {"error": error}) from error
    if not isinstance(value, dict):
        raise Invalid("extra", _("The extra must be a JSON object, as %(example)s.") % {"example": '{"rows": 3}'})
    return value


def picture(asset: Asset, around: Neighbours) -> tuple[list[Node], tuple[layout.Wire, ...], tuple[float, float]]:
    """Makers on the left, the asset, those who need it on the right: nodes, wires and the picture's size."""
    middle = "asset"
    shown: dict[str, tuple[str, str, str]] = {middle: (asset.name, _("asset"), "")}
    edges: list[tuple[str, str]] = []
    for side, found in (("from", around.producers), ("to", around.consumers), ("reads", around.readers)):
        for other in found:
            ident = f"{side}:{other.dag_id}:{other.task_id}"
            shown[ident] = _words(other, side)
            edges.append((ident, middle) if side == "from" else (middle, ident))
    sizes = {ident: (_width(label, sub), NODE_HEIGHT) for ident, (label, sub, _url) in shown.items()}
    drawn = layout.arrange(sizes, dict.fromkeys(sizes), edges)
    nodes = [Node(box, _short(shown[box.id][0]), _short(shown[box.id][1]), shown[box.id][2]) for box in drawn.boxes]
    return nodes, drawn.wires, (drawn.width, drawn.height)


def _words(other: Neighbour, side: str) -> tuple[str, str, str]:
    """Label, second line and address of a neighbour."""
    if side == "to":
        return other.dag_id, _("runs when it is updated"), reverse("scheduler:dag", args=[other.dag_id])
    sub = f"{other.task_id} · {_('reads it')}" if side == "reads" else other.task_id or _("makes it")
    return other.dag_id, sub, reverse("scheduler:graph", args=[other.dag_id])


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"


def _width(label: str, sub: str) -> float:
    return 30.0 + 6.9 * max(len(_short(label)), len(_short(sub)) * 0.86)
