from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

from scheduler_app import attempt_log
from scheduler_app.attempt_log import LogWriter, Masks, RawLines

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


def writer(file: Path, masks: Masks | None = None) -> LogWriter:
    return LogWriter(attempt_log.open_for_append(file), lambda: NOON, masks)


def test_a_try_has_one_file_below_the_log_folder() -> None:
    path = attempt_log.path(Path("/logs"), "etl", "manual__1", "group.load", -1, 2)
    assert path == Path("/logs/dag_id=etl/run_id=manual__1/task_id=group.load/attempt=2.log")
    mapped = attempt_log.path(Path("/logs"), "etl", "manual__1", "load", 3, 1)
    assert mapped == Path("/logs/dag_id=etl/run_id=manual__1/task_id=load/map_index=3/attempt=1.log")


def test_odd_ids_stay_in_their_folder_and_apart() -> None:
    names = ["../../etc", "a/b", "a%2Fb", "a b", "ü-żółw", "..", ".", "x" * 250, "x" * 249 + "y", "a:b", "a\nb"]
    paths = [attempt_log.path(Path("/logs"), name, "r", "t", -1, 1) for name in names]
    assert len(set(paths)) == len(names)
    for path in paths:
        assert path.parts[:2] == ("/", "logs")
        assert ".." not in path.parts
        assert len(path.parts) == 6
        assert all(len(part.encode()) <= 255 for part in path.parts)
    assert paths[4].parts[2] == "dag_id=ü-żółw"


def test_a_log_is_read_from_where_the_last_read_ended(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "attempt=1.log"
    log = writer(file)
    log.write("info", "task", "one")
    lines, offset = attempt_log.read(file)
    assert [line["event"] for line in lines] == ["one"]
    os.write(log.fd, b'{"timestamp": "t", "level": "info", "logger": "x", "ev')
    assert attempt_log.read(file, offset) == ([], offset)
    os.write(log.fd, b'ent": "two"}\n')
    lines, _ = attempt_log.read(file, offset)
    assert [line["event"] for line in lines] == ["two"]


def test_a_log_that_does_not_exist_has_no_lines(tmp_path: Path) -> None:
    assert attempt_log.read(tmp_path / "none.log") == ([], 0)


def test_what_is_no_json_is_shown_as_text(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"plain \xff text\n[1]\n")
    lines, _ = attempt_log.read(file)
    assert [line["event"] for line in lines] == ["plain \ufffd text", "[1]"]


def test_secrets_are_masked_the_longest_first_and_line_by_line(tmp_path: Path) -> None:
    masks = Masks()
    masks.add({"password": "hunter2", "extra": ["hunter2-and-more", "ab"]})
    masks.add("first line\nsecond line")
    file = tmp_path / "a.log"
    writer(file, masks).write("info", "task", "hunter2-and-more hunter2 ab second line", data={"k": ["hunter2"]})
    (line,), _ = attempt_log.read(file)
    assert line["event"] == "*** *** ab ***"
    assert line["data"] == {"k": ["***"]}


def test_raw_output_becomes_lines_whatever_its_pieces(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    lines = RawLines(writer(file), "error", "task.stderr")
    for piece in (b"on", b"e\r\ntwo\nth", b"ree"):
        lines.feed(piece)
    lines.finish()
    found, _ = attempt_log.read(file)
    assert [(line["level"], line["event"]) for line in found] == [
        ("error", "one"),
        ("error", "two"),
        ("error", "three"),
    ]


def test_a_lost_file_loses_the_line_and_not_the_task(tmp_path: Path) -> None:
    log = writer(tmp_path / "a.log")
    os.close(log.fd)
    log.fd = -1
    log.write("info", "task", "into the void")
    assert attempt_log.read(tmp_path / "a.log") == ([], 0)


def test_an_exception_is_told_with_its_cause_and_read_as_a_traceback(tmp_path: Path) -> None:
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise RuntimeError("outer") from inner
    except RuntimeError as error:
        detail = attempt_log.error_detail(type(error), error, error.__traceback__)
    assert [(item["exc_type"], item["exc_value"], item["is_cause"]) for item in detail] == [
        ("RuntimeError", "outer", False),
        ("KeyError", "'inner'", True),
    ]
    text = attempt_log.plain_text(
        [{"timestamp": "12:00", "level": "error", "logger": "task", "event": "failed", "error_detail": detail}]
    )
    assert text.startswith("[12:00] ERROR task: failed\nTraceback (most recent call last):\n  File ")
    assert text.index("KeyError: 'inner'") < text.index("RuntimeError: outer")
