"""Variables: texts that tasks ask for by key, encrypted at rest. Their values never reach the audit."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app import secrets
from scheduler_app.access import Actor
from scheduler_app.models import DagFile, Variable, db

from . import journal, permit
from .errors import Conflict, Invalid, Missing


def create(actor: Actor, key: str, value: str, now: datetime, *, description: str | None = None) -> Variable:
    """A new variable. Raises Conflict when the key is taken, Forbidden, Invalid."""
    permit.require(actor, "add", "variable")
    if not key.strip():
        raise Invalid("key", "A variable needs a key.")
    with db.atomic():
        variable, created = Variable.objects.get_or_create(
            key=key, defaults={"value_encrypted": secrets.encrypt(value), "description": description}
        )
        if not created:
            raise Conflict(f"The Variable with key: `{key}` already exists")
        DagFile.objects.read_again(f"variable:{key}", now)
        journal.record(actor, "post_variable", now, after=_facts(variable))
    return variable


def change(actor: Actor, key: str, now: datetime, **fields: Any) -> Variable:
    """Sets ``value`` (text) and/or ``description``. Raises Missing, Forbidden."""
    permit.require(actor, "change", "variable")
    with db.atomic():
        variable = _locked(key)
        before = _facts(variable)
        if "value" in fields:
            variable.value_encrypted = secrets.encrypt(fields["value"])
            DagFile.objects.read_again(f"variable:{key}", now)
        if "description" in fields:
            variable.description = fields["description"]
        variable.save()
        journal.record(
            actor, "patch_variable", now, before=before, after=_facts(variable) | {"value_changed": "value" in fields}
        )
    return variable


def delete(actor: Actor, key: str, now: datetime) -> None:
    """Raises Missing, Forbidden."""
    permit.require(actor, "delete", "variable")
    with db.atomic():
        variable = _locked(key)
        journal.record(actor, "delete_variable", now, before=_facts(variable))
        variable.delete()
        DagFile.objects.read_again(f"variable:{key}", now)


def _locked(key: str) -> Variable:
    variable = Variable.objects.filter(key=key).select_for_update(no_key=True).first()
    if variable is None:
        raise Missing(f"The Variable with key: `{key}` was not found")
    return variable


def _facts(variable: Variable) -> dict[str, Any]:
    return {"key": variable.key, "description": variable.description}
