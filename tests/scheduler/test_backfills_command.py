"""``manage.py backfills``: the same actions at a terminal."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from scheduler_app.models import Audit, Backfill
from tests.scheduler.scene import Scene
from tests.shapes import shape

RANGE = ("daily", "--from-date", "2026-01-01", "--to-date", "2026-01-03")


def ask(*words: str) -> list[dict[str, Any]]:
    out = io.StringIO()
    call_command("backfills", "--json", *words, stdout=out)
    found: list[dict[str, Any]] = json.loads(out.getvalue())
    return found


@pytest.fixture(autouse=True)
def _daily(scene: Scene) -> None:
    scene.dag(shape("a", "daily", timetable={"kind": "cron_trigger", "expression": "0 0 * * *"}))


def test_a_dry_run_shows_the_slots_and_makes_nothing() -> None:
    shown = ask("create", *RANGE, "--dry-run", "--run-backwards")
    assert [one["logical_date"][:10] for one in shown] == ["2026-01-03", "2026-01-02", "2026-01-01"]
    assert not Backfill.objects.exists()


def test_json_may_be_asked_for_behind_the_verb_too() -> None:
    out = io.StringIO()
    call_command("backfills", "create", *RANGE, "--dry-run", "--json", stdout=out)
    assert json.loads(out.getvalue()) == ask("create", *RANGE, "--dry-run")


def test_a_backfill_is_made_paused_listed_and_cancelled() -> None:
    (made,) = ask("create", *RANGE, "--max-active-runs", "2", "--dag-run-conf", '{"x": 1}')
    row = Backfill.objects.get()
    assert (made["id"], row.max_active_runs, row.dag_run_conf, row.slots.count()) == (row.pk, 2, {"x": 1}, 3)
    number = str(row.pk)
    assert ask("pause", number)[0]["paused"] is True
    assert ask("unpause", number)[0]["paused"] is False
    assert ask("cancel", number)[0]["completed_at"] is not None
    assert [one["id"] for one in ask("list", "daily")] == [row.pk]
    assert ask("list", "other") == []
    assert set(Audit.objects.values_list("actor_kind", flat=True)) == {"command"}


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(CommandError, match="Could not find backfill with id 7"):
        ask("cancel", "7")
    with pytest.raises(CommandError, match="The DAG with ID: `gone` was not found"):
        ask("create", "gone", *RANGE[1:])
