"""Backfills: those that there are, and how far each has come, slot by slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count, Q, QuerySet

from scheduler_app.engine import states
from scheduler_app.models import Backfill, BackfillSlot, DagRun

from .page_slice import page_slice

SIZE: Final = 25
SLOTS: Final = 100
#: What became of a slot, in the order of the progress bar; the first four are states of its run.
STANDINGS: Final = ("success", "failed", "running", "queued", "waiting", "left", "cancelled")
#: Slots for which no run of this backfill was made, because there is one.
_LEFT: Final = ("already exists", "in flight")


@dataclass(frozen=True, slots=True)
class Progress:
    """How many slots stand how. A slot that the scheduler has not looked at yet is waiting."""

    counts: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        return sum(self.counts.get(name, 0) for name in ("success", "failed", "left", "cancelled"))

    @property
    def pieces(self) -> list[tuple[str, int]]:
        return [(name, self.counts[name]) for name in STANDINGS if self.counts.get(name)]


@dataclass(frozen=True, slots=True)
class Row:
    backfill: Backfill
    progress: Progress


@dataclass(frozen=True, slots=True)
class Slot:
    ordinal: int
    logical_date: datetime | None
    standing: str
    run_id: str | None
    start: datetime | None
    end: datetime | None


def backfills(visible: QuerySet[Backfill], page: int) -> tuple[list[Row], bool]:
    """A page of them, newest first, and whether there are older ones. Two queries."""
    rows, more = page_slice(visible.select_related("dag").order_by("-id"), page, SIZE)
    progress = _progress([row.pk for row in rows])
    return [Row(row, progress.get(row.pk, Progress({}))) for row in rows], more


def progress_of(backfill: Backfill) -> Progress:
    """One query."""
    return _progress([backfill.pk]).get(backfill.pk, Progress({}))


def pulse(visible: QuerySet[Backfill], backfill_id: int) -> tuple[str, bool] | None:
    """A digest of what the page of one shows, and whether it is over; None when there is none. Two queries."""
    row = visible.filter(pk=backfill_id).first()
    if row is None:
        return None
    counts = progress_of(row).pieces
    return f"{row.updated_at.timestamp()}.{row.failures}.{counts}".replace(" ", ""), row.completed_at is not None


def slots(backfill: Backfill, standing: str, page: int) -> list[Slot]:
    """A page of its slots in the order in which they run; ``standing`` "" is all of them. One query."""
    rows = BackfillSlot.objects.filter(backfill=backfill).filter(_standing(standing)).order_by("ordinal")
    start = (page - 1) * SLOTS
    fields = (
        "ordinal", "logical_date", "outcome", "dag_run__state", "dag_run__run_id", "dag_run__start_date",
        "dag_run__end_date",
    )  # fmt: skip
    return [
        Slot(ordinal, logical, standing_of(outcome, state), run_id, begun, ended)
        for ordinal, logical, outcome, state, run_id, begun, ended in rows.values_list(*fields)[start : start + SLOTS]
    ]


def standing_of(outcome: str | None, state: str | None) -> str:
    if outcome is None:
        return "waiting"
    if outcome == "cancelled":
        return "cancelled"
    if outcome in _LEFT:
        return "left"
    return state if state in states.RUN_STATES else "left"


def _standing(name: str) -> Q:
    """The same as a filter."""
    if name == "waiting":
        return Q(outcome__isnull=True)
    if name == "cancelled":
        return Q(outcome="cancelled")
    if name == "left":
        return Q(outcome__in=_LEFT) | Q(outcome__isnull=False, dag_run__state__isnull=True) & ~Q(outcome="cancelled")
    if name in states.RUN_STATES:
        return Q(outcome__in=("created", "cleared"), dag_run__state=name)
    return Q()


def _progress(keys: Sequence[int]) -> dict[int, Progress]:
    rows = BackfillSlot.objects.filter(backfill__in=keys).order_by()
    counted = rows.values_list("backfill_id", "outcome", "dag_run__state").annotate(n=Count("id"))
    found: dict[int, dict[str, int]] = {}
    for key, outcome, state, n in counted:
        of_one = found.setdefault(key, {})
        name = standing_of(outcome, state)
        of_one[name] = of_one.get(name, 0) + n
    return {key: Progress(counts) for key, counts in found.items()}


def next_run(backfill: Backfill) -> DagRun | None:
    """The queued run that starts next, which is asked why it does not. One query."""
    queued = DagRun.objects.filter(backfill_id=backfill.pk, state=states.QUEUED).select_related("dag")
    return queued.order_by("backfill_slots__ordinal", "id").first()
