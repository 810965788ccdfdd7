"""The quiet end of a world: no more faults, everybody helps, and then nothing may be left over."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from scheduler_app.actions import backfills, mark, pause, runs, selection
from scheduler_app.engine import states
from scheduler_app.engine.assets import AssetKey, satisfied
from scheduler_app.models import AssetAlias, Backfill, DagModel, DagRun, TaskInstance, db, schedules
from scheduler_app.models.asset import AssetQueuedEvent, PartitionEvent
from scheduler_app.timetables import from_doc

from . import attempts, people, poison, schedulers, slots, triggerers
from .cast import PARTS, POOLS

if TYPE_CHECKING:
    from .world import World


def calm_down(world: World) -> None:
    """Nobody is stopped any more; what people had closed is opened; schedules come to their end now."""
    if world.under_way is not None:
        world.note("it goes on", world.land())
    world.faults = False
    people.release_all(world)
    for name, size in POOLS.items():
        world.do(people.resize(world, name, size, world.now))
    for part in world.parts:
        # an older run that was cleared, behind newer ones which wait for it and are as many as may run, needs a person
        if part.dag_id == "chained" and world.max_active_runs[part.dag_id].value < 5:
            world.do(people.store_file(world, part, world.versions[part.dag_id]))
    for dag_id, run_id in DagRun.objects.filter(pk__in=world.left_ended, state__in=states.RUN_FINISHED).values_list(
        "dag_id", "run_id"
    ):
        runs.mark_run(people.PERSON, dag_id, run_id, "queued", world.now)
    for row in Backfill.objects.unfinished().filter(is_paused=True):
        backfills.set_paused(people.PERSON, row.pk, False, world.now)
    for dag in DagModel.objects.order_by("pk"):
        if dag.pk not in world.spoilt:
            _end_schedule(world, dag)
    world.beat()


def _end_schedule(world: World, dag: DagModel) -> None:
    """Its author gives it an end; what was wrong with the old schedule is forgotten, as with any other one."""
    dag.end_date = world.now
    schedules.plan_next(dag, world.now)
    dag.schedule_error, dag.schedule_failures, dag.backoff_until = None, 0, None
    errors = ("schedule_error", "schedule_failures", "backoff_until")
    dag.save(update_fields=["end_date", *schedules.NEXT_COLUMNS, *errors])


def mend(world: World) -> None:
    """The last thing that is spoilt, where all the others have come to their end; its author stores the file anew."""
    for dag_id in sorted(world.spoilt):
        world.note("mends", world.do(poison.mend(world, dag_id)))
        world.do(people.store_file(world, PARTS[dag_id], world.versions[dag_id]))
        _end_schedule(world, DagModel.objects.get(pk=dag_id))


def one_pass(world: World) -> int:
    """Every process does what there is to do; how much that was."""
    done = 0
    if not any(scheduler.alive for scheduler in world.schedulers):
        schedulers.start(world)
    paused = DagModel.objects.filter(is_paused=True).values_list("pk", flat=True)
    pause.set_paused_many(people.PERSON, list(paused), False, world.now)
    scheduler = world.rng.choice([one for one in world.schedulers if one.alive])
    scheduler.executor.broker = "fine"
    done += scheduler.loop.tick(schedulers.a_tick(world, scheduler))
    world.note("tick", f"{scheduler}: {done}")
    for attempt in list(world.attempts):
        if attempt.life == "alive" and attempt in world.attempts:
            done += 1
            world.do(attempts.begin_one(world, attempt) if attempt.claim is None else attempts.end_well(world, attempt))
    done += _triggers(world) + _forgive(world)
    world.check()
    return done


def _triggers(world: World) -> int:
    if "deferring" not in {part.dag_id for part in world.parts}:
        return 0
    if not world.triggerers:
        triggerers.start(world)
    before = sum(len(one.held) for one in world.triggerers)
    for one in world.triggerers:
        world.do(triggerers.claim(world, one))
        fired = triggerers.fire(world, one)
        if not isinstance(fired, str):
            world.do(fired)
        world.do(triggerers.renew(world, one))
    return before


def _forgive(world: World) -> int:
    """A failed task on whose success the next run depends blocks that run until a person says that it is good."""
    found = TaskInstance.objects.filter(dag_id="chained", dag_run__state__in=states.RUN_FINISHED)
    bad = list(
        found.exclude(state__in=["success", "skipped", "removed"])
        .order_by("pk")
        .values_list("dag_run__run_id", "task_id", "dag_id")
    )
    for run_id, task_id, dag_id in bad:
        wanted = selection.Wanted(dag_id, tasks=[task_id], runs=[run_id])
        world.do(people.asked(world, "", lambda wanted=wanted: mark.mark(people.PERSON, wanted, "success", world.now)))
    return len(bad)


def is_over(world: World) -> bool:
    """Of all DAGs but those that are spoilt."""
    rows = db.fetch(
        "SELECT EXISTS (SELECT 1 FROM scheduler_dag_run WHERE state IN ('queued', 'running')"
        " AND dag_id <> ALL(%(spoilt)s))"
        " OR EXISTS (SELECT 1 FROM scheduler_backfill WHERE completed_at IS NULL AND dag_id <> ALL(%(spoilt)s))"
        " OR EXISTS (SELECT 1 FROM scheduler_dag WHERE next_dagrun_run_after <= %(now)s AND dag_id <> ALL(%(spoilt)s))",
        {"now": world.now, "spoilt": sorted(world.spoilt)},
    )
    return not rows[0][0]


#: Invariant, what should not be there at the end, and the statement that finds it.
LEFT_OVER: tuple[tuple[str, str, str], ...] = (
    (
        "I3",
        "task instances of ended runs that are open",
        """SELECT id, dag_id, task_id, state FROM scheduler_task_instance WHERE state IS NULL
           OR state NOT IN ('success', 'failed', 'skipped', 'upstream_failed', 'removed')""",
    ),
    (
        "I3",
        "slots of backfills that nobody decided on",
        "SELECT backfill_id, ordinal FROM scheduler_backfill_slot WHERE outcome IS NULL",
    ),
    (
        "I3",
        "deadlines that nobody looked at when their time came",
        "SELECT id, due_at FROM scheduler_deadline WHERE missed_at IS NULL AND due_at <= %(now)s",
    ),
    (
        "I3",
        "triggers that nobody waits for",
        """SELECT id FROM scheduler_trigger t WHERE NOT EXISTS (
           SELECT 1 FROM scheduler_task_instance ti WHERE ti.trigger_id = t.id)""",
    ),
    ("I5", "errors of DAGs", "SELECT dag_id, schedule_error FROM scheduler_dag WHERE schedule_error IS NOT NULL"),
    ("I5", "errors of runs", "SELECT id, look_error FROM scheduler_dag_run WHERE look_error IS NOT NULL"),
    ("I5", "errors of backfills", "SELECT id, error FROM scheduler_backfill WHERE error IS NOT NULL"),
    (
        "I8",
        "asset events that set off two runs of a DAG",
        """SELECT l.assetevent_id, r.dag_id, count(*) FROM scheduler_asset_event_run l
           JOIN scheduler_dag_run r ON r.id = l.dagrun_id GROUP BY 1, 2 HAVING count(*) > 1""",
    ),
    (
        "I8",
        "asset runs without an event",
        """SELECT id, dag_id FROM scheduler_dag_run r WHERE run_type = 'asset_triggered'
           AND NOT EXISTS (SELECT 1 FROM scheduler_asset_event_run l WHERE l.dagrun_id = r.id)""",
    ),
    (
        "I8",
        "missed deadlines that did not ask for their callback",
        """SELECT x.id FROM scheduler_deadline x WHERE x.missed_at IS NOT NULL AND x.kind = 'run'
           AND NOT EXISTS (SELECT 1 FROM scheduler_callback c WHERE c.dedupe_key = 'deadline:' || x.id)""",
    ),
    (
        "I8",
        "ended runs whose end asked for no callback",
        """SELECT r.id, r.state FROM scheduler_dag_run r
           WHERE r.dag_id = 'diamond' AND r.moved_by IN ('succeed', 'fail')
           AND NOT EXISTS (SELECT 1 FROM scheduler_callback c WHERE c.dag_run_id = r.id
                           AND c.kind = CASE r.state WHEN 'success' THEN 'dag_success' ELSE 'dag_failure' END)""",
    ),
)


def check(world: World) -> None:
    """Everything has ended: what must be there once is there once, what must be gone is gone."""
    world.check()
    for invariant, what, sql in LEFT_OVER:
        found = db.fetch(sql, {"now": world.now})
        if found:
            world.fail(invariant, f"{what}: {found[:10]}")
    _check_queued_events(world)
    slots.check(world)
    _check_callbacks(world)
    _check_shadow(world)


def _check_queued_events(world: World) -> None:
    """What is still queued, or has come of a partition, does not fulfil the condition of its DAG."""
    aliases: dict[str, set[AssetKey]] = defaultdict(set)
    for alias, *asset in AssetAlias.objects.filter(assets__isnull=False).values_list(
        "name", "assets__name", "assets__uri"
    ):
        aliases[alias].add(AssetKey(*asset))
    queued: dict[str, set[AssetKey]] = defaultdict(set)
    for dag_id, *asset in AssetQueuedEvent.objects.values_list("dag_id", "asset__name", "asset__uri"):
        queued[dag_id].add(AssetKey(*asset))
    for dag_id, assets in queued.items():
        timetable = PARTS[dag_id].fields["timetable"]
        if timetable["kind"] == "partitioned" or satisfied(timetable["condition"], assets, aliases):
            world.fail("I8", f"{dag_id} has {assets} queued, which is enough for a run")
    pending: dict[tuple[str, str], dict[AssetKey, list[str]]] = defaultdict(lambda: defaultdict(list))
    rows = PartitionEvent.objects.values_list("dag_id", "partition_key", "source_key", "asset__name", "asset__uri")
    for dag_id, key, source, *asset in rows:
        pending[dag_id, key][AssetKey(*asset)].append(source)
    for (dag_id, key), received in pending.items():
        if from_doc(PARTS[dag_id].fields["timetable"]).is_ready(key, received, aliases):  # type: ignore[attr-defined]
            world.fail("I8", f"partition {key} of {dag_id} has {dict(received)}, which is enough for a run")


#: Part → the verbs for whose ends its tasks have a callback.
_CALLS = {"success": "succeed", "failure": "fail", "retry": "retry"}


def _check_callbacks(world: World) -> None:
    """Each end of a try that has a callback asked for it once."""
    asked = {row[0] for row in db.fetch("SELECT dedupe_key FROM scheduler_callback")}
    ended = world.ledger.ended
    for key, dag_id, task_id in db.fetch("SELECT id, dag_id, task_id FROM scheduler_task_instance"):
        tasks = PARTS[dag_id].tasks
        kinds = {**tasks.get("*", {}), **tasks.get(task_id, {})}.get("callbacks", ())
        fences = {fence for _, row, fence in ended if row == key}
        for kind in kinds:
            for fence in fences:
                wanted = (_CALLS[kind], key, fence) in ended
                if wanted and f"task_{kind}:{key}:{fence}" not in asked:
                    world.fail("I8", f"{kind} of {dag_id}.{task_id} ({key}, fence {fence}) asked for no callback")


def _check_shadow(world: World) -> None:
    """The ledger saw every change: what it believes is what the rows say."""
    rows = dict(TaskInstance.objects.filter(fence__gt=0).values_list("pk", "state"))
    for key, entry in world.ledger.tasks.items():
        if key in rows and rows[key] != entry.target:
            world.fail("I10", f"task instance {key} is {rows[key]}, its last recorded move led to {entry.target}")
