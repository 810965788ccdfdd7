"""Which files are parsed, and in which order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from scheduler_app.dag_processor.plan import Known, due, reparse_interval

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OLD = NOW - timedelta(hours=1)


def parsed(path: str, stamp: tuple[int, int] = (1, 10), **fields: object) -> Known:
    return Known(**{"stamp": {path: stamp}, "parsed_at": OLD, "duration_seconds": 0.1, **fields})


def test_requested_files_come_first_then_the_newest_change_then_the_oldest_parse():
    stamps = {name: (mtime, 10) for name, mtime in zip("abcdef", (1, 1, 7, 9, 1, 1), strict=True)}
    known = {
        "a": parsed("a"),
        "b": parsed("b", requested_at=NOW),
        "c": parsed("c"),
        "e": parsed("e", parsed_at=OLD - timedelta(seconds=1)),
        "f": parsed("f", parsed_at=NOW),
    }
    assert due("abcdef", stamps, known, NOW, reparse_seconds=300) == ["b", "d", "c", "e", "a"]


def test_an_unchanged_file_is_never_parsed_again_when_that_is_switched_off():
    assert due(["a"], {"a": (1, 10)}, {"a": parsed("a")}, NOW, reparse_seconds=0) == []


def test_a_changed_a_vanished_and_a_reappeared_module_each_parse_its_importer_again():
    def importer(module: tuple[int, int] | None) -> dict[str, Known]:
        return {"a": parsed("a", stamp=(1, 10)).__class__(stamp={"a": (1, 10), "m": module}, parsed_at=NOW)}

    here = {"a": (1, 10), "m": (5, 20)}
    assert due(["a"], here, importer((5, 20)), NOW, 0) == []
    assert due(["a"], here, importer((4, 20)), NOW, 0) == ["a"]
    assert due(["a"], here, importer(None), NOW, 0) == ["a"]
    assert due(["a"], {"a": (1, 10)}, importer((5, 20)), NOW, 0) == ["a"]


def test_a_broken_file_gets_another_try_when_anything_in_the_folder_changed():
    known = {"a": parsed("a", has_error=True)}
    assert due(["a"], {"a": (1, 10)}, known, NOW, 0, folder_changed=False) == []
    assert due(["a"], {"a": (1, 10)}, known, NOW, 0, folder_changed=True) == ["a"]


def test_a_file_with_planned_slots_is_parsed_again_when_they_run_short():
    known = {"a": parsed("a", parsed_at=NOW, refresh_at=NOW)}
    assert due(["a"], {"a": (1, 10)}, known, NOW, 0) == ["a"]
    assert due(["a"], {"a": (1, 10)}, known, NOW - timedelta(seconds=1), 0) == []


def test_reparsing_takes_at_most_a_twentieth_of_a_process():
    slow = [parsed(str(n), duration_seconds=2.0) for n in range(100)]
    assert reparse_interval(slow, 300) == timedelta(seconds=4000)
    assert reparse_interval(slow[:1], 300) == timedelta(seconds=300)
    assert reparse_interval(slow, 0) is None
