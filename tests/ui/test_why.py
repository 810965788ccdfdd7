"""Each cause of "why is this not running?", provoked, and the answer that a person reads."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from scheduler_app.models import DagModel, DagRun, Job, Limit, LimitUse, Pool, TaskInstance, Trigger
from scheduler_app.queries import page_why, page_why_run
from scheduler_app.queries.page_why import Why
from tests.shapes import shape

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db
LEASE = timedelta(seconds=30)


@pytest.fixture(autouse=True)
def _alive() -> None:
    """A scheduler and its runner."""
    factory.make_job()
    factory.make_job("LocalTaskJob", executor_class="LocalExecutor", detail={"slots": 32})


def why(task_id: str, run: DagRun, **changes: Any) -> Why:
    TaskInstance.objects.filter(dag_run=run, task_id=task_id).update(**changes)
    instance = TaskInstance.objects.select_related("dag_run__dag").get(dag_run=run, task_id=task_id)
    found = page_why.why_task(instance, NOW, LEASE, TaskInstance.objects.all())
    assert found is not None
    return found


def headline(task_id: str, run: DagRun, **changes: Any) -> str:
    found = why(task_id, run, **changes).headline
    assert found is not None
    return found.text


def run_headline(run: DagRun) -> str | None:
    run = DagRun.objects.select_related("dag").get(pk=run.pk)
    found = page_why.why_run(run, NOW, LEASE)
    return found.headline.text if found and found.headline else None


def sales(states: dict[str, str | None] | None = None, state: str = "running", **fields: Any) -> DagRun:
    return factory.make_run(factory.make_dag("sales", **fields), "r1", state, states)


def test_nothing_in_the_way_is_said_as_such() -> None:
    run = sales()
    found = why("extract", run)
    assert found.headline is None
    assert [verdict.text for verdict in found.verdicts] == [
        "A scheduler is alive.",
        "The run is running.",
        "It has no upstream tasks.",
    ]


def test_no_scheduler() -> None:
    Job.objects.update(latest_heartbeat=NOW - timedelta(minutes=1))
    run = sales()
    text = "No scheduler is running, so nothing starts. Start one: python manage.py runscheduler"
    assert (headline("extract", run), run_headline(run)) == (text, text)


def test_a_paused_dag_is_the_reason_although_the_run_is_queued() -> None:
    run = sales(state="queued", is_paused=True)
    text = "The DAG is paused: unpause it to let its runs go on."
    assert (headline("extract", run), run_headline(run)) == (text, text)


def test_an_upstream_that_has_not_ended() -> None:
    run = sales({"extract": "success", "clean": "running", "check": "success"})
    assert headline("load", run) == "It waits for every upstream to succeed; clean (running) has not ended."
    assert run_headline(run) is None


def test_a_trigger_rule_that_waits_for_a_failure() -> None:
    document = shape("a >> b", "sales", {"b": {"trigger_rule": "one_failed"}})
    run = factory.make_run(factory.make_dag("sales", document), "r1", "running", {"a": "running"})
    assert headline("b", run) == "It waits for one upstream to fail; a (running) has not ended."


def test_a_full_pool_names_its_holders_and_who_comes_before() -> None:
    Pool.objects.create(pool="warehouse", slots=2)
    run = sales({"clean": "running", "check": "queued", "load": "scheduled", "extract": "scheduled"})
    rows = TaskInstance.objects.filter(dag_run=run)
    rows.update(pool="warehouse")
    rows.filter(task_id="extract").update(priority_weight=5)
    found = why("load", run)
    assert found.headline is not None
    assert found.headline.text == (
        "Pool warehouse has 0 of 2 slots free; it needs 1. It waits for clean (running), check (queued)."
    )
    assert found.verdicts[-1].text == "1 task comes before it in pool warehouse, by priority or by age."


def test_a_full_limit_names_its_holders() -> None:
    Limit.objects.create(name="warehouse", amount=2)
    run = sales({"clean": "running", "check": "queued", "load": "scheduled"})
    TaskInstance.objects.filter(dag_run=run, task_id__in=["clean", "check"]).update(limits="warehouse=1")
    found = headline("load", run, limits="crm=1,warehouse=1")
    assert found == "Limit crm does not exist: create it, or take it out of the task's limits."
    Limit.objects.create(name="crm", amount=9)
    assert headline("load", run) == (
        "Limit warehouse has 2, and 2 are taken. It waits for clean (running), check (queued)."
    )


def test_a_rate_that_is_used_up_says_until_when() -> None:
    crm = Limit.objects.create(name="crm", amount=1, per_seconds=60.0)
    LimitUse.objects.create(limit=crm, at=NOW - timedelta(seconds=20), units=1)
    run = sales({"load": "scheduled"})
    found = why("load", run, limits="crm=1").headline
    assert found is not None
    assert found.text.startswith("Rate crm lets 1 start happen in 60 s, and 1 have happened. The next may at ")
    assert found.facts["until"] == (NOW + timedelta(seconds=40)).isoformat()


def test_the_holders_that_a_reader_may_not_see_are_not_named() -> None:
    Pool.objects.create(pool="warehouse", slots=1)
    run = sales({"load": "scheduled"})
    secret = factory.make_run(factory.make_dag("secret"), "r1", "running", {"extract": "running"})
    TaskInstance.objects.update(pool="warehouse")
    instance = TaskInstance.objects.select_related("dag_run__dag").get(dag_run=run, task_id="load")
    found = page_why.why_task(instance, NOW, LEASE, TaskInstance.objects.filter(dag_id="sales"))
    assert found is not None
    assert found.headline is not None
    assert found.headline.text == "Pool warehouse has 0 of 1 slots free; it needs 1."
    assert secret.dag_id not in str(found)


def test_a_pool_that_is_too_small_for_ever() -> None:
    Pool.objects.create(pool="tiny", slots=1)
    text = "It can never run: it needs 2 slots of pool tiny, which has 1."
    run = sales({"load": "scheduled"})
    assert headline("load", run, pool="tiny", pool_slots=2) == text
    assert headline("load", run, pool="gone") == ("Pool gone does not exist: create it, or give the task another pool.")


def test_max_active_tasks_names_what_is_active() -> None:
    run = sales({"extract": "running", "check": "scheduled"}, max_active_tasks=1)
    assert headline("check", run) == (
        "1 active task of its run, and max_active_tasks is 1. It waits for extract (running)."
    )


def test_max_active_runs_names_the_runs_that_hold_it() -> None:
    dag = factory.make_dag("sales", max_active_runs=2)
    for number in range(2):
        factory.make_run(dag, f"busy{number}", "running", at=NOW - timedelta(hours=3 - number))
    factory.make_run(dag, "backfill", "running", at=NOW - timedelta(hours=5), run_type="backfill", backfill_id=1)
    factory.make_run(dag, "sooner", "queued", at=NOW - timedelta(minutes=5))
    run = factory.make_run(dag, "r1", "queued")
    text = (
        "As many runs of the DAG are running as its max_active_runs allows (2): busy0, busy1. "
        "It starts when one of them ends."
    )
    assert (headline("extract", run), run_headline(run)) == (text, text)
    places = [verdict.text for verdict in why("extract", run).verdicts if verdict.code == "place"]
    assert places == ["1 queued run starts before it."]


def test_a_retry_that_is_due_later() -> None:
    run = sales({"extract": "up_for_retry"})
    assert headline("extract", run) == "It waits for its next try at 2030-01-31 12:05:00 UTC. Clear it to try at once."
    assert run_headline(run) == (
        "extract: It waits for its next try at 2030-01-31 12:05:00 UTC. Clear it to try at once."
    )


def test_a_sensor_that_looks_again_later() -> None:
    run = sales({"extract": "up_for_reschedule"})
    later = NOW + timedelta(seconds=90)
    assert headline("extract", run, next_at=later) == "It waits for its next poke at 2030-01-31 12:01:30 UTC."


def test_a_held_run_says_who_why_and_until_when() -> None:
    run = sales()
    until = NOW + timedelta(hours=2)
    DagRun.objects.update(held_at=NOW, held_by="ann", held_why="the feed is late", held_until=until)
    run.refresh_from_db()
    text = "ann holds this run until 2030-01-31 14:00:00 UTC: “the feed is late”. Release it to let it go on."
    assert (headline("extract", run), run_headline(run)) == (text, text)


def test_a_hold_whose_end_has_passed_is_none() -> None:
    run = sales()
    DagRun.objects.update(held_at=NOW, held_by="ann", held_why="x", held_until=NOW)
    assert why("extract", run).headline is None


def test_a_held_task() -> None:
    run = sales()
    text = "bob holds this task: “wrong rates”. Release it to let it go on."
    assert headline("extract", run, held_at=NOW, held_by="bob", held_why="wrong rates") == text


def test_a_logical_date_in_the_future() -> None:
    run = sales()
    DagRun.objects.update(logical_date=NOW + timedelta(days=1))
    run.refresh_from_db()
    assert headline("extract", run) == (
        "The run's logical date 2030-02-01 12:00:00 UTC lies in the future; it executes nothing before. "
        "With the setting SCHEDULER_ALLOW_FUTURE_LOGICAL_DATES such runs do not wait."
    )


def test_a_run_that_is_not_due() -> None:
    run = sales(state="queued")
    DagRun.objects.update(run_after=NOW + timedelta(minutes=10))
    run.refresh_from_db()
    assert headline("extract", run) == "The run is due at 2030-01-31 12:10:00 UTC."


def test_depends_on_past_names_the_run_before() -> None:
    document = shape("a >> b", "sales", {"a": {"depends_on_past": True}})
    dag = factory.make_dag("sales", document)
    factory.make_run(dag, "yesterday", "failed", {"a": "failed"}, at=NOW - timedelta(days=1))
    run = factory.make_run(dag, "r1")
    assert headline("a", run) == (
        "It depends on its past: in the previous run yesterday, 1 of its 1 instance did not end in success or skipped. "
        "Clear or mark it there."
    )


def test_a_run_without_room_names_the_one_that_waits_for_it() -> None:
    document = shape("a >> b", "sales", {"a": {"depends_on_past": True}})
    dag = factory.make_dag("sales", document, max_active_runs=1)
    later = factory.make_run(dag, "later", "running", at=NOW - timedelta(hours=1))
    run = factory.make_run(dag, "r1", "queued", logical_date=NOW - timedelta(days=1))
    assert run_headline(run) == (
        "Run later has the room, waits for this one (depends_on_past) and is due before it, so neither goes on by "
        "itself. Raise max_active_runs above 1; or fail later, and clear it when this run has ended."
    )
    later.delete()
    factory.make_run(dag, "later", "running", {"a": "running"}, at=NOW - timedelta(hours=1))
    assert str(run_headline(run)).startswith("As many runs of the DAG are running as its max_active_runs allows (1)")


def test_a_full_executor_says_how_many_slots_are_taken() -> None:
    runner = Job.objects.filter(job_type="LocalTaskJob")
    runner.update(detail={"slots": 1})
    run = sales({"extract": "running", "check": "scheduled"})
    assert headline("check", run) == "It waits for a free slot of LocalExecutor. 1 slot of its runners is taken."
    runner.update(detail={"slots": 2})
    assert why("check", run).headline is None


def test_an_executor_without_a_runner() -> None:
    Job.objects.filter(job_type="LocalTaskJob").update(latest_heartbeat=NOW - timedelta(minutes=1))
    assert headline("check", sales({"check": "scheduled"})) == (
        "It waits for a free slot of LocalExecutor. No runner of LocalExecutor is alive: "
        "each scheduler starts one, so its log says why there is none."
    )


def test_an_executor_that_no_scheduler_has() -> None:
    text = "No running scheduler has the executor SparkExecutor: start one that has, or give the task another."
    assert headline("check", sales({"check": "scheduled"}), executor="SparkExecutor") == text


def test_celery_without_a_worker_and_with_a_full_one(settings: Any) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "executor": "LocalExecutor,CeleryExecutor"}
    run = sales({"extract": "running", "check": "scheduled"})
    TaskInstance.objects.update(executor="CeleryExecutor", queue="etl")
    assert headline("check", run) == (
        "It waits for a free slot of CeleryExecutor. No Celery worker is alive. "
        "Start one: celery -A scheduler_app worker -Q etl"
    )
    worker: dict[str, Any] = {"executor_class": "CeleryExecutor", "detail": {"slots": 1, "queues": ["etl"]}}
    factory.make_job("CeleryWorkerJob", **worker)
    assert headline("check", run) == "It waits for a free slot of CeleryExecutor. 1 slot of 1 worker is taken."
    factory.make_job("CeleryWorkerJob", **worker)
    assert why("check", run).headline is None


def test_a_message_in_a_queue_that_nobody_hears(settings: Any) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "executor": "CeleryExecutor"}
    run = sales({"extract": "queued"})
    handed = {"queue": "gpu", "handed_out_at": NOW - timedelta(seconds=40)}
    factory.make_job("CeleryWorkerJob", executor_class="CeleryExecutor", detail={"slots": 4, "queues": ["default"]})
    text = "No worker listens to its queue gpu (1 worker listens to others). "
    assert headline("extract", run, **handed) == text + "Start one: celery -A scheduler_app worker -Q gpu"
    factory.make_job("CeleryWorkerJob", executor_class="CeleryExecutor", detail={"slots": 4, "queues": ["gpu"]})
    found = why("extract", run)
    assert found.headline is not None
    assert found.headline.text == "It waits in queue gpu of the broker for a worker to take it, for 40 s now."
    assert "1 worker listens to queue gpu, with 4 slots." in [verdict.text for verdict in found.verdicts]


def test_slots_that_are_kept_for_a_wide_task_name_it() -> None:
    Pool.objects.create(pool="warehouse", slots=3)
    run = sales({"extract": "running", "check": "scheduled", "load": "scheduled"})
    TaskInstance.objects.update(pool="warehouse", scheduled_when=NOW)
    wide = TaskInstance.objects.filter(task_id="load")
    wide.update(pool_slots=3, scheduled_when=NOW - timedelta(minutes=5))
    assert headline("check", run) == (
        "The free slots of pool warehouse are kept for load (3 slots, since 2030-01-31 11:55:00 UTC), "
        "which needs several and waited long."
    )


def test_queued_without_a_runner_and_with_one() -> None:
    run = sales({"extract": "queued"})
    handed = NOW - timedelta(seconds=40)
    text = "A runner has it and starts its process, for 40 s now."
    assert headline("extract", run, handed_out_at=handed) == text
    Job.objects.filter(job_type="LocalTaskJob").delete()
    text = (
        "No runner of LocalExecutor is alive that could start it. Its scheduler starts another and hands it out again."
    )
    assert headline("extract", run) == text
    assert headline("extract", run, handed_out_at=None).startswith("It has its slots and waits to be handed to Local")


def test_a_running_task_whose_worker_fell_silent() -> None:
    run = sales({"extract": "running"})
    instance = TaskInstance.objects.select_related("dag_run__dag").get(task_id="extract")
    assert page_why.why_task(instance, NOW, LEASE, TaskInstance.objects.all()) is None
    assert headline("extract", run, heartbeat_at=NOW - timedelta(seconds=45)) == (
        "Its worker on worker-1 has not been heard for 45 s. After 60 s it counts as lost: "
        "then its next try starts, or it fails."
    )


def test_a_run_of_which_nothing_runs_gives_the_reason_of_its_nearest_task() -> None:
    run = sales({"extract": "success", "check": "scheduled"})
    TaskInstance.objects.filter(task_id="check").update(pool="gone")
    run = DagRun.objects.select_related("dag").get(pk=run.pk)
    found = page_why.why_run(run, NOW, LEASE, TaskInstance.objects.all())
    assert found is not None
    assert found.headline is not None
    assert found.headline.text == "check: Pool gone does not exist: create it, or give the task another pool."
    assert found.verdicts[-1].text == "None of its tasks runs now: 1 waits for a slot, 2 have not been scheduled."


def test_a_run_that_waits_for_its_past_says_so() -> None:
    document = shape("a >> b", "sales", {"b": {"depends_on_past": True}})
    dag = factory.make_dag("sales", document)
    factory.make_run(dag, "yesterday", "failed", {"a": "success", "b": "failed"}, at=NOW - timedelta(days=1))
    run = factory.make_run(dag, "r1", "running", {"a": "success"})
    assert run_headline(run) == (
        "b: It depends on its past: in the previous run yesterday, 1 of its 1 instance did not end in success or "
        "skipped. Clear or mark it there."
    )


def test_a_run_whose_only_task_is_held_says_so() -> None:
    run = factory.make_run(factory.make_dag("sales", shape("a", "sales")), "r1", "running")
    TaskInstance.objects.update(held_at=NOW, held_by="bob", held_why="wrong rates")
    assert run_headline(run) == "a: bob holds this task: “wrong rates”. Release it to let it go on."


def test_with_the_setting_a_logical_date_in_the_future_is_no_reason(settings: Any) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "allow_future_logical_dates": True}
    run = sales()
    DagRun.objects.update(logical_date=NOW + timedelta(days=1))
    run.refresh_from_db()
    assert why("extract", run).headline is None


def test_deferred_without_a_triggerer_and_with_one() -> None:
    run = sales({"extract": "deferred"})
    text = "It is deferred, and no triggerer is running. Start one: python manage.py runtriggerer"
    assert headline("extract", run) == text
    factory.make_job("TriggererJob")
    assert headline("extract", run) == "It is deferred: a triggerer waits for its trigger."
    trigger = Trigger.objects.create(classpath="airflow.triggers.temporal.DateTimeTrigger", created_date=NOW)
    text = "It is deferred to DateTimeTrigger, which no triggerer has taken yet."
    assert headline("extract", run, trigger_id=trigger.pk) == text
    Trigger.objects.update(triggerer_id=1)
    assert headline("extract", run) == "It is deferred: a triggerer waits for DateTimeTrigger."
    Trigger.objects.update(classpath="airflow.providers.standard.triggers.hitl.HITLTrigger")
    assert headline("extract", run) == "It asks a question and waits for a person to answer it."


def test_a_run_whose_look_failed() -> None:
    run = sales()
    DagRun.objects.update(look_error="KeyError: 'x'", backoff_until=NOW + timedelta(minutes=1))
    assert run_headline(run) == "The scheduler could not look at the run: KeyError: 'x'"


def test_a_run_that_runs_or_has_ended_is_not_asked() -> None:
    assert run_headline(sales({"extract": "running"})) is None
    ended = factory.make_run(factory.make_dag("other"), "r1", "failed")
    assert page_why.why_run(DagRun.objects.select_related("dag").get(pk=ended.pk), NOW, LEASE) is None


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"is_paused": True}, "It is paused: switch it on to get scheduled runs."),
        ({"is_stale": True}, "No file defines it any more: bring back sales.py to get new runs."),
        ({"schedule_error": "bad cron"}, "Its next run could not be made: bad cron"),
        ({}, "It has no schedule: runs are triggered by hand or by other DAGs."),
        ({"timetable": {"kind": "asset"}}, "It has no clock: a run is made when its assets were updated."),
        ({"timetable": {"kind": "once"}}, "Its schedule has no further date."),
        ({"end_date": NOW - timedelta(days=1)}, "Its end date has passed: 2030-01-30 12:00:00 UTC."),
        (
            {"start_date": NOW + timedelta(days=1), "next_dagrun_run_after": NOW + timedelta(days=1)},
            "Its start date lies in the future: 2030-02-01 12:00:00 UTC.",
        ),
        ({"next_dagrun_run_after": NOW + timedelta(minutes=1)}, None),
        ({"next_dagrun_run_after": NOW}, None),
        (
            {"next_dagrun_run_after": NOW, "max_active_runs": 1},
            (
                "1 run of it has not ended, and max_active_runs is 1: the slot waits until one ends, or until it is "
                "raised."
            ),
        ),
        (
            {"held_at": NOW, "held_by": "ann", "held_why": "month end"},
            "ann holds new runs: “month end”. Release it to let it go on.",
        ),
    ],
)
def test_why_a_dag_gets_no_run(fields: dict[str, Any], text: str | None) -> None:
    dag = factory.make_dag("sales", **fields)
    factory.make_run(dag, "r1", "queued")
    found = page_why_run.why_no_run(DagModel.objects.get(), NOW)
    assert (found.text if found else None) == text


def test_the_command_prints_the_reason_first(capsys: pytest.CaptureFixture[str]) -> None:
    run = sales({"extract": "up_for_retry"})
    call_command("tasks", "why", "sales", run.run_id, "extract")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "no   It waits for its next try at 2030-01-31 12:05:00 UTC. Clear it to try at once."
    assert len(lines) == 5
    call_command("tasks", "why", "sales", run.run_id)
    assert "no   extract: It waits for its next try" in capsys.readouterr().out
    with pytest.raises(CommandError, match="no such run or task"):
        call_command("tasks", "why", "sales", run.run_id, "nope")


def test_the_answers_cost_a_fixed_number_of_queries(django_assert_max_num_queries: Any) -> None:
    Pool.objects.create(pool="warehouse", slots=1)
    names = [f"t{number}" for number in range(60)]
    document = factory.spec("sales", f"a >> [{', '.join(names)}]")
    run = factory.make_run(
        factory.make_dag("sales", document), "r1", "running", {"a": "success"} | dict.fromkeys(names, "scheduled")
    )
    TaskInstance.objects.update(pool="warehouse")
    instance = TaskInstance.objects.select_related("dag_run__dag").get(dag_run=run, task_id="t9")
    with django_assert_max_num_queries(12):
        page_why.why_task(instance, NOW, LEASE, TaskInstance.objects.all())
    with django_assert_max_num_queries(16):
        page_why.why_run(instance.dag_run, NOW, LEASE, TaskInstance.objects.all())


def test_with_ageing_the_place_counts_who_has_waited_long(settings: Any) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "priority_ageing_seconds": 60.0}
    Pool.objects.create(pool="warehouse", slots=1)
    run = sales({"clean": "running", "check": "scheduled", "load": "scheduled", "extract": "scheduled"})
    rows = TaskInstance.objects.filter(dag_run=run)
    rows.update(pool="warehouse", scheduled_when=NOW)
    rows.filter(task_id="check").update(priority_weight=9)
    rows.filter(task_id="extract").update(scheduled_when=NOW - timedelta(minutes=20))
    found = why("load", run, priority_weight=4, scheduled_when=NOW - timedelta(minutes=6))
    assert found.verdicts[-1].facts["ahead"] == 1
