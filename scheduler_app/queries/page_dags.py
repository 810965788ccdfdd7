"""The list of DAGs: which there are, how each fares, and how many are in which shape."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Q, QuerySet

from scheduler_app.models import DagModel, db

from .page_run import digest

#: A scheduled run that is not there this long after it was due makes its DAG late.
LATE_AFTER: Final = timedelta(minutes=1)
BARS: Final = 14

#: chip → which rows of the shelf it keeps
CHIPS: Final[dict[str, str]] = {
    "all": "true",
    "failed": "latest_state = 'failed'",
    "running": "running > 0",
    "late": "late",
    "active": "NOT is_paused",
    "paused": "is_paused",
    "broken": "has_import_errors",
}


@dataclass(frozen=True, slots=True)
class Words:
    """What the filter box asks for: free text, and ``tag:x owner:y state:failed paused:yes``."""

    text: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    paused: bool | None = None
    chip: str | None = None

    @property
    def empty(self) -> bool:
        return self == Words()


@dataclass(frozen=True, slots=True)
class Bar:
    """One run as a bar: ``height`` is 0–1 of the longest of its DAG's shown runs."""

    run_id: str
    state: str
    run_type: str
    run_after: datetime
    seconds: float | None
    height: float
    held: bool = False


@dataclass(frozen=True, slots=True)
class DagRow:
    dag_id: str
    name: str
    description: str | None
    owners: str
    tags: list[str]
    is_paused: bool
    has_import_errors: bool
    held: bool
    schedule: str | None
    schedule_words: str | None
    next_run: datetime | None
    running: int
    queued: int
    late: bool
    latest_state: str | None
    latest_run_id: str | None
    bars: list[Bar] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DagPage:
    rows: list[DagRow]
    #: chip → how many DAGs it would show, given the words
    counts: dict[str, int]
    import_errors: int
    page: int
    pages: int


def words_of(text: str) -> Words:
    """Reads the filter box. An unknown ``name:value`` is free text."""
    try:
        parts = shlex.split(text)
    except ValueError:  # an open quote
        parts = text.split()
    found: dict[str, list[str]] = {"text": [], "tag": [], "owner": []}
    paused: bool | None = None
    chip: str | None = None
    for part in parts:
        name, colon, value = part.partition(":")
        if colon and value and name in ("tag", "owner"):
            found[name].append(value)
        elif name == "paused" and value in ("yes", "no"):
            paused = value == "yes"
        elif name == "state" and value in CHIPS:
            chip = value
        else:
            found["text"].append(part)
    return Words(tuple(found["text"]), tuple(found["tag"]), tuple(found["owner"]), paused, chip)


def dag_page(
    visible: QuerySet[DagModel], words: Words, *, chip: str, page: int, size: int, now: datetime, order: str = "dag_id"
) -> DagPage:
    """One page of the DAGs that the reader may see. Two queries, however many DAGs and runs there are."""
    chosen = chip if chip in CHIPS else "all"
    records = _shelf(matching(visible, words), chosen, page, size, now, order)
    counts = dict(zip((*CHIPS, "import_errors"), records[0][: len(CHIPS) + 1], strict=True))
    errors = counts.pop("import_errors")
    rows = [DagRow(*record[len(CHIPS) + 1 :]) for record in records if record[len(CHIPS) + 1] is not None]
    bars = latest_bars([row.dag_id for row in rows], BARS, now)
    for row in rows:
        row.bars.extend(bars.get(row.dag_id, ()))
    return DagPage(rows, counts, errors, page, max(1, math.ceil(counts[chosen] / size)))


def matching_ids(visible: QuerySet[DagModel], words: Words, *, chip: str, now: datetime) -> list[str]:
    """The ids of all DAGs that a list shows, on whatever page. One query."""
    records = _shelf(matching(visible, words), chip if chip in CHIPS else "all", 1, 1_000_000, now, "dag_id")
    return [record[len(CHIPS) + 1] for record in records if record[len(CHIPS) + 1] is not None]


def matching(visible: QuerySet[DagModel], words: Words) -> QuerySet[DagModel]:
    """The DAGs that the words ask for, whatever chip; one with several of the tags comes as often. No query."""
    found = visible.filter(is_stale=False)
    for text in words.text:
        found = found.filter(Q(dag_id__icontains=text) | Q(dag_display_name__icontains=text))
    for tag in words.tags:
        found = found.filter(tags__name=tag)
    for owner in words.owners:
        found = found.filter(owners__icontains=owner)
    return found if words.paused is None else found.filter(is_paused=words.paused)


#: sort key → SQL over the shelf; ties by id
ORDERS: Final[dict[str, str]] = {
    "dag_id": "dag_id",
    "next": "next_dagrun_run_after NULLS LAST, dag_id",
    "latest": "latest_at DESC NULLS LAST, dag_id",
}


#: by the partial index of each; asked for all at once the database reads every run
_ACTIVE_RUNS: Final = " UNION ALL ".join(
    f"SELECT id, dag_id, state FROM scheduler_dag_run WHERE {which}"
    for which in (
        "state = 'running'",
        "state = 'queued' AND backfill_id IS NULL",
        "state = 'queued' AND backfill_id IS NOT NULL",
    )
)


def _shelf(
    matching: QuerySet[DagModel], chip: str, page: int, size: int, now: datetime, order: str
) -> list[tuple[Any, ...]]:
    """Counts beside each row of one page; a page without rows is one record of counts and nulls."""
    visible, params = matching.order_by().values("dag_id").distinct().query.sql_with_params()
    counts = ", ".join(f"count(*) FILTER (WHERE {test}) AS n_{name}" for name, test in CHIPS.items())
    ordering = ORDERS.get(order, ORDERS["dag_id"])
    return db.fetch(
        f"""
        WITH visible AS ({visible}),
        active AS (
            SELECT dag_id, count(*) FILTER (WHERE state = 'running') AS running,
                   count(*) FILTER (WHERE state = 'queued') AS queued
            FROM ({_ACTIVE_RUNS}) r GROUP BY dag_id
        ),
        shelf AS MATERIALIZED (
            SELECT d.dag_id, d.dag_display_name, d.description, d.owners, d.is_paused, d.has_import_errors,
                   d.held_at IS NOT NULL AND (d.held_until IS NULL OR d.held_until > %s) AS held,
                   d.timetable_summary, d.timetable_description, d.next_dagrun_run_after,
                   coalesce(a.running, 0) AS running, coalesce(a.queued, 0) AS queued,
                   NOT d.is_paused AND coalesce(d.next_dagrun_run_after < %s, false) AS late,
                   latest.state AS latest_state, latest.run_id AS latest_run_id, latest.run_after AS latest_at
            FROM scheduler_dag d
            LEFT JOIN active a ON a.dag_id = d.dag_id
            LEFT JOIN LATERAL (
                SELECT r.state, r.run_id, r.run_after FROM scheduler_dag_run r
                WHERE r.dag_id = d.dag_id ORDER BY r.run_after DESC, r.id DESC LIMIT 1
            ) latest ON true
            WHERE d.dag_id IN (SELECT dag_id FROM visible)
        ),
        counts AS (SELECT {counts}, (SELECT count(*) FROM scheduler_import_error) AS n_errors FROM shelf)
        SELECT counts.*, p.dag_id, coalesce(nullif(p.dag_display_name, ''), p.dag_id), p.description, p.owners,
               ARRAY(SELECT t.name FROM scheduler_dag_tag t WHERE t.dag_id = p.dag_id ORDER BY t.name),
               p.is_paused, p.has_import_errors, p.held, p.timetable_summary, p.timetable_description,
               p.next_dagrun_run_after, p.running, p.queued, p.late, p.latest_state, p.latest_run_id
        FROM counts LEFT JOIN (
            SELECT shelf.*, row_number() OVER (ORDER BY {ordering}) AS place FROM shelf WHERE {CHIPS[chip]}
            ORDER BY place LIMIT %s OFFSET %s
        ) p ON true ORDER BY p.place
        """,
        [*params, now, now - LATE_AFTER, size, (page - 1) * size],
    )


def latest_bars(dag_ids: list[str], count: int, now: datetime) -> dict[str, list[Bar]]:
    """The newest ``count`` runs of each DAG, oldest first. One query."""
    if not dag_ids:
        return {}
    records = db.fetch(
        """
        SELECT wanted.dag_id, r.run_id, r.state, r.run_type, r.run_after,
               extract(epoch FROM coalesce(r.end_date, %s) - r.start_date)::float,
               r.held_at IS NOT NULL AND (r.held_until IS NULL OR r.held_until > %s)
        FROM unnest(%s::text[]) AS wanted(dag_id)
        CROSS JOIN LATERAL (
            SELECT * FROM scheduler_dag_run WHERE dag_id = wanted.dag_id ORDER BY run_after DESC, id DESC LIMIT %s
        ) r ORDER BY wanted.dag_id, r.run_after, r.id
        """,
        [now, now, dag_ids, count],
    )
    grouped: dict[str, list[tuple[Any, ...]]] = {}
    for dag_id, *rest in records:
        grouped.setdefault(dag_id, []).append(tuple(rest))
    return {dag_id: _bars(rows) for dag_id, rows in grouped.items()}


def _bars(rows: list[tuple[Any, ...]]) -> list[Bar]:
    longest = max((seconds for _, _, _, _, seconds, _ in rows if seconds), default=0.0) or 1.0
    return [
        Bar(run_id, state, run_type, run_after, seconds, max(0.0, min(1.0, (seconds or 0.0) / longest)), held)
        for run_id, state, run_type, run_after, seconds, held in rows
    ]


def pulse(visible: QuerySet[DagModel]) -> str:
    """What the live poll of the list compares: the pause switches, and the newest states of runs. One query."""
    sql, params = visible.filter(is_stale=False).order_by().values("dag_id").query.sql_with_params()
    records = db.fetch(
        f"""
        SELECT
            (SELECT md5(string_agg(
                dag_id || is_paused || has_import_errors || (held_at IS NOT NULL), ',' ORDER BY dag_id
             )) FROM scheduler_dag WHERE dag_id IN ({sql})),
            (SELECT md5(string_agg(id || state, ',' ORDER BY id)) FROM ({_ACTIVE_RUNS}) r),
            (SELECT max(id) FROM scheduler_dag_run)
        """,
        params,
    )
    return digest(records)
