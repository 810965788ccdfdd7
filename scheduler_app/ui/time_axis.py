"""Where moments lie on a line from 0 to 100, with long idle gaps folded. Pure: no request, no database, no clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

Interval = tuple[datetime, datetime]

#: A gap of more than this share of the whole is folded …
FOLD_FROM: Final = 0.2
#: … to so many percent of the line.
FOLD_WIDTH: Final = 5.0
#: Marks on the line, at most, and how near two of them, or one and a fold, may be (percent).
MARKS: Final = 7
MARK_GAP: Final = 7.0
#: Steps between marks, in seconds.
STEPS: Final = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fold:
    """A gap that is drawn short: its middle in percent, and how long it really was."""

    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class _Piece:
    start: datetime
    end: datetime
    left: float
    right: float


class Axis:
    """The line of some intervals, which must not be empty. An interval that ends before it starts counts as a point."""

    def __init__(self, intervals: Iterable[Interval]) -> None:
        busy = _merged(intervals)
        self.start, self.end = busy[0][0], busy[-1][1]
        whole = max((self.end - self.start).total_seconds(), 0.001)
        gaps = [(a[1], b[0]) for a, b in pairwise(busy)]
        folded = [gap for gap in gaps if (gap[1] - gap[0]).total_seconds() > FOLD_FROM * whole]
        #: seconds that are drawn to scale
        self.scaled = max(whole - sum((end - start).total_seconds() for start, end in folded), 0.001)
        self._pieces, self.folds = _placed(self.start, self.end, folded, (100 - FOLD_WIDTH * len(folded)) / self.scaled)

    def at(self, moment: datetime) -> float:
        """Percent from the left; before the start 0, after the end 100."""
        for piece in self._pieces:
            if moment <= piece.end:
                length = (piece.end - piece.start).total_seconds()
                share = max(0.0, (moment - piece.start).total_seconds()) / length if length else 0.0
                return piece.left + share * (piece.right - piece.left)
        return 100.0

    def step(self) -> int:
        """Seconds between two marks."""
        return next((step for step in STEPS if self.scaled / step <= MARKS), STEPS[-1])

    def marks(self) -> list[tuple[float, datetime]]:
        """(percent, round moment), with room for their words between them."""
        step = self.step()
        taken = [fold.at for fold in self.folds]
        found: list[tuple[float, datetime]] = []
        for piece in self._pieces[::2]:  # every second one is a fold
            second = -(-int(piece.start.timestamp()) // step) * step
            while second <= piece.end.timestamp():
                moment = datetime.fromtimestamp(second, UTC)
                place = self.at(moment)
                if all(abs(place - other) >= MARK_GAP for other in [*taken, *(one[0] for one in found)]):
                    found.append((place, moment))
                second += step
        return [one for one in found if one[0] <= 100 - MARK_GAP / 2]


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The intervals in order, those that touch as one. ValueError for none."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, max(start, end)))
    if not merged:
        raise ValueError("a line needs at least one interval")
    return merged


def _placed(start: datetime, end: datetime, folded: list[Interval], scale: float) -> tuple[list[_Piece], list[Fold]]:
    """Pieces to scale and folds in turn, from left to right."""
    pieces: list[_Piece] = []
    folds: list[Fold] = []
    left = 0.0
    for gap_start, gap_end in [*folded, (end, end)]:
        right = left + (gap_start - start).total_seconds() * scale
        pieces.append(_Piece(start, gap_start, left, right))
        if gap_end > gap_start:
            pieces.append(_Piece(gap_start, gap_end, right, right + FOLD_WIDTH))
            folds.append(Fold(right + FOLD_WIDTH / 2, (gap_end - gap_start) / timedelta(seconds=1)))
        start, left = gap_end, right + FOLD_WIDTH
    return pieces, folds
