"""Bulk requests: a list of create, update and delete actions on one kind of thing, answered action by action.

An action that fails (a name that exists, one that does not) changes nothing and says so in ``errors``; the others
are done. What an actor may not do fails the whole request, and then nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from scheduler_app.access import Actor
from scheduler_app.actions.errors import ActionError, Conflict, Forbidden, Missing, Refused
from scheduler_app.models import db

from . import bodies, errors

#: Entities of one action.
MOST = 1000


@dataclass(frozen=True, slots=True)
class Kind:
    """What a bulk request is about. The functions get entities that were checked against ``body``."""

    body: type[bodies.Body]
    name_of: Callable[[dict[str, Any]], str]
    #: of these entities, the names that exist and that the actor may see
    existing: Callable[[Actor, list[dict[str, Any]]], set[str]]
    create: Callable[[Actor, dict[str, Any], datetime], object] | None
    update: Callable[[Actor, list[dict[str, Any]], datetime], object]
    delete: Callable[[Actor, list[dict[str, Any]], datetime], object]
    #: an entity of a delete may be its name alone: what is then its body
    from_name: Callable[[str], dict[str, Any]]


def one_by_one(
    act: Callable[[Actor, dict[str, Any], datetime], object],
) -> Callable[[Actor, list[dict[str, Any]], datetime], object]:
    """For a kind whose things are changed singly."""

    def each(actor: Actor, entities: list[dict[str, Any]], now: datetime) -> None:
        for entity in entities:
            act(actor, entity, now)

    return each


class ActionBody(bodies.Body):
    action = serializers.ChoiceField(["create", "update", "delete"])
    entities = serializers.ListField(child=serializers.JSONField(), max_length=MOST)
    action_on_existence = serializers.ChoiceField(["fail", "skip", "overwrite"], default="fail")
    action_on_non_existence = serializers.ChoiceField(["fail", "skip"], default="fail")
    update_mask = serializers.ListField(child=bodies.Text(), required=False, allow_null=True)


class BulkBody(bodies.Body):
    actions = serializers.ListField(child=serializers.JSONField(), max_length=MOST)


def perform(actor: Actor, request: Request, kind: Kind, now: datetime) -> dict[str, Any]:
    """Does a bulk request and returns its answer. Raises NotValid, Forbidden."""
    actions = [bodies.check(item, ActionBody) for item in bodies.read(request, BulkBody)["actions"]]
    checked = [(action, _entities(action, kind)) for action in actions]
    answer: dict[str, Any] = {"create": None, "update": None, "delete": None}
    with db.atomic():
        for action, entities in checked:
            said = answer[action["action"]] = answer[action["action"]] or {"success": [], "errors": []}
            try:
                with db.atomic():
                    done = _DO[action["action"]](actor, action, entities, kind, now)
            except Forbidden:
                raise
            except ActionError as error:
                said["errors"].append({"error": str(error), "status_code": errors.status_of(error)})
            else:
                said["success"] += done
    return answer


def _entities(action: dict[str, Any], kind: Kind) -> list[dict[str, Any]]:
    found = []
    for item in action["entities"]:
        if isinstance(item, str) and action["action"] == "delete":
            found.append(kind.from_name(item))
        else:
            entity = bodies.check(item, kind.body)
            mask = action.get("update_mask") if action["action"] == "update" else None
            found.append(entity if mask is None else _masked(entity, mask, kind))
    return found


def _masked(entity: dict[str, Any], mask: Iterable[str], kind: Kind) -> dict[str, Any]:
    named = kind.from_name(kind.name_of(entity))
    return {key: value for key, value in entity.items() if key in set(mask) or key in named}


def _create(
    actor: Actor, action: dict[str, Any], entities: list[dict[str, Any]], kind: Kind, now: datetime
) -> list[str]:
    if kind.create is None:
        raise Refused("These cannot be created in bulk.")
    there = kind.existing(actor, entities)
    if there and action["action_on_existence"] == "fail":
        raise Conflict(f"These exist already: {', '.join(sorted(there))}")
    done = []
    for entity in entities:
        name = kind.name_of(entity)
        if name not in there:
            kind.create(actor, entity, now)
        elif action["action_on_existence"] == "overwrite":
            kind.update(actor, [entity], now)
        else:
            continue
        done.append(name)
    return done


def _known(actor: Actor, action: dict[str, Any], entities: list[dict[str, Any]], kind: Kind) -> list[dict[str, Any]]:
    there = kind.existing(actor, entities)
    lost = {kind.name_of(entity) for entity in entities} - there
    if lost and action["action_on_non_existence"] == "fail":
        raise Missing(f"These do not exist: {', '.join(sorted(lost))}")
    return [entity for entity in entities if kind.name_of(entity) in there]


def _update(
    actor: Actor, action: dict[str, Any], entities: list[dict[str, Any]], kind: Kind, now: datetime
) -> list[str]:
    known = _known(actor, action, entities, kind)
    kind.update(actor, known, now)
    return [kind.name_of(entity) for entity in known]


def _delete(
    actor: Actor, action: dict[str, Any], entities: list[dict[str, Any]], kind: Kind, now: datetime
) -> list[str]:
    known = _known(actor, action, entities, kind)
    kind.delete(actor, known, now)
    return [kind.name_of(entity) for entity in known]


_DO = {"create": _create, "update": _update, "delete": _delete}
