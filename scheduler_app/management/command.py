"""What the commands share: the person at the terminal as an actor, errors as sentences, tables and JSON."""

from __future__ import annotations

import argparse
import getpass
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandError

from scheduler_app import access
from scheduler_app.actions.errors import ActionError
from scheduler_app.management.database import DatabaseCommand
from scheduler_app.models import db

AS_JSON = "print JSON instead of a table"


class Report(DatabaseCommand):
    """A command whose method ``run`` shows rows, as a table or as JSON; ``now`` and ``actor`` are set before."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help=AS_JSON)

    def handle(self, *args: Any, **options: Any) -> None:
        self.as_json = bool(options["json"])
        self.now = db.clock()
        self.actor = access.system("command", _user())
        try:
            self.run(options)
        except ActionError as error:
            raise CommandError(str(error)) from error

    def run(self, options: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__module__} has no run(self, options): define it.")

    def show(self, rows: Sequence[dict[str, Any]]) -> None:
        """A table of rows that have the same keys, or the list as JSON."""
        if self.as_json:
            self.stdout.write(json.dumps(rows, default=_text, ensure_ascii=False, indent=2))
            return
        if not rows:
            self.stdout.write("None.")
            return
        table = [list(rows[0]), *([_text(value) for value in row.values()] for row in rows)]
        widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
        for line in table:
            self.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


class Verbs(Report):
    """A command with sub-commands: each is a method ``do_<verb>`` and a parser set up by ``add_<verb>``."""

    #: verb → one line of help
    verbs: dict[str, str] = {}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        choices = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        for verb, text in self.verbs.items():
            own = choices.add_parser(verb, help=text, description=text)
            # Behind the verb too, where people put it; suppressed, or its default would undo the one before the verb.
            own.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=AS_JSON)
            getattr(self, f"add_{verb}", _nothing)(own)

    def run(self, options: dict[str, Any]) -> None:
        do: Callable[[dict[str, Any]], None] = getattr(self, f"do_{options['verb']}")
        do(options)


def instant(text: str) -> datetime:
    """An argument that is an ISO 8601 instant; without an offset it is UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no ISO 8601 date (2026-03-01T12:00:00+00:00)") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def json_object(text: str) -> dict[str, Any]:
    """An argument that is a JSON object."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"this is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError('give a JSON object, for example {"key": "value"}')
    return found


def _nothing(parser: argparse.ArgumentParser) -> None:
    return None


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds")
    return "" if value is None else str(value)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
