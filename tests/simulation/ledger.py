"""What the database itself wrote down of each commit, and the invariants that are read from it.

Triggers of the simulation write a row for every change of a state, a fence, a hand-out's stamp or a run, and for every
row of the audit, with the transaction that made it. After each step the new rows are taken out and checked one by one,
so a wrong commit is found even where the next one hides it.

* I1: every hand-out raises the fence by one; a fence starts once; a report moves the row of its own fence alone; a try
  is counted when it begins and never else; a retry only while tries are left, a failure only when none is.
* I2: a hand-out that commits passes no limit in force: pools (with ``include_deferred``), ``max_active_tasks``,
  ``max_active_tis_per_dag``, ``max_active_tis_per_dagrun``, keyed limits and rates, executor slots; nor does a starting
  run pass ``max_active_runs`` of its DAG or backfill. A limit that was lowered while a transaction was open binds the
  next one.
* I1, I3: a hand-out is stamped only when its executor has it; none is taken from a living scheduler that can hand over;
  no try is ended in the name of an attempt that lives and says so.
* I6: a slot of a schedule gets its run once, in order, when it is due and as the DAG's misfire policy says.
* I10: what a person's verb moved, and whatever left a finished state, has an audit row of the same transaction; who
  clears what failed clears nothing else; what somebody holds is neither handed out nor started.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from scheduler_app.engine import states
from scheduler_app.engine.limits import decode
from scheduler_app.models import db

from . import slots
from .cast import PARTS
from .spending import QUEUES, Spending

if TYPE_CHECKING:
    from .world import World

_COLUMNS = (
    "txid, kind, row_id, run_id, dag_id, name, verb, source, target, fence, old_fence, tries, old_tries, max_tries,"
    " fresh, pool, slots, job, per_dag, per_run, since, limits, held, at"
)
INSTALL = f"""
CREATE UNLOGGED TABLE IF NOT EXISTS simulation_ledger (
    id bigserial, txid bigint, kind text, row_id bigint, run_id bigint, dag_id text, name text, verb text, source text,
    target text, fence bigint, old_fence bigint, tries int, old_tries int, max_tries int, fresh boolean, pool text,
    slots int, job bigint, per_dag int, per_run int, since timestamptz, limits text, held boolean, at timestamptz
);
CREATE OR REPLACE FUNCTION simulation_task() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO simulation_ledger (txid, kind, row_id) VALUES (txid_current(), 'gone task', OLD.id);
        RETURN NULL;
    END IF;
    INSERT INTO simulation_ledger ({_COLUMNS}) VALUES (
        txid_current(), CASE WHEN OLD.state IS DISTINCT FROM NEW.state THEN 'task' ELSE 'stamp' END,
        NEW.id, NEW.dag_run_id, NEW.dag_id, NEW.task_id, NEW.moved_by, OLD.state, NEW.state, NEW.fence, OLD.fence,
        NEW.try_number, OLD.try_number, NEW.max_tries, OLD.first_start_date IS NULL, NEW.pool, NEW.pool_slots,
        CASE WHEN NEW.moved_by IN ('queue', 'schedule_and_queue')
             THEN NEW.queued_by_job_id ELSE OLD.queued_by_job_id END,
        NEW.max_active_tis_per_dag, NEW.max_active_tis_per_dagrun,
        CASE WHEN NEW.moved_by IN ('queue', 'schedule_and_queue') THEN NEW.queued_when ELSE OLD.handed_out_at END,
        NEW.limits,
        NEW.moved_by IN ('queue', 'schedule_and_queue', 'start') AND (
            NEW.held_at IS NOT NULL AND coalesce(NEW.held_until > coalesce(NEW.heartbeat_at, NEW.queued_when), true)
            OR EXISTS (SELECT 1 FROM scheduler_dag_run r WHERE r.id = NEW.dag_run_id AND r.held_at IS NOT NULL
                       AND coalesce(r.held_until > coalesce(NEW.heartbeat_at, NEW.queued_when), true))),
        NULL);
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION simulation_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO simulation_ledger (txid, kind, row_id) VALUES (txid_current(), 'gone run', OLD.id);
    ELSE
        INSERT INTO simulation_ledger (txid, kind, row_id, dag_id, name, verb, source, target, job, since, at) VALUES (
            txid_current(), 'run', NEW.id, NEW.dag_id, NEW.slot_key, NEW.moved_by,
            CASE WHEN TG_OP = 'UPDATE' THEN OLD.state END, NEW.state, NEW.backfill_id, NEW.run_after,
            NEW.queued_at);
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION simulation_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO simulation_ledger (txid, kind, verb, name, fresh) VALUES (
        txid_current(), 'audit', NEW.event, NEW.actor_kind, coalesce((NEW.extra ->> 'only_failed')::boolean, false));
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER simulation_moved AFTER UPDATE ON scheduler_task_instance FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state OR OLD.fence <> NEW.fence
          OR (OLD.handed_out_at IS NULL AND NEW.handed_out_at IS NOT NULL))
    EXECUTE FUNCTION simulation_task();
CREATE OR REPLACE TRIGGER simulation_gone AFTER DELETE ON scheduler_task_instance FOR EACH ROW
    EXECUTE FUNCTION simulation_task();
CREATE OR REPLACE TRIGGER simulation_made AFTER INSERT OR DELETE ON scheduler_dag_run FOR EACH ROW
    EXECUTE FUNCTION simulation_run();
CREATE OR REPLACE TRIGGER simulation_moved AFTER UPDATE ON scheduler_dag_run FOR EACH ROW
    WHEN (OLD.state <> NEW.state OR OLD.backfill_id IS DISTINCT FROM NEW.backfill_id)
    EXECUTE FUNCTION simulation_run();
CREATE OR REPLACE TRIGGER simulation_written AFTER INSERT ON scheduler_audit FOR EACH ROW
    EXECUTE FUNCTION simulation_audit();
"""
REMOVE = """
DROP FUNCTION IF EXISTS simulation_task, simulation_run, simulation_audit CASCADE;
DROP TABLE IF EXISTS simulation_ledger
"""
_TAKE = f"DELETE FROM simulation_ledger RETURNING id, {_COLUMNS}"


class Entry(NamedTuple):
    id: int
    txid: int
    kind: str
    row_id: int
    run_id: int
    dag_id: str
    name: str
    verb: str
    source: str | None
    target: str | None
    fence: int
    old_fence: int
    tries: int
    old_tries: int
    max_tries: int
    fresh: bool
    pool: str
    slots: int
    job: int | None
    per_dag: int | None
    per_run: int | None
    since: datetime | None
    limits: str
    held: bool | None
    at: datetime | None

    def __str__(self) -> str:
        what = "" if self.source == self.target else f" ({self.source} → {self.target})"
        run = f" of run {self.run_id}, fence {self.fence}, try {self.tries}" if self.run_id else ""
        return f"{self.kind} {self.row_id} {self.dag_id or ''}.{self.name or ''}{run}: {self.verb}{what}"


class Report(NamedTuple):
    """What a process was told that it has written: its row must have moved so, under its own fence."""

    ti_id: int
    fence: int
    verb: str


_TASK_ACTIONS, _RUN_ACTIONS = states.TASK_ACTIONS.keys(), states.RUN_ACTIONS.keys()
#: A verb of the loop that leaves a finished state: its task is back in the DAG.
_BACK = "restore"
#: What an attempt, or whoever judges its loss, writes.
#: Ends of a try: from a row that had been handed out, but for a restart, which is no failure.
_TRIED = frozenset({"running", "deferred"})
_FAIL_FAST = frozenset({"branching"})
#: DAGs that end running tasks by a rule of theirs: fail-fast, a time-out of the run.
_CUTS = _FAIL_FAST | {"daily"}
_FAILED = frozenset({"failed", "upstream_failed"})
_STARTS = frozenset({"start", "settle", "start_deferred"})


class Ledger:
    """The rows as the ledger tells them, and what must be true of each change."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.spending = Spending(self)
        self.tasks: dict[int, Entry] = {}
        self.runs: dict[int, Entry] = {}
        self.started: set[tuple[int, int]] = set()
        self.last_slot: dict[str, datetime] = {}
        #: slots of schedules that got a run, by DAG
        self.slots: dict[str, set[str]] = defaultdict(set)
        #: ended tries that ask for a callback: (verb, task instance, fence)
        self.ended: set[tuple[str, int, int]] = set()
        self.reports: list[Report] = []
        self.moves: set[Report] = set()
        #: what was handed out of keyed limits: when, of which, how many units
        self.handed: list[tuple[datetime, str, int]] = []
        self.verbs: Counter[str] = Counter()

    def check(self) -> list[Entry]:
        """Takes out what was committed since the last time, checks it, and returns it."""
        entries = sorted(Entry._make(row) for row in db.fetch(_TAKE))
        audited = {entry.txid for entry in entries if entry.kind == "audit"}
        only_failed = {entry.txid for entry in entries if entry.kind == "audit" and entry.fresh}
        handed, begun = [], []
        for entry in entries:
            if entry.kind in ("task", "stamp"):
                self._task(entry, audited)
                if entry.txid in only_failed and entry.verb in ("clear", "restart") and entry.source not in _FAILED:
                    self.world.fail("I10", f"who cleared what failed cleared {_name(entry)}, which was {entry.source}")
                if entry.kind == "task" and entry.verb in QUEUES:
                    handed.append(entry)
                    self.handed += [(entry.since, name, units) for name, units in decode(entry.limits) if entry.since]
            elif entry.kind == "run":
                self._run(entry, audited)
                begun += [entry] if entry.verb == "start" else []
            elif entry.kind == "gone task":
                self.tasks.pop(entry.row_id, None)
            elif entry.kind == "gone run":
                self.runs.pop(entry.row_id, None)
        if handed:
            self.spending.check_hand_outs(handed)
        if begun:
            self.spending.check_starts(begun)
        self._check_reports(entries)
        return entries

    # ── one change ───────────────────────────────────────────────────────────────────────────────────────────────────
    def _task(self, entry: Entry, audited: set[int]) -> None:
        fail = self.world.fail
        if entry.kind == "stamp":
            if (entry.row_id, entry.fence) not in self.world.accepted:
                fail("I3", f"{_name(entry)} is stamped as handed out, and no executor has it")
            return
        self.verbs[entry.verb] += 1
        known = self.tasks.get(entry.row_id)
        if known is not None and known.target != entry.source:
            fail("I1", f"{_name(entry)} left {entry.source}, but was last seen in {known.target}")
        self.tasks[entry.row_id] = entry
        raised = 1 if entry.verb in QUEUES or entry.verb == "start_deferred" else 0
        if entry.fence != entry.old_fence + raised:
            fail("I1", f"{entry.verb} of {_name(entry)} set the fence from {entry.old_fence} to {entry.fence}")
        self._tries(entry)
        if entry.verb == "start":
            if (entry.row_id, entry.fence) in self.started:
                fail("I1", f"hand-out {entry.fence} of {_name(entry)} started twice")
            self.started.add((entry.row_id, entry.fence))
        if entry.held:
            fail("I10", f"{entry.verb} of {_name(entry)}, which somebody holds")
        if entry.verb == "unqueue":
            self._unqueued(entry)
        if entry.verb in ("retry", "fail") and entry.source == "running" and entry.dag_id not in _CUTS:
            self._lost(entry)
        by_hand = entry.verb in _TASK_ACTIONS or (entry.source in states.FINISHED and entry.verb != _BACK)
        if by_hand and entry.txid not in audited:
            fail("I10", f"{entry.verb} took {_name(entry)} from {entry.source} to {entry.target} without an audit row")
        if entry.verb in ("succeed", "fail", "retry") and entry.source in _TRIED and entry.dag_id not in _FAIL_FAST:
            self.ended.add((entry.verb, entry.row_id, entry.fence))

    def _tries(self, entry: Entry) -> None:
        begins = entry.verb in _STARTS and (entry.fresh or entry.verb != "start")
        if entry.tries != entry.old_tries + (1 if begins else 0):
            self.world.fail("I1", f"{entry.verb} of {_name(entry)}: try {entry.old_tries} became {entry.tries}")
        if entry.verb == "start" and entry.tries > entry.max_tries + 1:
            self.world.fail("I1", f"try {entry.tries} of {_name(entry)} began, of at most {entry.max_tries + 1}")
        if entry.verb == "retry" and entry.source != "restarting" and entry.tries > entry.max_tries:
            self.world.fail("I1", f"{_name(entry)} is retried after try {entry.tries} of {entry.max_tries + 1}")

    def _unqueued(self, entry: Entry) -> None:
        """Whose hand-out goes back: a dead scheduler's, one that was lost, or one that waited for too long."""
        world = self.world
        hand_out = (entry.row_id, entry.fence)
        if hand_out in world.told_lost or not world.is_trusted(entry.job):
            return
        if entry.since is not None and world.now - entry.since >= timedelta(seconds=world.conf.queued_timeout_seconds):
            return
        world.fail("I3", f"hand-out {entry.fence} of {_name(entry)} was taken from scheduler {entry.job}, which lives")

    def _lost(self, entry: Entry) -> None:
        """Nobody ends a try in the name of an attempt that lives and says so."""
        if (entry.row_id, entry.fence) in self.world.told_lost:
            return  # its process died, and a redelivered one began under the same hand-out
        for one in self.world.attempts:
            mine = (one.ti_id, one.fence) == (entry.row_id, entry.fence) and one.claim is not None
            if mine and one.life == "alive" and one.trusted and not one.busy:
                self.world.fail("I3", f"{entry.verb} of {_name(entry)}: its attempt lives and has not reported")

    def _run(self, entry: Entry, audited: set[int]) -> None:
        if entry.source is None:
            if entry.name is not None:
                self._slot(entry)
        elif entry.source != entry.target:
            by_hand = entry.verb in _RUN_ACTIONS or entry.source in states.RUN_FINISHED
            if by_hand and entry.txid not in audited:
                self.world.fail("I10", f"{entry.verb} took run {entry.row_id} from {entry.source} without an audit row")
        self.runs[entry.row_id] = entry

    def _slot(self, entry: Entry) -> None:
        if entry.name in self.slots[entry.dag_id]:
            self.world.fail("I6", f"slot {entry.name} of {entry.dag_id} got a second run")
        self.slots[entry.dag_id].add(entry.name)
        assert entry.since is not None
        last = self.last_slot.get(entry.dag_id)
        if last is not None and entry.since <= last:
            self.world.fail("I6", f"slot {entry.name} of {entry.dag_id} got its run after the one of {last}")
        self.last_slot[entry.dag_id] = entry.since
        said = slots.wrong(PARTS[entry.dag_id], entry.name, entry.since, entry.at or entry.since)
        if said:
            self.world.fail("I6", f"slot {entry.name} of {entry.dag_id}, created at {entry.at}: {said}")

    # ── reports ──────────────────────────────────────────────────────────────────────────────────────────────────────
    def _check_reports(self, entries: list[Entry]) -> None:
        """What a process believes to have written is there, under its own fence."""
        self.moves.update(Report(e.row_id, e.fence, e.verb) for e in entries if e.kind == "task")
        for report in self.reports:
            if report not in self.moves:
                now = self.tasks.get(report.ti_id)
                text = f"hand-out {report.fence} of task instance {report.ti_id} wrote {report.verb}"
                self.world.fail("I1", f"{text}, its row did no such thing: {now}")
        self.reports.clear()


def _name(entry: Entry) -> str:
    return f"{entry.dag_id}.{entry.name} (task instance {entry.row_id}, run {entry.run_id})"
