"""Who acts: a person, a task, a backfill, a command, or the scheduler by a rule of a DAG."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final


class _Everything(frozenset[str]):
    """A set of permissions that has every member."""

    def __contains__(self, item: object) -> bool:
        return True


#: The permissions of a superuser, and of our own processes.
EVERYTHING: Final[frozenset[str]] = _Everything()


@dataclass(frozen=True, slots=True)
class Actor:
    #: person | task | backfill | command | scheduler
    kind: str
    name: str
    #: Django permissions as ``scheduler_app.change_dagmodel``
    permissions: frozenset[str] = frozenset()
    #: primary key of the Django user, as text; nothing refers to the user's table
    user_id: str | None = None
    #: names of the Django groups, for the per-DAG hook
    groups: frozenset[str] = frozenset()


def of_user(user: Any) -> Actor:
    """The actor that a Django user is. An inactive or anonymous user may do nothing."""
    if not user.is_authenticated or not user.is_active:
        return Actor("person", "", frozenset())
    if user.is_superuser:
        return Actor("person", user.get_username(), EVERYTHING, str(user.pk))
    groups: Iterable[str] = user.groups.values_list("name", flat=True)
    return Actor("person", user.get_username(), frozenset(user.get_all_permissions()), str(user.pk), frozenset(groups))


def system(kind: str, name: str) -> Actor:
    """An actor of our own (a task that triggers a run, a backfill, a management command): it may do everything."""
    return Actor(kind, name, EVERYTHING)
