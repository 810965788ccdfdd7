"""A log in pieces: how a piece is named, and how pieces of several machines make one text. Pure.

A try may write on several machines: its attempt here, its trigger there, after a deferral on a third. Each machine has
a file of its own, of which pieces are shipped by byte ranges. The fence orders the hand-outs, the stage what writes
within one, so that what is shipped later comes later in the whole text, and an offset into it stays what it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Who writes, in the order in which they do: the attempt, the trigger that it waits for, callbacks.
ATTEMPT, TRIGGER, CALLBACK = range(3)

_NAME = re.compile(r"(\d{12})-(\d)-([0-9a-f]{8})-(\d{15})-(\d{12})")


@dataclass(frozen=True, slots=True, order=True)
class Piece:
    fence: int
    stage: int
    #: the file that it is a part of: 8 hexadecimal digits
    origin: str
    offset: int
    size: int

    @property
    def name(self) -> str:
        return f"{self.fence:012d}-{self.stage}-{self.origin}-{self.offset:015d}-{self.size:012d}"


def parse(name: str) -> Piece | None:
    """The piece of a name; None for what is none of ours (an upload that was cut off)."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return Piece(int(found[1]), int(found[2]), found[3], int(found[4]), int(found[5]))


@dataclass(frozen=True, slots=True)
class Span:
    """``length`` bytes of a piece from ``skip`` on; they begin at byte ``start`` of the whole text."""

    piece: Piece
    skip: int
    start: int
    length: int


def layout(pieces: Iterable[Piece]) -> list[Span]:
    """The whole text. Pieces may overlap: a merged one comes before those that it replaces are gone."""
    spans: list[Span] = []
    reached: dict[str, int] = {}
    at = 0
    for piece in sorted(pieces, key=lambda one: (one.fence, one.stage, one.origin, one.offset, -one.size)):
        skip = max(0, reached.get(piece.origin, 0) - piece.offset)
        if skip < piece.size:
            spans.append(Span(piece, skip, at, piece.size - skip))
            at += piece.size - skip
            reached[piece.origin] = piece.offset + piece.size
    return spans


def size(spans: Sequence[Span]) -> int:
    return spans[-1].start + spans[-1].length if spans else 0


def cut(spans: Iterable[Span], start: int, length: int) -> list[tuple[Piece, int, int]]:
    """What to fetch for a part of the whole text: (piece, byte in it, how many)."""
    found = []
    for span in spans:
        begin, end = max(start, span.start), min(start + length, span.start + span.length)
        if begin < end:
            found.append((span.piece, span.skip + begin - span.start, end - begin))
    return found
