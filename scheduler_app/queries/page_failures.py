"""What is broken right now: the tasks that failed lately, grouped by what their errors have in common."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q, QuerySet

from scheduler_app.engine import states
from scheduler_app.models import TaskInstance

#: Failures that are looked at, the newest first.
NEWEST: Final = 5_000
#: Characters of a signature.
LENGTH: Final = 160

#: What differs from one failure to the next and says nothing of its cause → what stands for it.
_MASKS: Final = (
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "…"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.+Z-]*"), "…"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "…"),
    (re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b", re.IGNORECASE), "…"),
    (re.compile(r"\d+(?:[.,]\d+)*"), "…"),
)


#: The class of an exception at the begin of a reason: its digits belong to its name ("jinja2.exceptions…").
_KIND: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*(?=:|$)")


@dataclass(frozen=True, slots=True)
class Failed:
    id: int
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    state: str
    ended: datetime
    reason: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """Failures that look alike, newest first."""

    signature: str
    members: list[Failed]

    @property
    def key(self) -> str:
        return key_of(self.signature)

    @property
    def dags(self) -> list[str]:
        return sorted({one.dag_id for one in self.members})

    @property
    def first(self) -> datetime:
        return self.members[-1].ended

    @property
    def last(self) -> datetime:
        return self.members[0].ended

    @property
    def retrying(self) -> int:
        """How many of them will be tried again by themselves."""
        return sum(1 for one in self.members if one.state == states.UP_FOR_RETRY)


def failures(visible: QuerySet[TaskInstance], since: datetime) -> list[Failed]:
    """The failed tasks, and those that wait for another try, newest first; at most :data:`NEWEST`. Two queries."""
    found: list[Failed] = []
    for asked in (Q(state=states.FAILED), Q(state=states.UP_FOR_RETRY)):
        some = visible.filter(asked, end_date__gt=since).order_by("-end_date", "-id")
        records = some.values_list(
            "id", "dag_id", "dag_run__run_id", "task_id", "map_index", "state", "end_date", "reason"
        )
        found += [Failed(*record) for record in records[:NEWEST]]
    return sorted(found, key=lambda one: (one.ended, one.id), reverse=True)[:NEWEST]


def groups(found: Iterable[Failed]) -> list[Group]:
    """By signature: the largest group first, of equal ones the one that grew last."""
    by_signature: dict[str, list[Failed]] = {}
    for one in found:
        by_signature.setdefault(signature(one.reason), []).append(one)
    made = [Group(text, members) for text, members in by_signature.items()]
    return sorted(made, key=lambda group: (-len(group.members), -group.last.timestamp(), group.signature))


def signature(reason: str | None) -> str:
    """The first line of a reason with numbers, dates, addresses and ids masked; "" when there is no reason."""
    text = next((line.strip() for line in (reason or "").splitlines() if line.strip()), "")
    kind = _KIND.match(text)
    named, rest = (kind[0], text[kind.end() :]) if kind else ("", text)
    for pattern, mask in _MASKS:
        rest = pattern.sub(mask, rest)
    return (named + rest)[:LENGTH]


def key_of(text: str) -> str:
    """A short name of a signature, for addresses."""
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


#: What an address may ask for: "hours" → how far back.
SPANS: Final = {"1": timedelta(hours=1), "24": timedelta(hours=24), "168": timedelta(days=7)}
