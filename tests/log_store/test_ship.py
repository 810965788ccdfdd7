"""Logs that are shipped while they grow, from several machines, and read as one text."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler_app import attempt_log
from scheduler_app.conf import Conf
from scheduler_app.log_store import reading, ship, stores
from scheduler_app.log_store.keeper import Keeper
from scheduler_app.log_store.pieces import ATTEMPT, TRIGGER, Piece
from scheduler_app.log_store.reading import FileSource, PiecesSource, open_log
from scheduler_app.log_store.sweep import Sweep
from scheduler_app.models import LogPiece
from scheduler_app.queries.page_log import read_part
from tests.rows import T0

pytestmark = pytest.mark.django_db

LOG = ("d", "r", "t", -1, 1)


class Machine:
    """One machine with a log folder of its own; the store is shared."""

    def __init__(self, folder: Path, store_url: str) -> None:
        self.conf = Conf(log_folder=folder, log_store=store_url, log_database_mb=1)
        self.store = stores.of_readers(self.conf)
        self.file = attempt_log.path(folder, *LOG)

    def write(self, *texts: str, end: str = "\n") -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as file:
            file.write("".join(json.dumps({"level": "info", "event": text}) + end for text in texts))

    def ship(self, fence: int = 1, stage: int = ATTEMPT, *, ended: bool = False) -> int:
        return ship.ship(self.store, self.conf.log_folder, self.file, fence, stage, T0, ended=ended)

    def read(self) -> list[str]:
        source = open_log(self.conf, self.file)
        if source is None:
            return []
        return [json.loads(line)["event"] for line in source.read(0, source.size).splitlines()]


Place = Callable[[str], Machine]


@pytest.fixture(params=["database", "file", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Machines by name, which share a store of each kind."""
    url = {"database": "database", "file": f"file://{tmp_path}/store", "memory": f"memory://{tmp_path.name}"}
    return lambda name: Machine(tmp_path / name, url[request.param])


def test_what_one_machine_writes_another_reads_while_it_grows(place: Place) -> None:
    here, there = place("here"), place("there")
    here.write("one", "two")
    assert here.ship() > 0
    assert there.read() == ["one", "two"]
    here.write("three")
    here.write("half", end="")
    here.ship()
    assert there.read() == ["one", "two", "three"]
    assert here.ship() == 0
    assert here.ship(ended=True) > 0
    assert there.read() == ["one", "two", "three", "half"]


def test_a_try_of_three_machines_is_one_log_in_the_order_of_its_hand_outs(place: Place) -> None:
    first, waiting, last = place("first"), place("waiting"), place("last")
    first.write("begin")
    last.write("resumed elsewhere")
    last.ship(fence=2, ended=True)
    waiting.write("the trigger fired")
    waiting.ship(fence=1, stage=TRIGGER, ended=True)
    first.ship(fence=1, ended=True)
    whole = ["begin", "the trigger fired", "resumed elsewhere"]
    assert place("web").read() == whole
    assert first.read() == whole  # what lies here is not all of it


def test_the_machine_that_wrote_all_of_it_reads_its_own_file_also_what_is_not_shipped(place: Place) -> None:
    here = place("here")
    here.write("one")
    here.ship()
    here.write("two")
    assert here.read() == ["one", "two"]
    here.file.unlink()
    assert here.read() == ["one"]


def test_many_small_pieces_become_one_and_the_text_stays(place: Place) -> None:
    here, there = place("here"), place("there")
    for number in range(ship.MERGE + 3):
        here.write(f"line {number}")
        here.ship()
    log = here.file.relative_to(here.conf.log_folder).as_posix()
    assert len(here.store.pieces(log)) == 4
    assert there.read() == [f"line {number}" for number in range(ship.MERGE + 3)]


def test_a_log_that_is_longer_than_the_database_takes_says_where_its_rest_is(tmp_path: Path) -> None:
    here, there = Machine(tmp_path / "here", "database"), Machine(tmp_path / "there", "database")
    for number in range(3):
        here.write(*(f"{number} {'x' * 1000}" for _ in range(500)))
        here.ship()
    lines = there.read()
    assert lines[-1].startswith("The rest of this log is not in the database (log_database_mb). It is on ")
    assert 900 < len(lines) < 1050
    assert sum(len(bytes(content)) for content in LogPiece.objects.values_list("content", flat=True)) < 1_100_000
    assert here.read()[-1].startswith("2 x")


def test_of_a_gigabyte_only_a_part_is_ever_held(tmp_path: Path) -> None:
    file = tmp_path / "huge.log"
    with file.open("wb") as handle:
        handle.truncate(2**30)
        handle.seek(2**30)
        handle.write(b'\n{"event": "the end"}\n')
    tracemalloc.start()
    try:
        source = FileSource(file)
        assert (part := read_part(source)) is not None
        assert part.lines[-1].text == "the end"
        assert read_part(source, start=2**29) is not None
        assert len(next(reading.chunks(source))) == reading.CHUNK
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * 2**20


def test_pieces_of_a_large_log_are_fetched_only_where_they_are_read() -> None:
    class Store(stores.DatabaseStore):
        asked: list[tuple[int, int, int]] = []

        def get(self, log: str, piece: Piece, start: int, length: int) -> bytes:
            self.asked.append((piece.offset, start, length))
            return b"x" * length

    found = [Piece(1, ATTEMPT, "aaaaaaaa", at << 22, 1 << 22) for at in range(256)]
    source = PiecesSource(Store(1), "log", found)
    assert source.size == 2**30
    assert len(source.read(2**29 - 10, 20)) == 20
    assert Store.asked == [((2**29) - (1 << 22), (1 << 22) - 10, 10), (2**29, 0, 10)]


def test_a_log_that_nobody_wrote_is_none(place: Place) -> None:
    assert open_log(place("web").conf, place("web").file) is None


# ── the thread that looks after them ─────────────────────────────────────────────────────────────────────────────────


def keeper(machine: Machine, store: stores.Store | None = None, **options: Any) -> Keeper:
    made = store or machine.store
    return Keeper(machine.conf, made, ATTEMPT, lambda: datetime.now(UTC), lambda: 0.0, **options)


def test_a_keeper_ships_what_grows_and_at_the_end_all_of_it(place: Place) -> None:
    here, there = place("here"), place("there")
    looks = keeper(here)
    looks.follow(here.file, 1)
    here.write("one")
    looks.work()
    assert there.read() == ["one"]
    here.write("last", end="")
    looks.finish(here.file)
    looks.work()
    assert there.read() == ["one", "last"]
    assert looks.work() == 0


def test_what_could_not_be_shipped_is_shipped_later(tmp_path: Path) -> None:
    here = Machine(tmp_path / "here", f"file://{tmp_path}/store")

    class Away(stores.RemoteStore):
        away = True

        def put(self, *args: Any) -> None:
            if self.away:
                raise OSError("no route")
            super().put(*args)

    store = Away(f"file://{tmp_path}/store")
    looks = keeper(here, store)
    here.write("one")
    looks.follow(here.file, 1)
    looks.finish(here.file)
    with pytest.raises(OSError, match="no route"):
        looks.work()
    store.away = False
    assert looks.work() > 0
    assert Machine(tmp_path / "there", f"file://{tmp_path}/store").read() == ["one"]


def test_a_log_that_cannot_be_read_keeps_no_other_from_being_shipped(tmp_path: Path) -> None:
    here = Machine(tmp_path / "here", "database")
    looks = keeper(here)
    broken = here.file.with_name("attempt=0.log")
    broken.mkdir(parents=True)
    here.write("one")
    for file in (broken, here.file):
        looks.follow(file, 1)
        looks.finish(file)
    with pytest.raises(IsADirectoryError):
        looks.work()
    assert Machine(tmp_path / "there", "database").read() == ["one"]


@pytest.mark.django_db(transaction=True)
def test_a_keeper_that_stops_has_shipped_all(tmp_path: Path) -> None:
    here, there = Machine(tmp_path / "here", "database"), Machine(tmp_path / "there", "database")
    looks = keeper(here)
    looks.start()
    looks.follow(here.file, 1)
    here.write("one")
    looks.finish(here.file)
    looks.stop(20)
    assert there.read() == ["one"]


@pytest.fixture
def tree(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "here", f"file://{tmp_path}/store")


def aged(file: Path, days: float, now: datetime) -> None:
    at = (now - timedelta(days=days)).timestamp()
    for path in (file, file.with_name(file.name + ship.SUFFIX), *list(file.parents)[:3]):
        if path.exists():
            os.utime(path, (at, at))


def test_old_logs_of_this_machine_go_with_their_folders_and_young_ones_stay(tree: Machine) -> None:
    now = datetime.now(UTC)
    tree.write("old")
    tree.ship()
    aged(tree.file, 31, now)
    foreign = [tree.conf.log_folder / "syslog.log", tree.file.with_name("report.csv")]
    for path in foreign:
        path.write_text("not ours")
        aged(path, 31, now)
    young = attempt_log.path(tree.conf.log_folder, "d", "r2", "t", -1, 1)
    young.parent.mkdir(parents=True)
    young.write_text("{}\n")
    sweep = Sweep(tree.conf.log_folder, 30, None)
    assert sweep.step(1, now)  # it goes on where it stopped
    while sweep.step(3, now):
        pass
    assert (sweep.deleted, young.exists(), tree.file.exists()) == (1, True, False)
    left = sorted(path.name for path in tree.conf.log_folder.rglob("*") if path.is_file())
    assert left == ["attempt=1.log", "report.csv", "syslog.log"]


def test_folders_of_old_logs_go_when_they_are_empty(tree: Machine) -> None:
    now = datetime.now(UTC)
    tree.write("old")
    aged(tree.file, 31, now)
    sweep = Sweep(tree.conf.log_folder, 30, None)
    while sweep.step(10, now + timedelta(days=31)):
        pass
    assert list(tree.conf.log_folder.iterdir()) == []


def test_what_a_dead_process_had_not_shipped_is_shipped_by_the_next_walk(tree: Machine, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    tree.write("one")
    tree.ship(fence=7)
    tree.write("two")
    there = Machine(tmp_path / "there", tree.conf.log_store)
    Sweep(tree.conf.log_folder, 0, tree.store).step(100, now)
    assert there.read() == ["one"]  # somebody may still write it
    aged(tree.file, 0.01, now)
    Sweep(tree.conf.log_folder, 0, tree.store).step(100, now)
    assert there.read() == ["one", "two"]
