"""The first keys of a large table in an order that only its parts have.

The indexes for reading are partial, on finished rows, so that the scheduler's own moves do not pay for them; and they
begin with the state. No single one gives all task instances by their start, but each part (the finished ones of a
state, the few that are open) has one that does. A page is the merge of the first rows of each part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.core.exceptions import EmptyResultSet
from django.db.models import F, Q, QuerySet
from django.db.models.expressions import RawSQL

from scheduler_app.engine import states
from scheduler_app.models import db
from scheduler_app.models.run import in_states

#: first word of an order → disjoint parts that are all rows together
Parts = Mapping[str, Sequence[Q]]

_OPEN = Q(state__isnull=True) | Q(state__in=sorted(state for state in states.UNFINISHED if state))
_TASK_STATES = (*(Q(state=state) for state in sorted(state for state in states.FINISHED if state)), _OPEN)
_RUN_STATES = tuple(in_states([state]) for state in states.RUN_STATES)
#: indexes ti_by_start, ti_by_end and ti_open; the primary key and ti_mapped
TASK_INSTANCES: Final[Parts] = {
    "start_date": _TASK_STATES,
    "end_date": _TASK_STATES,
    "map_index": (Q(map_index=-1), Q(map_index__gte=0)),
}
#: index dag_run_by_start, and those of the runs that are queued or running
RUNS: Final[Parts] = {"start_date": _RUN_STATES}

#: (field of the row, descending), the last of them ``pk``
Order = Sequence[tuple[str, bool]]


def keys(rows: QuerySet[Any], parts: Sequence[Q], order: Order, window: slice) -> Any:
    """The keys of the rows of a window, as an expression for ``pk__in``."""
    merged = _merged(rows, parts, order, window.stop)
    if merged is None:
        return rows.none().values("pk")
    sql, params = merged
    sorting = ", ".join(f"c{place} {'DESC' if down else 'ASC'}" for place, (_, down) in enumerate(order))
    sql = f"SELECT c{len(order) - 1} FROM {sql} ORDER BY {sorting} LIMIT %s OFFSET %s"
    return RawSQL(sql, [*params, window.stop - window.start, window.start])


def count(rows: QuerySet[Any], parts: Sequence[Q], most: int) -> int:
    """How many rows there are, at most ``most``: each part's range is counted in its own index. One statement."""
    merged = _merged(rows.order_by(), parts, [("pk", False)], most, ordered=False)
    if merged is None:
        return 0
    sql, params = merged
    return int(db.fetch(f"SELECT count(*) FROM (SELECT 1 FROM {sql} LIMIT %s) AS counted", [*params, most])[0][0])


def _merged(
    rows: QuerySet[Any], parts: Sequence[Q], order: Order, most: int, *, ordered: bool = True
) -> tuple[str, list[Any]] | None:
    """A table with the columns of the order; each part is cut before the merge, to be read through its own index."""
    branches: list[str] = []
    params: list[Any] = []
    for part in parts:
        found = rows.filter(part)
        if ordered:
            found = found.order_by(*(F(name).desc() if down else F(name).asc() for name, down in order))
        try:
            sql, values = found.values_list(*(name for name, _ in order))[:most].query.sql_with_params()
        except EmptyResultSet:
            continue
        branches.append(f"({sql})")
        params.extend(values)
    if not branches:
        return None
    columns = ", ".join(f"c{place}" for place in range(len(order)))
    return f"({' UNION ALL '.join(branches)}) AS merged ({columns})", params
