"""How many rows there are, without reading them all.

Counting a million index entries takes longer than finding and writing the page that the number stands above. So rows
are counted one by one up to :data:`EXACT`; beyond it the planner's estimate answers, which for a whole table is within
a few percent (docs/adr/0047).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from django.db.models import Q, QuerySet

from scheduler_app.models import db

from . import merged

#: Up to here a total is exact; the count costs about 10 ms.
EXACT: Final = 100_000


class Total(NamedTuple):
    rows: int
    exact: bool


def total(rows: QuerySet[Any], parts: Sequence[Q] | None, exact: int) -> Total:
    """One statement, two when there are more than ``exact`` rows; an estimate is never below ``exact`` + 1.

    With ``parts`` the rows are counted part by part (``queries.merged``).
    """
    most = exact + 1
    found = rows.order_by()[:most].count() if parts is None else merged.count(rows, parts, most)
    if found <= exact:
        return Total(found, exact=True)
    return Total(max(_estimate(rows), found), exact=False)


def _estimate(rows: QuerySet[Any]) -> int:
    """What the planner expects; it reads no row."""
    sql, params = rows.order_by().values("pk").query.sql_with_params()
    ((plan,),) = db.fetch(f"EXPLAIN (FORMAT JSON) {sql}", params)
    return int(plan[0]["Plan"]["Plan Rows"])
