"""Keyed limits that tasks name: made from the numbers in a file, unless a person or another DAG has the say."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from django.db.models import Q

from scheduler_app.engine.wording import counted
from scheduler_app.models import DagModel, Limit, db

Json = Any


class Number(NamedTuple):
    amount: int
    per_seconds: float | None

    def __str__(self) -> str:
        if self.per_seconds is None:
            return f"{self.amount} at once"
        return f"{counted(self.amount, 'start')} in {self.per_seconds:g} s"


def declare(row: DagModel, document: Json) -> list[str]:
    """Makes or renews the limits of a stored DAG; one sentence for each that its author should know about."""
    tasks_of: dict[str, list[str]] = defaultdict(list)
    numbers: dict[str, set[Number]] = defaultdict(set)
    for task in document.get("tasks", ()):
        for one in task.get("limits", ()):
            tasks_of[one["name"]].append(task["task_id"])
            if "amount" in one:
                numbers[one["name"]].add(Number(one["amount"], one.get("per_seconds")))
    if not tasks_of:
        return []
    wanted = {name: min(given, key=lambda n: (n.amount, n.per_seconds or 0.0)) for name, given in numbers.items()}
    if _write(row, wanted):
        db.notify()
    known = {limit.name: limit for limit in Limit.objects.filter(name__in=list(tasks_of))}
    found = [_contradiction(name, given, wanted[name]) for name, given in numbers.items() if len(given) > 1]
    for name, task_ids in tasks_of.items():
        if name not in known:
            found.append(
                f"There is no limit {name!r}, which {', '.join(sorted(task_ids))} need: create it, or give its number"
                " in the file, or they wait for ever."
            )
        elif name in wanted and Number(known[name].amount, known[name].per_seconds) != wanted[name]:
            found.append(_overruled(known[name], wanted[name]))
    return sorted(found)


def _write(row: DagModel, wanted: dict[str, Number]) -> int:
    """Inserts what is missing; changes what this DAG, or one that is gone, declared. How many rows changed."""
    if not wanted:
        return 0
    before = set(Limit.objects.filter(name__in=list(wanted)).values_list("name", flat=True))
    made = [
        Limit(name=name, amount=number.amount, per_seconds=number.per_seconds, declared_by=row.pk)
        for name, number in sorted(wanted.items())
        if name not in before
    ]
    Limit.objects.bulk_create(made, ignore_conflicts=True)
    alive = DagModel.objects.active().values("dag_id")
    mine = Q(declared_by=row.pk) | Q(declared_by__isnull=False) & ~Q(declared_by__in=alive)
    changed = 0
    for name, (amount, per_seconds) in sorted(wanted.items()):
        same = Q(amount=amount, declared_by=row.pk) & (
            Q(per_seconds=per_seconds) if per_seconds is not None else Q(per_seconds__isnull=True)
        )
        others = Limit.objects.filter(mine, name=name).exclude(same)
        changed += others.update(amount=amount, per_seconds=per_seconds, declared_by=row.pk)
    return len(made) + changed


def _contradiction(name: str, given: set[Number], used: Number) -> str:
    return f"Limit {name!r} has {len(given)} different numbers in this DAG: {used} is used. Give it once."


def _overruled(limit: Limit, wanted: Number) -> str:
    whose = "as another DAG's file says" if limit.declared_by else "as somebody set it"
    in_force = Number(limit.amount, limit.per_seconds)
    return f"Limit {limit.name!r} is {in_force}, {whose}: the {wanted} of this file is not used."
