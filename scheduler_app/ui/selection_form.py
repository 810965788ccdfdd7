"""What a clear or a mark is about, read from the address: one task instance or a run, and how far around it.

The same reading makes the preview (GET) and the deed (POST), and the deed carries the ids that the preview showed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduler_app.actions.errors import Invalid
from scheduler_app.actions.selection import Wanted
from scheduler_app.engine import states
from scheduler_app.models import TaskInstance

#: Toggle → label; those of a task, then those of a whole run.
TASK_TOGGLES: Final = (
    ("upstream", gettext_lazy("Upstream tasks too")),
    ("downstream", gettext_lazy("Downstream tasks too")),
    ("past", gettext_lazy("In earlier runs too")),
    ("future", gettext_lazy("In later runs too")),
    ("only_failed", gettext_lazy("Only failed ones")),
)
RUN_TOGGLES: Final = (("only_failed", gettext_lazy("Only failed ones")),)
#: Rows that a preview names one by one; the rest it counts.
NAMED: Final = 200


@dataclass(frozen=True, slots=True)
class Preview:
    """Exactly the task instances that a deed will change."""

    rows: list[TaskInstance]

    @property
    def ids(self) -> str:
        return ",".join(str(row.pk) for row in self.rows)

    @property
    def running(self) -> int:
        return sum(row.state in states.WITH_PROCESS for row in self.rows)

    @property
    def more(self) -> int:
        return max(0, len(self.rows) - NAMED)

    @property
    def groups(self) -> list[tuple[str, list[TaskInstance]]]:
        """The first rows by the id of their run, the oldest run first."""
        found: dict[str, list[TaskInstance]] = {}
        for row in sorted(self.rows, key=lambda one: (one.dag_run.run_after, one.dag_run_id))[:NAMED]:
            found.setdefault(row.dag_run.run_id, []).append(row)
        return list(found.items())


def wanted(dag_id: str, asked: Mapping[str, Any], toggles: Iterable[str]) -> Wanted:
    """Reads ``run``, ``task``, ``map`` and the toggles that are on. Raises Invalid."""
    if not asked.get("run"):
        raise Invalid("run", _("Say which run."))
    task, index = asked.get("task", ""), asked.get("map", "")
    if index and not index.isdecimal():
        raise Invalid("map", _("The map index must be a number."))
    chosen: str | tuple[str, int] = (task, int(index)) if index else task
    around = {name: True for name in toggles if asked.get(name)}
    return Wanted(dag_id, tasks=[chosen] if task else None, runs=[asked["run"]], **around)


def expected(asked: Mapping[str, Any]) -> list[int]:
    """The ids that the preview showed. Raises Invalid."""
    try:
        return [int(text) for text in asked.get("expect", "").split(",") if text]
    except ValueError as error:
        raise Invalid("expect", _("The list of task instances is broken: open the preview again.")) from error
