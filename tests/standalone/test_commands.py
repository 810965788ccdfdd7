"""What a command says of a database that it cannot work with: one line, and exit code 1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError

from scheduler_app.management import database
from scheduler_app.models import db

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = (["dags", "list"], ["jobs", "list"], ["backfills", "list"])


@pytest.mark.django_db
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_tables_that_are_not_there_are_to_be_made(command: list[str]) -> None:
    for table in ("scheduler_dag", "scheduler_job", "scheduler_backfill"):
        db.execute(f"ALTER TABLE {table} RENAME TO {table}_before")
    with pytest.raises(CommandError) as told:
        call_command(*command)
    assert str(told.value).startswith('The database lacks tables or columns of this version (relation "scheduler_')
    assert str(told.value).endswith(f'" does not exist). {database.MIGRATE}')


@pytest.mark.processes
@pytest.mark.parametrize("command", [COMMANDS[0], ["showmigrations"]], ids=" ".join)
def test_a_server_that_is_away_is_one_line(tmp_path: Path, command: list[str]) -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"
    environ = {**os.environ, "SCHEDULER_HOME": str(tmp_path), "DATABASE_URL": url}
    done = subprocess.run(
        [sys.executable, "manage.py", *command], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    (line,) = done.stderr.strip().splitlines()
    assert done.returncode == 1
    assert 'connection to server at "127.0.0.1", port 1 failed' in line
    assert line.endswith("Is the server that DATABASE_URL names running, and may this user log in?")


def test_a_mistake_of_ours_keeps_its_traceback() -> None:
    assert database.advice(ProgrammingError("syntax error")) is None
