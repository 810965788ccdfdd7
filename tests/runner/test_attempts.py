"""What the end of an attempt makes of its row."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runner.conftest import Place, ti_of, until, xcom_of
from scheduler_app.executors.inline import InlineExecutor
from scheduler_app.models import (
    Asset,
    AssetEvent,
    Callback,
    RenderedFields,
    TaskInstance,
    TaskInstanceHistory,
    Trigger,
    Wake,
    db,
    transitions,
)
from tests import rows
from tests.shapes import shape

pytestmark = [pytest.mark.django_db, pytest.mark.processes]


def test_success_is_stored_with_what_the_task_pushed(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        @task
        def add(ti=None):
            print("hello from the task")
            ti.xcom_push("more", (1, 2))
            return {"sum": 1 + 2}
        add()
        """
    )
    (run,) = rows.trigger(place.stored(shape("add"), path))
    executor.accept(place.queued(run))
    executor.drain()
    ti = ti_of(run, "add")
    assert (ti.state, ti.try_number, ti.reason) == ("success", 1, None)
    assert xcom_of(run, "add") == {"sum": 3}
    assert xcom_of(run, "add", "more") == {"__type": "tuple", "__value": [1, 2]}
    assert "hello from the task" in place.log(ti)
    assert place.log(ti).endswith("INFO task: The task succeeded.\n")
    assert list(Wake.objects.filter(dag_run=run, reason="task_ended").values_list("task_id", flat=True)) == ["add"]
    assert RenderedFields.objects.get(task_instance=ti).fields["op_args"] == []


def test_a_failure_with_a_try_left_waits_for_its_retry(place: Place, executor: InlineExecutor) -> None:
    path = place.file("@task(retries=1)\ndef work():\n    raise ValueError('not today')\nwork()\n")
    dag = shape("work", tasks={"work": {"retries": 1, "retry_delay": 60.0, "callbacks": ("retry", "failure")}})
    (run,) = rows.trigger(place.stored(dag, path))
    executor.accept(place.queued(run))
    executor.drain()
    ti = ti_of(run, "work")
    assert (ti.state, ti.reason) == ("up_for_retry", "ValueError: not today")
    assert ti.next_at == ti.end_date + timedelta(seconds=60)
    assert list(TaskInstanceHistory.objects.values_list("state", "try_number", "reason")) == [
        ("failed", 1, "ValueError: not today")
    ]
    (callback,) = Callback.objects.all()
    assert (callback.kind, callback.dedupe_key) == ("task_retry", f"task_retry:{ti.pk}:1")
    assert callback.payload["error"]["type"] == "ValueError"


def test_the_last_failure_is_final_and_the_next_try_has_a_log_and_xcoms_of_its_own(
    place: Place, executor: InlineExecutor
) -> None:
    path = place.file(
        """
        @task(retries=1)
        def work(ti=None):
            print(f"this is try {ti.try_number}")
            found = ti.xcom_pull(task_ids="work", key="left")
            ti.xcom_push("left", f"by {ti.try_number} after {found}")
            raise ValueError
        work()
        """
    )
    dag = shape("work", tasks={"work": {"retries": 1, "retry_delay": 0.0, "callbacks": ("failure",)}})
    (run,) = rows.trigger(place.stored(dag, path))
    executor.accept(place.queued(run))
    executor.drain()
    assert xcom_of(run, "work", "left") == "by 1 after None"
    executor.accept(place.queued(run))
    executor.drain()
    ti = ti_of(run, "work")
    assert (ti.state, ti.try_number) == ("failed", 2)
    assert ti.reason == "ValueError\nTry 2 of 2 failed; no try is left."
    assert xcom_of(run, "work", "left") == "by 2 after None"
    assert "this is try 1" in place.log(ti, 1)
    assert "this is try 1" not in place.log(ti, 2)
    assert list(Callback.objects.values_list("kind", flat=True)) == ["task_failure"]


def test_a_task_that_kills_its_process_is_retried_with_the_signal_as_reason(
    place: Place, executor: InlineExecutor
) -> None:
    path = place.file("@task\ndef work():\n    os.kill(os.getpid(), signal.SIGKILL)\nwork()\n")
    dag = shape("work", tasks={"work": {"retries": 10, "retry_delay": 0.0}})
    (run,) = rows.trigger(place.stored(dag, path))
    executor.accept(place.queued(run))
    executor.drain()
    ti = ti_of(run, "work")
    assert ti.state == "up_for_retry"
    assert ti.reason.startswith("Its process was killed by signal 9 (SIGKILL), which the scheduler did not send: ")


def test_a_failure_that_forbids_a_retry_is_final(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        from airflow.exceptions import AirflowFailException
        @task
        def work():
            raise AirflowFailException("never again")
        work()
        """
    )
    dag = shape("work", tasks={"work": {"retries": 10}})
    (run,) = rows.trigger(place.stored(dag, path))
    executor.accept(place.queued(run))
    executor.drain()
    ti = ti_of(run, "work")
    assert ti.state == "failed"
    assert ti.reason.endswith("never again\nIt failed and asked for no further try.")


def test_a_branch_skips_its_followers_but_none_that_has_begun(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        @task.branch
        def choose():
            return "left"
        @task
        def left(): pass
        @task
        def right(): pass
        @task
        def busy(): pass
        choose() >> [left(), right(), busy()]
        """
    )
    dag = shape("choose >> [left, right, busy]")
    (run,) = rows.trigger(place.stored(dag, path))
    busy = place.queued(run, "busy")
    executor.accept(place.queued(run, "choose"))
    executor.drain()
    assert rows.states(run) == {"choose": "success", "left": None, "right": "skipped", "busy": "queued"}
    assert busy[0].fence == 1


def test_a_skip_is_a_skip(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        from airflow.exceptions import AirflowSkipException
        @task
        def work():
            raise AirflowSkipException("nothing to do")
        work()
        """
    )
    (run,) = rows.trigger(place.stored(shape("work"), path))
    executor.accept(place.queued(run))
    executor.drain()
    assert rows.states(run) == {"work": "skipped"}


def test_a_deferral_leaves_a_trigger_and_resumes_in_the_same_try(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        from airflow.sdk import BaseOperator
        from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
        class Waits(BaseOperator):
            def execute(self, context):
                self.defer(trigger=TimeDeltaTrigger(timedelta(hours=1)), method_name="later",
                           kwargs={"day": datetime(2026, 3, 1)}, timeout=timedelta(hours=2))
            def later(self, context, event=None, day=None):
                return f"resumed on {day:%Y-%m-%d} with {event}"
        Waits(task_id="work")
        """
    )
    (run,) = rows.trigger(place.stored(shape("work"), path))
    executor.accept(place.queued(run))
    executor.drain()
    ti = ti_of(run, "work")
    trigger = Trigger.objects.get()
    assert (ti.state, ti.trigger_id, ti.next_method) == ("deferred", trigger.pk, "later")
    assert trigger.dag_id == "dag"
    assert ti.trigger_timeout - ti.heartbeat_at > timedelta(minutes=119)
    now = db.clock()
    kwargs = ti.next_kwargs | {"event": "the bell"}
    TaskInstance.objects.filter(pk=ti.pk).update(next_kwargs=kwargs)
    transitions.tasks("resume", [ti.pk], now)
    transitions.tasks("queue", [ti.pk], now)
    ti.refresh_from_db()
    executor.accept([place.hand_out(ti)])
    executor.drain()
    ti.refresh_from_db()
    assert (ti.state, ti.try_number, ti.fence) == ("success", 1, 2)
    assert xcom_of(run, "work") == "resumed on 2026-03-01 with the bell"
    assert place.log(ti).count("The task waits for its trigger.") == 1
    assert place.log(ti).endswith("The task succeeded.\n")


def test_a_reschedule_keeps_the_try_and_says_when(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        from airflow.exceptions import AirflowRescheduleException
        from airflow.sdk import timezone
        @task
        def work():
            raise AirflowRescheduleException(timezone.datetime(2030, 1, 1))
        work()
        """
    )
    (run,) = rows.trigger(place.stored(shape("work"), path))
    executor.accept(place.queued(run))
    executor.drain()
    ti = ti_of(run, "work")
    assert (ti.state, ti.try_number, ti.next_at.year) == ("up_for_reschedule", 1, 2030)
    executor.accept(place.queued(run))
    executor.drain()
    ti.refresh_from_db()
    assert (ti.state, ti.try_number, ti.fence) == ("up_for_reschedule", 1, 2)


def test_outlets_become_events_of_their_assets(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        from airflow.sdk import Asset
        @task(outlets=[Asset("orders", uri="s3://bucket/orders")])
        def work(): pass
        work()
        """
    )
    (run,) = rows.trigger(place.stored(shape("work"), path))
    executor.accept(place.queued(run))
    executor.drain()
    asset = Asset.objects.get()
    assert (asset.name, asset.uri) == ("orders", "s3://bucket/orders")
    event = AssetEvent.objects.get()
    assert (event.asset_id, event.source_dag_id, event.source_task_id, event.source_run_id) == (
        asset.pk,
        "dag",
        "work",
        run.run_id,
    )


def test_what_a_task_pushes_is_there_before_it_ends(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        @task
        def work(ti=None):
            ti.xcom_push("early", "bird")
            while not os.path.exists(__file__ + ".go"):
                time.sleep(0.01)
        work()
        """
    )
    (run,) = rows.trigger(place.stored(shape("work"), path))
    executor.accept(place.queued(run))
    until(executor.step, lambda: xcom_of(run, "work", "early") == "bird")
    ti = ti_of(run, "work")
    assert ti.state == "running"
    assert ti.pid is not None
    path.with_name(path.name + ".go").touch()
    executor.drain()
    assert rows.states(run) == {"work": "success"}


def test_what_the_database_cannot_take_fails_that_task_alone(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        @task
        def good(ti=None):
            return "fine"
        @task
        def bad(ti=None):
            ti.xcom_push("x" * 600, 1)
        good()
        bad()
        """
    )
    (run,) = rows.trigger(place.stored(shape("good; bad"), path))
    executor.accept(place.queued(run))
    executor.drain()
    assert rows.states(run) == {"good": "success", "bad": "failed"}
    assert ti_of(run, "bad").reason.startswith("What the task pushed cannot be stored: ")
    assert xcom_of(run, "good") == "fine"


def test_odd_texts_survive_the_database(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        @task
        def push():
            return ["NUL \\0", "\\ud800", float("nan"), {1: "number"}]
        @task
        def pull(value):
            return [value[0] == "NUL \\0", value[1] == "\\ud800", value[2] != value[2], value[3] == {1: "number"}]
        pull(push())
        """
    )
    (run,) = rows.trigger(place.stored(shape("push >> pull"), path))
    for task_id in ("push", "pull"):
        executor.accept(place.queued(run, task_id))
        executor.drain()
    assert xcom_of(run, "pull") == [True, True, True, True]


def test_a_task_whose_file_is_gone_says_so(place: Place, executor: InlineExecutor) -> None:
    path = place.file("@task\ndef work(): pass\nwork()\n")
    (run,) = rows.trigger(place.stored(shape("work"), path))
    path.unlink()
    executor.accept(place.queued(run))
    executor.drain()
    ti = ti_of(run, "work")
    assert ti.state == "failed"
    assert ti.reason.startswith("The DAG file could not be imported: FileNotFoundError")
