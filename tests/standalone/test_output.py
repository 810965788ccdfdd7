from __future__ import annotations

import io
import os

from scheduler_app.standalone.output import LONGEST_LINE_BYTES, Lines, Output


def lines_of(*chunks: bytes) -> list[str]:
    """What is shown of a component that writes these chunks and ends."""
    stream = io.StringIO()
    read_end, write_end = os.pipe()
    lines = Lines(read_end, Output(stream, width=4, colour=False), "web", 36)
    for chunk in chunks:
        os.write(write_end, chunk)
        assert lines.read()
    os.close(write_end)
    assert not lines.read()
    lines.close()
    return stream.getvalue().splitlines()


def test_each_line_stands_behind_the_name_of_who_said_it() -> None:
    assert lines_of(b"one\ntwo\r\n") == ["web  | one", "web  | two"]


def test_a_line_that_comes_in_pieces_is_shown_whole() -> None:
    assert lines_of(b"on", "e \u2713\nt".encode(), b"wo\n") == ["web  | one \u2713", "web  | two"]


def test_a_last_line_without_an_end_is_not_lost() -> None:
    assert lines_of(b"one\ndied her") == ["web  | one", "web  | died her"]


def test_a_line_without_end_is_cut() -> None:
    endless = b"x" * LONGEST_LINE_BYTES
    shown = lines_of(endless, b"y\n")
    assert [len(line) for line in shown] == [LONGEST_LINE_BYTES + 7, 8]


def test_closing_passes_on_what_is_left_while_a_descendant_holds_the_other_end() -> None:
    stream = io.StringIO()
    read_end, write_end = os.pipe()
    lines = Lines(read_end, Output(stream, width=3, colour=False), "web", 36)
    os.write(write_end, b"a\nlast words")
    lines.close()
    os.close(write_end)
    assert stream.getvalue() == "web | a\nweb | last words\n"


def test_the_name_is_coloured_on_a_terminal() -> None:
    stream = io.StringIO()
    Output(stream, width=3, colour=True).line("web", 36, "hello")
    assert stream.getvalue() == "\x1b[36mweb |\x1b[0m hello\n"


def test_a_terminal_that_is_gone_is_ignored() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    Output(Gone(), width=3, colour=False).line("web", 36, "hello")


def test_lines_that_nobody_reads_are_dropped_and_counted() -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as reader, os.fdopen(write_end, "w") as writer:
        output = Output(writer, width=3, colour=False)
        for number in range(1000):
            output.line("web", 36, f"{number:04} " + "x" * 1000)
        os.set_blocking(read_end, False)
        kept = reader.read().decode().splitlines()
        output.line("web", 36, "read again")
        rest = reader.read().decode().splitlines()
    assert 30 < len(kept) < 70
    assert [line[6:10] for line in kept] == [f"{number:04}" for number in range(len(kept))]
    assert rest == [
        f"web | ({1000 - len(kept)} lines before this one were dropped: nobody read them)",
        "web | read again",
    ]
