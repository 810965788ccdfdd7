"""Callbacks over the API: what became of them, and running one again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from scheduler_app import attempt_log
from scheduler_app.models import Audit, Callback, DagRun, TaskInstance
from scheduler_app.models.effect import Wanted
from tests.api.conftest import Http
from tests.rows import T0, at


@pytest.fixture
def rows(run: DagRun) -> list[Callback]:
    """A task's callback that was given up, and a run's that waits for its second attempt."""
    ti = TaskInstance.objects.get(dag_run=run, task_id="extract")
    wanted = [
        Wanted("task_failure", "one", "etl", run.pk, {"reason": "exit code 1"}, ti.pk, 2),
        Wanted("dag_failure", "two", "etl", run.pk, {}),
    ]
    Callback.objects.want(wanted, T0)
    first, second = Callback.objects.order_by("pk")
    Callback.objects.filter(pk=first.pk).update(
        state="failed", attempts=3, error="ValueError: no such channel", job_id=1, started_at=T0, finished_at=at(9)
    )
    Callback.objects.filter(pk=second.pk).update(attempts=1, next_at=at(40))
    return [first, second]


def test_a_callback_says_what_it_is_about_and_what_became_of_it(http: Any, rows: list[Callback]) -> None:
    assert http.get(f"callbacks/{rows[0].pk}").json() == {
        "callback_id": rows[0].pk,
        "kind": "task_failure",
        "dag_id": "etl",
        "dag_run_id": "run0",
        "task_id": "extract",
        "map_index": -1,
        "try_number": 2,
        "state": "failed",
        "attempts": 3,
        "created_at": "2026-03-01T12:00:00Z",
        "next_at": None,
        "started_at": "2026-03-01T12:00:00Z",
        "finished_at": "2026-03-01T12:00:09Z",
        "error": "ValueError: no such channel",
        "reason": "exit code 1",
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["dag_failure", "task_failure"]),
        ("state=failed", ["task_failure"]),
        ("state=pending&state=running", ["dag_failure"]),
        ("task_id=extract&map_index=-1", ["task_failure"]),
        ("task_id=load", []),
        ("kind=dag_failure&dag_run_id=run0", ["dag_failure"]),
        ("dag_id=other", []),
        ("order_by=callback_id", ["task_failure", "dag_failure"]),
    ],
)
def test_the_list_is_narrowed(http: Any, rows: list[Callback], query: str, found: list[str]) -> None:
    answer = http.get(f"callbacks?{query}").json()
    assert ([item["kind"] for item in answer["callbacks"]], answer["total_entries"]) == (found, len(found))


def test_a_replay_makes_it_due_with_all_its_attempts_and_is_audited(http: Any, rows: list[Callback]) -> None:
    answer = http("post", f"callbacks/{rows[0].pk}/replay", {"reason": "the channel exists now"})
    assert answer.status_code == 200
    said = answer.json()
    assert (said["state"], said["attempts"], said["error"]) == ("pending", 0, None)
    other = Callback.objects.get(pk=rows[1].pk)
    assert (other.attempts, other.next_at) == (1, at(40))
    row = Audit.objects.get(event="replay_callback")
    assert (row.dag_id, row.run_id, row.task_id, row.reason) == ("etl", "run0", "extract", "the channel exists now")
    assert row.before == {"state": "failed", "attempts": 3, "error": "ValueError: no such channel"}


def lines(event: str) -> str:
    return json.dumps({"timestamp": None, "level": "info", "logger": "callback", "event": event}) + "\n"


def test_what_a_callback_wrote_is_read_on_by_its_token(http: Any, rows: list[Callback], settings: Any, tmp_path: Path):
    settings.SCHEDULER = {**settings.SCHEDULER, "log_folder": tmp_path}
    empty = http.get(f"callbacks/{rows[1].pk}/logs").json()
    assert empty["content"][0]["event"].startswith("No log of the callback dag_failure here")
    file = attempt_log.callback_path(tmp_path, "etl", "run0", "dag_failure")
    file.parent.mkdir(parents=True)
    file.write_text(lines("calling"))
    first = http.get(f"callbacks/{rows[1].pk}/logs").json()
    assert [line["event"] for line in first["content"]] == ["calling"]
    with file.open("a") as more:
        more.write(lines("nobody answers"))
    Callback.objects.filter(pk=rows[1].pk).update(state="failed")
    second = http.get(f"callbacks/{rows[1].pk}/logs?token={first['continuation_token']}").json()
    assert ([line["event"] for line in second["content"]], second["continuation_token"]) == (["nobody answers"], None)


def test_the_log_of_a_tasks_callback_is_for_those_who_may_see_tasks(
    rows: list[Callback], settings: Any, tmp_path: Path
):
    settings.SCHEDULER = {**settings.SCHEDULER, "log_folder": tmp_path}
    user = User.objects.create_user("bob")
    user.user_permissions.add(Permission.objects.get(codename="view_dagrun"))
    http = Http(user)
    assert [http.get(f"callbacks/{row.pk}/logs").status_code for row in rows] == [403, 200]


def test_one_that_runs_is_not_replayed(http: Any, rows: list[Callback]) -> None:
    Callback.objects.filter(pk=rows[0].pk).update(state="running")
    answer = http("post", f"callbacks/{rows[0].pk}/replay", {})
    assert (answer.status_code, answer.json()["detail"]) == (
        409,
        "This callback is running. Replay it when it has ended.",
    )
    assert Audit.objects.filter(event="replay_callback").count() == 0


def test_one_that_is_not_there_is_a_404(http: Any, rows: list[Callback]) -> None:
    assert http("post", "callbacks/99999/replay", {}).status_code == 404
    assert http.get("callbacks/99999").status_code == 404
