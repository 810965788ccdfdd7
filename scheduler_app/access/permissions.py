"""The table of permissions: what there is to see and do, and which role may.

A permission is a Django permission of app ``scheduler_app``; the four roles are Django groups made by migration
``0003_roles``. Administrators may make groups of their own from the same permissions.
"""

from __future__ import annotations

from typing import Final

VERBS: Final = ("view", "add", "change", "delete")

#: What ``can`` is asked about → the model whose Django permissions say so.
KINDS: Final[dict[str, str]] = {
    "dag": "dagmodel",
    "dag_version": "dagversion",
    "run": "dagrun",
    "task": "taskinstance",
    "xcom": "xcom",
    "pool": "pool",
    "limit": "limit",
    "variable": "variable",
    "connection": "connection",
    "asset": "asset",
    "asset_event": "assetevent",
    "queued_event": "assetqueuedevent",
    "import_error": "parseerror",
    "warning": "dagwarning",
    "job": "job",
    "audit": "audit",
    # no rows of their own: permissions that migration 0003 makes beside those of a model
    "config": "config",
    "provider": "provider",
}

_SEES = frozenset(
    f"view_{kind}"
    for kind in ("dag", "dag_version", "run", "task", "xcom", "asset", "asset_event", "import_error", "warning", "job")
) | {"view_pool", "view_limit", "view_queued_event", "view_provider"}
_USES = _SEES | {
    "change_dag",
    "delete_dag",
    "add_run",
    "change_run",
    "delete_run",
    "change_task",
    "delete_task",
    "add_xcom",
    "change_xcom",
    "delete_xcom",
    "add_asset_event",
    "delete_queued_event",
}
_OPERATES = (
    _USES
    | {f"{verb}_{kind}" for verb in VERBS for kind in ("pool", "limit", "variable", "connection")}
    | {"view_audit", "view_config", "change_job", "change_asset", "delete_asset"}
)

#: Role → what it may do, each the role before it and more. Admin may do everything.
ROLES: Final[dict[str, frozenset[str]]] = {
    "Viewer": frozenset(_SEES),
    "User": frozenset(_USES),
    "Op": frozenset(_OPERATES),
    "Admin": frozenset(f"{verb}_{kind}" for verb in VERBS for kind in KINDS),
}


def codename(verb: str, kind: str) -> str:
    """The Django permission that stands for a verb on a kind, as ``user.has_perm`` takes it. KeyError if unknown."""
    if verb not in VERBS:
        raise KeyError(f"unknown verb {verb!r}; known: {', '.join(VERBS)}")
    return f"scheduler_app.{verb}_{KINDS[kind]}"
