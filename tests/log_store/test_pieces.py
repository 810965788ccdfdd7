"""Pieces of a log: their names, and how pieces of several machines become one text."""

from __future__ import annotations

from scheduler_app.log_store.pieces import ATTEMPT, CALLBACK, TRIGGER, Piece, cut, layout, parse, size

A, B = "aaaaaaaa", "bbbbbbbb"


def test_a_name_says_all_and_what_is_no_piece_is_none() -> None:
    piece = Piece(12, TRIGGER, A, 4096, 77)
    assert parse(piece.name) == piece
    assert parse(f"{piece.name}.new") is None
    assert parse("README") is None


def test_hand_outs_come_in_their_order_and_within_one_the_attempt_before_its_trigger() -> None:
    pieces = [
        Piece(7, ATTEMPT, A, 30, 5),
        Piece(3, CALLBACK, B, 9, 2),
        Piece(3, TRIGGER, B, 0, 9),
        Piece(3, ATTEMPT, A, 10, 20),
        Piece(3, ATTEMPT, A, 0, 10),
    ]
    spans = layout(pieces)
    assert [(span.piece.origin, span.piece.offset, span.start) for span in spans] == [
        (A, 0, 0),
        (A, 10, 10),
        (B, 0, 30),
        (B, 9, 39),
        (A, 30, 41),
    ]
    assert size(spans) == 46


def test_a_merged_piece_beside_those_that_it_replaces_doubles_nothing() -> None:
    old = [Piece(1, ATTEMPT, A, at, 10) for at in (0, 10, 20, 30)]
    spans = layout([*old, Piece(1, ATTEMPT, A, 0, 25)])
    assert [(span.piece.offset, span.skip, span.length) for span in spans] == [(0, 0, 25), (20, 5, 5), (30, 0, 10)]
    assert size(spans) == 40


def test_a_part_is_fetched_from_the_pieces_that_hold_it() -> None:
    spans = layout([Piece(1, ATTEMPT, A, 0, 10), Piece(1, ATTEMPT, A, 10, 10), Piece(2, ATTEMPT, B, 0, 10)])
    assert [(piece.origin, piece.offset, at, length) for piece, at, length in cut(spans, 8, 14)] == [
        (A, 0, 8, 2),
        (A, 10, 0, 10),
        (B, 0, 0, 2),
    ]
    assert cut(spans, 30, 5) == []
