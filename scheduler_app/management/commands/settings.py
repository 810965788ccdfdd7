"""``manage.py settings``: every knob, its value in force, its default and what it does."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from scheduler_app.conf import Conf, conf

BEGIN = "<!-- written by `manage.py settings --write docs/settings.md`; a test compares -->\n"
END = "<!-- end -->"


def markdown() -> str:
    """The table of ``docs/settings.md``."""
    rows = ["| Variable | Default | What it does |", "| --- | --- | --- |"]
    for spec in dataclasses.fields(Conf):
        rows.append(f"| `SCHEDULER_{spec.name.upper()}` | {_shown(spec.default)} | {spec.metadata['doc']} |")
    return "\n".join(rows) + "\n"


def with_table(document: str) -> str:
    """The document with the table between its two marks renewed."""
    before, _, rest = document.partition(BEGIN)
    return before + BEGIN + markdown() + END + rest.partition(END)[2]


def _shown(default: Any) -> str:
    if default in ("", ()):
        return ""
    if isinstance(default, bool):
        return "on" if default else "off"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


class Command(BaseCommand):
    help = "Shows the scheduler's settings: value in force, default, meaning. Secrets are not shown."
    requires_system_checks = ()  # it helps to find out why a check fails

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--write", type=Path, metavar="FILE", help="renew the table in docs/settings.md")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["write"]:
            options["write"].write_text(with_table(options["write"].read_text()))
            return
        values = conf()
        for spec in dataclasses.fields(Conf):
            value = getattr(values, spec.name)
            shown = ("set" if value else "not set") if not spec.repr else value
            changed = "" if value == spec.default else f"  [default: {spec.default}]" if spec.repr else ""
            self.stdout.write(f"{spec.name} = {shown}{changed}\n    {spec.metadata['doc']}")
