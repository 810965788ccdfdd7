"""Who may see and do what: :class:`Actor`, :func:`can`, and the scoped QuerySets."""

from .actor import EVERYTHING, Actor, of_user, system
from .permissions import KINDS, ROLES, VERBS, codename
from .scope import (
    asset_events,
    assets,
    audit,
    callbacks,
    can,
    dags,
    history,
    import_errors,
    jobs,
    queued_events,
    runs,
    task_instances,
    versions,
    warnings,
    xcoms,
)

__all__ = [
    "EVERYTHING",
    "KINDS",
    "ROLES",
    "VERBS",
    "Actor",
    "asset_events",
    "assets",
    "audit",
    "callbacks",
    "can",
    "codename",
    "dags",
    "history",
    "import_errors",
    "jobs",
    "of_user",
    "queued_events",
    "runs",
    "system",
    "task_instances",
    "versions",
    "warnings",
    "xcoms",
]
