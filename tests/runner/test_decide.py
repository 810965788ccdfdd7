"""What the end of an attempt means for its row: pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.engine.dag import Task
from scheduler_app.engine.retries import Interrupted, begins_again
from scheduler_app.runner.claims import Claim, dag_file
from scheduler_app.runner.decide import Decision, decide, storable
from scheduler_app.supervisor.base import Exit

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def claim(task: Task | None, try_number: int = 1, max_tries: int = 0) -> Claim:
    file = dag_file("/dags/a/f.py", "a/f.py")
    return Claim(1, 1, 1, "dag", "run", "work", -1, try_number, max_tries, task, file, {})


def decided(outcome: dict[str, Any] | None, state: str = "running", exit_text: str = "", **more: Any) -> Decision:
    task = Task("work", retries=more.get("max_tries", 0), retry_delay=60.0)
    return decide(claim(task, **more), outcome, exit_text, state, NOW)


FAILED = {"state": "failed", "retry": True, "error": {"type": "ValueError", "message": "no"}}


@pytest.mark.parametrize("outcome", [{"state": "success"}, FAILED, None])
def test_a_cleared_task_is_tried_again_at_once_whatever_it_said(outcome: dict[str, Any] | None) -> None:
    decision = decided(outcome, state="restarting")
    assert decision == Decision("retry", {"next_at": NOW, "reason": "It was cleared while it ran."}, cleared=True)


def test_a_failure_is_retried_while_a_try_is_left() -> None:
    decision = decided(FAILED, max_tries=1)
    assert decision.verb == "retry"
    assert decision.columns["next_at"] == NOW + timedelta(seconds=60)
    assert decision.columns["reason"] == "ValueError: no"
    assert decided(FAILED, max_tries=1, try_number=2).verb == "fail"


def test_the_attempt_may_ask_for_its_own_delay_or_for_no_try_at_all() -> None:
    assert decided({**FAILED, "retry_delay": 5}, max_tries=1).columns["next_at"] == NOW + timedelta(seconds=5)
    final = decided({**FAILED, "retry": False}, max_tries=9)
    assert (final.verb, final.callback) == ("fail", "failure")


def test_a_death_without_a_word_is_a_failure_with_its_reason() -> None:
    decision = decided(None, exit_text="Killed by signal 9 (SIGKILL)", max_tries=1)
    assert (decision.verb, decision.columns["reason"]) == ("retry", "Killed by signal 9 (SIGKILL)")


def interrupted(outcome: dict[str, Any] | None, again: bool, **more: Any) -> Decision:
    task = Task("work", retries=1, retry_delay=60.0)
    return decide(claim(task, **more), outcome, "Stopped.", "running", NOW, stopped_for="stopped", again=again)


@pytest.mark.parametrize("outcome", [None, FAILED])
def test_a_try_that_a_shutdown_interrupted_does_not_count(outcome: dict[str, Any] | None) -> None:
    decision = interrupted(outcome, True, try_number=2, max_tries=1)
    assert (decision.verb, decision.callback) == ("retry", "retry")
    assert (decision.columns["next_at"], decision.columns["max_tries"]) == (NOW, 2)


def test_where_it_counts_it_is_a_failed_try_like_any_other() -> None:
    assert interrupted(None, False, max_tries=1).columns["next_at"] == NOW + timedelta(seconds=60)
    assert interrupted(None, False).columns["reason"].endswith("clear it if it may run twice.")


def test_what_ends_by_itself_before_a_shutdown_ends_it_ends_so() -> None:
    assert interrupted({"state": "success"}, True).verb == "succeed"
    assert interrupted({**FAILED, "retry": False}, True).verb == "fail"


@pytest.mark.parametrize(
    ("rule", "retries", "again"),
    [("with_retries", 1, True), ("with_retries", 0, False), ("all", 0, True), ("none", 3, False)],
)
def test_whether_a_task_begins_again_that_a_shutdown_interrupted(rule: Interrupted, retries: int, again: bool) -> None:
    assert begins_again(Task("work", retries=retries), rule) == again
    assert not begins_again(None, rule)


def test_a_failed_task_that_left_its_dag_ends() -> None:
    assert decide(claim(None, max_tries=5), FAILED, "", "running", NOW).verb == "fail"


def test_a_deferral_counts_its_time_out_from_now() -> None:
    defer = {"classpath": "a.B", "kwargs": {}, "next_method": "go", "next_kwargs": None, "timeout": 30}
    decision = decided({"state": "deferred", "defer": defer})
    assert decision.columns == {
        "trigger_timeout": NOW + timedelta(seconds=30),
        "next_method": "go",
        "next_kwargs": {},
    }
    assert decided({"state": "deferred", "defer": {**defer, "timeout": None}}).columns["trigger_timeout"] is None


def test_a_deferral_whose_time_out_reaches_beyond_the_calendar_fails_and_says_so() -> None:
    defer = {"classpath": "a.B", "kwargs": {}, "next_method": "go", "next_kwargs": None}
    timeout = timedelta.max.total_seconds()
    decision = decided({"state": "deferred", "defer": {**defer, "timeout": timeout}}, max_tries=3)
    assert decision.verb == "fail"
    assert "reaches beyond the calendar: make it shorter" in decision.columns["reason"]


def test_texts_are_made_fit_for_the_database() -> None:
    assert storable("a\0b\ud800c ü") == "a\\x00b\\ud800c ü"


@pytest.mark.parametrize(
    ("exit", "text"),
    [
        (Exit(0), "its process exited with code 0"),
        (Exit(-9), "its process was killed by signal 9 (SIGKILL)"),
        (Exit(None), "its process is gone"),
        (Exit(1, "the file cannot be imported"), "the file cannot be imported"),
    ],
)
def test_the_end_of_a_process_in_words(exit: Exit, text: str) -> None:
    assert exit.text == text


@pytest.mark.parametrize(
    ("fileloc", "relative", "folder"),
    [("/dags/a/f.py", "a/f.py", "/dags"), ("/dags/f.py", "f.py", "/dags"), ("/dags/a/f.py", "", "/dags/a")],
)
def test_the_folder_of_a_file_is_what_stands_before_its_relative_path(fileloc: str, relative: str, folder: str) -> None:
    assert dag_file(fileloc, relative).folder == folder
