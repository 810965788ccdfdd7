"""Reading a log file in byte ranges: whole lines, whatever lies at the borders."""

from __future__ import annotations

import json
from pathlib import Path

from scheduler_app.queries import page_log
from scheduler_app.queries.page_log import read_part


def write(folder: Path, count: int, *, tail: str = "") -> Path:
    file = folder / "attempt=1.log"
    lines = [{"timestamp": "2030-01-31T12:00:00+00:00", "level": "info", "event": f"line {n:06}"} for n in range(count)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + tail)
    return file


def texts(part: page_log.Part | None) -> list[str]:
    assert part is not None
    return [line.text for line in part.lines]


def test_a_file_that_is_not_there_has_no_part(tmp_path: Path) -> None:
    assert read_part(tmp_path / "attempt=1.log") is None


def test_a_small_file_is_one_part(tmp_path: Path) -> None:
    part = read_part(write(tmp_path, 3))
    assert texts(part) == ["line 000000", "line 000001", "line 000002"]
    assert part is not None
    assert (part.start, part.end, part.more_before, part.more_after) == (0, part.size, False, False)


def test_the_end_of_a_large_file_comes_first_and_the_parts_before_it_fit_on(tmp_path: Path) -> None:
    file = write(tmp_path, 10_000)
    last = read_part(file)
    assert last is not None
    assert texts(last)[-1] == "line 009999"
    assert last.more_before
    seen, part = texts(last), last
    while part.more_before:
        earlier = read_part(file, end=part.start)
        assert earlier is not None
        assert earlier.end == part.start
        seen, part = texts(earlier) + seen, earlier
    assert seen == [f"line {n:06}" for n in range(10_000)]


def test_reading_on_from_the_begin_sees_each_line_once(tmp_path: Path) -> None:
    file = write(tmp_path, 10_000)
    seen: list[str] = []
    at = 0
    while (part := read_part(file, start=at)) is not None and part.lines:
        seen += texts(part)
        at = part.end
    assert seen == [f"line {n:06}" for n in range(10_000)]


def test_a_part_is_bounded_however_large_the_file_is(tmp_path: Path) -> None:
    part = read_part(write(tmp_path, 20_000), start=0)
    assert part is not None
    assert part.end <= page_log.PART_BYTES


def test_a_line_that_is_still_being_written_waits_for_its_end(tmp_path: Path) -> None:
    file = write(tmp_path, 1, tail='{"event": "half')
    part = read_part(file, start=0)
    assert texts(part) == ["line 000000"]
    assert part is not None
    with file.open("a") as handle:
        handle.write(' and half"}\n')
    assert texts(read_part(file, start=part.end)) == ["half and half"]


def test_a_line_longer_than_a_part_is_passed_in_pieces(tmp_path: Path) -> None:
    file = tmp_path / "attempt=1.log"
    file.write_text("x" * (2 * page_log.PART_BYTES) + "\n")
    part = read_part(file, start=0)
    assert part is not None
    assert part.end == page_log.PART_BYTES
    assert len(part.lines[0].text) == page_log.LINE_CHARS


def test_a_line_that_is_no_json_is_shown_as_it_stands() -> None:
    line = page_log.line_of("Segmentation fault", 7)
    assert (line.at, line.text, line.level, line.time) == (7, "Segmentation fault", "info", None)


def test_an_exception_is_shown_with_its_frames() -> None:
    frame = {"filename": "/dags/a.py", "lineno": 3, "name": "load", "line": "1 / 0"}
    detail = {"exc_type": "ZeroDivisionError", "exc_value": "division by zero", "frames": [frame]}
    line = page_log.line_of(json.dumps({"event": "The task failed", "level": "error", "error_detail": [detail]}), 0)
    assert line.level == "error"
    assert line.text == (
        "The task failed\nTraceback (most recent call last):\n"
        '  File "/dags/a.py", line 3, in load\n    1 / 0\nZeroDivisionError: division by zero'
    )
