"""``manage.py states``: docs/states.md, drawn from the table of legal moves (``--write`` puts it there)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from scheduler_app.engine import states

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "states.md"
_HEAD = """# States

Drawn by `manage.py states --write` from `scheduler_app/engine/states.py`; a test keeps it true. Only
`models/transitions.py` performs these moves; a database trigger refuses any other in tests.

"""
Table = Mapping[str, tuple[frozenset[Any], Any]]


class Command(BaseCommand):
    help = "Prints (or writes) the document of the states and their legal moves."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["write"]:
            DOCUMENT.write_text(document())
        else:
            self.stdout.write(document())


def document() -> str:
    """The whole text of docs/states.md."""
    parts = [_HEAD]
    parts += [_section("Task instances", states.TASK_VERBS, states.TASK_ACTIONS)]
    parts += [_section("Runs", states.RUN_VERBS, states.RUN_ACTIONS)]
    return "".join(parts)


def _section(title: str, verbs: Table, actions: Table) -> str:
    lines = [f"## {title}\n", "```mermaid\nstateDiagram-v2"]
    for verb, (sources, target) in verbs.items():
        lines += [f"    {_name(source)} --> {_name(target)}: {verb}" for source in _sorted(sources)]
    lines += ["```\n", "| verb | who | from | to |", "| --- | --- | --- | --- |"]
    for table, who in ((verbs, "scheduler, runner, triggerer"), (actions, "an action")):
        for verb, (sources, target) in table.items():
            lines.append(f"| {verb} | {who} | {', '.join(map(_name, _sorted(sources)))} | {_name(target)} |")
    return "\n".join(lines) + "\n\n"


def _sorted(values: frozenset[Any]) -> list[Any]:
    return sorted(values, key=_name)


def _name(state: str | None) -> str:
    return state or "none"
