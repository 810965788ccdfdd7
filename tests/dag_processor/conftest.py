"""A bundle in a temporary folder, a parser that answers from a table, documents as the child would send them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler_app.conf import Conf
from scheduler_app.dag_processor.bundle import Bundle
from scheduler_app.dag_processor.processor import Processor
from scheduler_app.engine.dag import Dag, Group, Task, to_doc
from scheduler_app.models import Pool

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def dag_doc(dag_id: str, *tasks: str, **fields: Any) -> dict[str, Any]:
    """A serialised DAG whose tasks form a chain."""
    names = tasks or ("only",)
    chain = tuple(
        Task(task_id=name, downstream=names[place + 1 : place + 2], owner="ann") for place, name in enumerate(names)
    )
    root = Group(group_id=None, children=tuple({"task": name} for name in names))
    return to_doc(Dag(dag_id=dag_id, tasks=chain, groups=(root,), **fields))


def parsed(*dags: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A parse result."""
    return {
        "op": "parsed",
        "file": "",
        "dags": list(dags),
        "import_error": None,
        "dag_errors": {},
        "warnings": [],
        "modules": [],
        "seconds": 0.5,
        **fields,
    }


@dataclass
class FakeParse:
    path: str
    folder: str
    document: dict[str, Any] | None


@dataclass
class FakeParser:
    """Answers with what the test has put into ``says`` for a file's name; ``order`` is what was asked."""

    says: dict[str, dict[str, Any]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    plans: list[dict[str, Any]] = field(default_factory=list)
    _waiting: list[FakeParse] = field(default_factory=list)

    @property
    def pending(self) -> int:
        return len(self._waiting)

    def submit(self, path: str, folder: str, **facts: Any) -> None:
        name = os.path.relpath(path, folder)
        self.order.append(name)
        self.plans.append(facts)
        self._waiting.append(FakeParse(path, folder, self.says[name]))

    def poll(self, timeout_seconds: float) -> list[FakeParse]:
        done, self._waiting = self._waiting, []
        return done


@dataclass
class World:
    """A DAG folder, its processor, and the time."""

    folder: Path
    parser: FakeParser
    processor: Processor
    bundle: Bundle
    now: datetime = T0

    def write(self, name: str, *dags: dict[str, Any], text: str = "", **result: Any) -> None:
        """A file, and what its parse will say; each write is another content."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        count = len(file.read_text()) if file.exists() else 0
        file.write_text(text or "import airflow # dag " + "x" * count)
        if dags or result or name.endswith(".py"):
            self.parser.says[name] = parsed(*dags, **result)

    def says(self, name: str, *dags: dict[str, Any], **result: Any) -> None:
        """The next parse of an unchanged file will say this."""
        self.parser.says[name] = parsed(*dags, **result)

    def look(self, seconds: float = 5, **options: Any) -> list[str]:
        """Time passes, one scan, and everything that it finds is parsed and stored; the files that were parsed."""
        self.now += timedelta(seconds=seconds)
        self.processor.look(self.now, **options)
        return self.work()

    def work(self) -> list[str]:
        self.parser.order.clear()
        self.processor.take_requests(self.now)
        self.processor.take_questions(self.now)
        while self.processor.busy:
            self.processor.submit()
            self.processor.collect(0, lambda: self.now)
        return list(self.parser.order)


def make_world(folder: Path, name: str = "dags", guard: Callable[[], None] = lambda: None, **knobs: Any) -> World:
    parser = FakeParser()
    processor = Processor(Conf(**{"reparse_seconds": 0.0, **knobs}), parser, guard)
    bundle = Bundle(name, folder)
    processor.own([bundle])
    return World(folder, parser, processor, bundle)


@pytest.fixture
def world(tmp_path: Path, db: None) -> World:
    Pool.objects.get_or_create(pool="default_pool", defaults={"slots": 128})
    return make_world(tmp_path)
