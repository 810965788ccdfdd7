"""How a task's priority weight comes about: three named rules, or a strategy class of the author."""

from __future__ import annotations

import importlib
from typing import Any

from scheduler_app.sdk.nearest import did_you_mean
from scheduler_app.sdk.states import WeightRule


class PriorityWeightStrategy:
    """Base of an author's own rule: :meth:`get_weight` gives the weight of a task instance."""

    def get_weight(self, ti: Any) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no get_weight(self, ti): define it.")

    def serialize(self) -> dict[str, Any]:
        return {}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> PriorityWeightStrategy:
        return cls(**data)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.serialize() == other.serialize()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(type(self))


def read_weight_rule(rule: Any, task_id: str) -> WeightRule | PriorityWeightStrategy:
    """A named rule, a strategy, its class, or the dotted name of its class. Raises ValueError."""
    if isinstance(rule, (WeightRule, PriorityWeightStrategy)):
        return rule
    if isinstance(rule, type) and issubclass(rule, PriorityWeightStrategy):
        return rule()
    if isinstance(rule, str):
        if rule in WeightRule.all_weight_rules():
            return WeightRule(rule)
        found = _import(rule)
        if found is not None:
            return found()
    hint = did_you_mean(str(rule), WeightRule.all_weight_rules())
    raise ValueError(
        f"Task {task_id!r} has the unknown weight_rule {rule!r}.{hint} It is downstream, upstream, absolute, "
        "or a PriorityWeightStrategy (the class, an instance, or its dotted name)."
    )


def _import(path: str) -> type[PriorityWeightStrategy] | None:
    module, _, name = path.rpartition(".")
    if not module:
        return None
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None
    return found if isinstance(found, type) and issubclass(found, PriorityWeightStrategy) else None


class FirstTry:
    """The task instance that a strategy sees when the DAG file is read: no run yet, no try yet."""

    def __init__(self, task: Any) -> None:
        self.task, self.task_id = task, task.task_id
        self.dag_id = task.dag_id
        self.try_number, self.max_tries, self.map_index = 0, task.retries, -1
        self.priority_weight, self.pool, self.queue = task.priority_weight, task.pool, task.queue
        self.dag_run = self.run_id = self.logical_date = None
