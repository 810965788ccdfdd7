"""Why does this run not go on, and why does this DAG get no run? What stands before any of their tasks."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Exists, OuterRef, Q

from scheduler_app.conf import conf
from scheduler_app.engine import states
from scheduler_app.engine.board import RunFact
from scheduler_app.engine.explain import Verdict, explain_run
from scheduler_app.engine.wording import counted
from scheduler_app.models import AssetQueuedEvent, AssetUse, DagModel, DagRun, TaskInstance
from scheduler_app.models.graphs import graphs_of
from scheduler_app.models.hold import Held

from . import page_why_backfill
from .page_health import processor_alive

_FUTURE: Final = "With the setting SCHEDULER_ALLOW_FUTURE_LOGICAL_DATES such runs do not wait."
#: Runs that a sentence names before it says "and n more".
_NAMED: Final = 3


def clock_text(moment: datetime) -> str:
    """As the engine writes a moment: to the second, with its zone."""
    return f"{moment:%Y-%m-%d %H:%M:%S %Z}"


def is_held(row: Held, now: datetime) -> bool:
    """Whether a run, task or DAG is held now: a hold whose end has passed is none."""
    return row.held_at is not None and (row.held_until is None or row.held_until > now)


def held_text(row: Held, what: str) -> str:
    """Who holds it, why, and until when."""
    until = f" until {clock_text(row.held_until)}" if row.held_until else ""
    return f"{row.held_by or 'Somebody'} holds {what}{until}: “{row.held_why or ''}”. Release it to let it go on."


def run_fact(run: DagRun, now: datetime) -> RunFact:
    return RunFact(
        logical_date=run.logical_date,
        state=run.state,
        is_paused=run.dag.is_paused,
        held=is_held(run, now),
        allow_future=conf().allow_future_logical_dates,
    )


def before_start(run: DagRun, now: datetime) -> list[Verdict]:
    """What keeps an unfinished run (its DAG loaded) from starting or from going on. At most five queries."""
    found = []
    for verdict in explain_run(run_fact(run, now), now):
        if verdict.code == "run_held":
            verdict = replace(verdict, text=held_text(run, "this run"))
        if verdict.code == "future":
            verdict = replace(verdict, text=f"{verdict.text} {_FUTURE}")
        if verdict.code != "run_state":
            found.append(verdict)
    if run.look_error:
        until = {"until": run.backoff_until.isoformat()} if run.backoff_until else {}
        found.append(Verdict("look", False, f"The scheduler could not look at the run: {run.look_error}", until))
    if run.dag.is_stale:
        found.append(Verdict("stale", False, _stale(run.dag)))
    elif run.dag.has_import_errors:
        text = (
            f"The DAG's file {run.dag.relative_fileloc} cannot be imported (see the import errors): until it is "
            "mended, what imports it fails."
        )
        found.append(Verdict("import_error", False, text, {"file": run.dag.relative_fileloc}))
    if run.state == states.QUEUED:
        found += _queued(run, now)
    return found


def _stale(dag: DagModel) -> str:
    parsed = f", which was last read at {clock_text(dag.last_parsed_time)}" if dag.last_parsed_time else ""
    return (
        f"No file defines its DAG any more, so nothing of it starts. Bring back {dag.relative_fileloc or 'its file'}"
        f"{parsed}; or fail the run."
    )


def _queued(run: DagRun, now: datetime) -> list[Verdict]:
    found = []
    if run.run_after > now:
        until = {"until": run.run_after.isoformat()}
        found.append(Verdict("run_after", False, f"The run is due at {clock_text(run.run_after)}.", until))
    if run.interval_pending:
        text = "Its data interval is not known yet: the DAG processor asks the DAG file's own timetable for it."
        if not processor_alive(now, timedelta(seconds=conf().lease_seconds)):
            text += " No DAG processor is running: python manage.py rundagprocessor starts one."
        found.append(Verdict("interval", False, text))
    return [*found, *(_max_active_runs(run) if run.backfill_id is None else page_why_backfill.verdicts(run))]


def _max_active_runs(run: DagRun) -> list[Verdict]:
    """Counted as the phase that starts runs counts: backfills have limits of their own."""
    of_dag = DagRun.objects.filter(dag_id=run.dag_id)
    active = of_dag.filter(state=states.RUNNING).filter(backfill_id=None).order_by("run_after", "id")
    running = list(active.values_list("run_id", flat=True)[: run.dag.max_active_runs + 1])
    limit = run.dag.max_active_runs
    facts = {"running": len(running), "limit": limit}
    if len(running) < limit:
        return [
            Verdict("max_active_runs", True, f"{len(running)} of at most {limit} runs of the DAG are running.", facts)
        ]
    more = f" and {len(running) - _NAMED} more" if len(running) > _NAMED else ""
    text = (
        f"As many runs of the DAG are running as its max_active_runs allows ({limit}): "
        f"{', '.join(running[:_NAMED])}{more}. It starts when one of them ends."
    )
    before = Q(run_after__lt=run.run_after) | Q(run_after=run.run_after, id__lt=run.pk)
    ahead = of_dag.filter(before, state=states.QUEUED, backfill_id=None).count()
    place = f"{ahead} queued {'run starts' if ahead == 1 else 'runs start'} before it." if ahead else "It is the next."
    return [
        Verdict("max_active_runs", False, _waits_for_it(run, len(running)) or text, facts),
        Verdict("place", ahead == 0, place, {"ahead": ahead}),
    ]


def _waits_for_it(run: DagRun, running: int) -> str | None:
    """Whether a run has the room that waits for this one and starts before it, so that making way is no help."""
    version = run.dag_version_id
    graph = graphs_of([version]).get(version) if version else None
    if run.logical_date is None or graph is None or not graph.has_past_deps:
        return None
    after = DagRun.objects.filter(dag_id=run.dag_id, state=states.RUNNING, backfill_id=None)
    after = after.filter(logical_date__gt=run.logical_date).order_by("logical_date", "id")
    earlier = Q(run_after__lt=run.run_after) | Q(run_after=run.run_after, id__lt=run.pk)
    moving = TaskInstance.objects.filter(dag_run=OuterRef("pk"), state__in=states.UNFINISHED - {states.NONE})
    first = after.filter(earlier).exclude(Exists(moving)).first()
    if first is None:
        return None
    return (
        f"Run {first.run_id} has the room, waits for this one (depends_on_past) and is due before it, so neither goes "
        f"on by itself. Raise max_active_runs above {running}; or fail {first.run_id}, and clear it when this run has "
        "ended."
    )


def why_no_run(dag: DagModel, now: datetime) -> Verdict | None:
    """Why a DAG gets no scheduled run, or none before long; None when its next run is on its way.

    In the order of the phase that creates runs; that a scheduler is alive is for the caller to ask. At most two
    queries.
    """
    if dag.is_stale:
        file = f": bring back {dag.relative_fileloc} to get new runs" if dag.relative_fileloc else ""
        return Verdict("stale", False, f"No file defines it any more{file}.")
    if dag.is_paused:
        return Verdict("paused", False, "It is paused: switch it on to get scheduled runs.")
    if is_held(dag, now):
        return Verdict("held", False, held_text(dag, "new runs"))
    if dag.schedule_error:
        until = {"until": dag.backoff_until.isoformat()} if dag.backoff_until else {}
        return Verdict("schedule", False, f"Its next run could not be made: {dag.schedule_error}", until)
    due = dag.next_dagrun_run_after
    if due is not None and not conf().use_job_schedule:
        text = "No schedule makes runs here: the setting SCHEDULER_USE_JOB_SCHEDULE is off."
        return Verdict("schedules_off", False, text)
    if due is None:
        return _no_slot(dag, now)
    if dag.start_date and dag.start_date > now:
        text = f"Its start date lies in the future: {clock_text(dag.start_date)}."
        return Verdict("start_date", False, text, {"until": due.isoformat()})
    return _full(dag, now)


def _no_slot(dag: DagModel, now: datetime) -> Verdict:
    if dag.end_date and dag.end_date < now:
        return Verdict("end_date", False, f"Its end date has passed: {clock_text(dag.end_date)}.")
    kind = (dag.timetable or {}).get("kind", "null")
    if kind == "null":
        return Verdict("no_schedule", False, "It has no schedule: runs are triggered by hand or by other DAGs.")
    if kind == "asset":
        return _assets(dag)
    if kind == "partitioned":
        text = "It has no clock: a run is made when its assets were updated for a partition."
        return Verdict("assets", False, text)
    return Verdict("no_slot", False, "Its schedule has no further date.")


def _assets(dag: DagModel) -> Verdict:
    """How many of the assets that it is scheduled on were updated since its last run, and which were not."""
    uses = AssetUse.objects.filter(dag=dag, kind="schedule", asset__isnull=False).order_by("asset__name")
    names = dict(uses.values_list("asset_id", "asset__name"))
    events = AssetQueuedEvent.objects.filter(dag=dag, asset_id__in=names)
    updated = set(events.values_list("asset_id", flat=True).distinct())
    waiting = [name for key, name in names.items() if key not in updated]
    facts = {"updated": len(updated), "assets": len(names)}
    text = "It has no clock: a run is made when its assets were updated."
    if not names or not waiting:
        return Verdict("assets", False, text, facts)
    more = f" and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
    text += f" {len(updated)} of {counted(len(names), 'asset')} since its last run; not yet: "
    return Verdict("assets", False, f"{text}{', '.join(waiting[:_NAMED])}{more}.", facts)


def _full(dag: DagModel, now: datetime) -> Verdict | None:
    due = dag.next_dagrun_run_after is not None and dag.next_dagrun_run_after <= now
    if dag.overlap_policy == "cancel_oldest" or not (due or dag.overlap_policy == "skip"):
        return None
    open_runs = DagRun.objects.unfinished().filter(dag=dag, backfill_id=None).count()
    if open_runs < dag.max_active_runs:
        return None
    facts = {"running": open_runs, "limit": dag.max_active_runs}
    text = f"{counted(open_runs, 'run')} of it {'has' if open_runs == 1 else 'have'} not ended, and max_active_runs is "
    text += str(dag.max_active_runs)
    if dag.overlap_policy == "skip":
        text += ": a slot that falls due meanwhile gets no run (overlap_policy='skip'; the audit has each of them)"
        return Verdict("overlap_skip", False, f"{text}.", facts)
    return Verdict("max_active_runs", False, f"{text}: the slot waits until one ends, or until it is raised.", facts)
