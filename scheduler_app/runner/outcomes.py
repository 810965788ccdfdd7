"""Write the ends of attempts: many at once, in one transaction, each under its fence.

With a state go, in the same transaction, its XComs and rendered fields, the followers that it skips, its trigger,
its asset events, its callback and the wake of its run. A report whose row has moved on (marked, cleared, handed
out again, failed as lost) matches nothing and writes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from psycopg2.extras import Json

from scheduler_app.engine import skip_lists, skips, states
from scheduler_app.models import Callback, Trigger, db, transitions
from scheduler_app.models.effect import NewTrigger, Try, Wanted, of_task
from scheduler_app.runner import asset_events, buffers
from scheduler_app.runner.buffers import Buffer, Owner
from scheduler_app.runner.claims import Claim
from scheduler_app.runner.decide import Decision, decide, error_text, storable

#: Rows in one transaction.
BATCH = 500


@dataclass(slots=True)
class Report:
    """How an attempt ended. ``outcome`` None: without a word; then ``exit_text`` says how its process ended."""

    claim: Claim
    outcome: dict[str, Any] | None
    exit_text: str = ""
    buffer: Buffer = field(default_factory=Buffer)
    #: why we ended it, if we did
    stopped_for: str = ""
    #: a shutdown interrupted it, and whether it begins again; None: none did
    again: bool | None = None

    @property
    def owner(self) -> Owner:
        claim = self.claim
        return Owner(claim.ti_id, claim.run_pk, claim.dag_id, claim.task_id, claim.map_index)


_FOLLOWERS = f"""
SELECT w.source, ti.id FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::int[]) AS w(source, run, task, map_index)
JOIN scheduler_task_instance ti ON ti.dag_run_id = w.run AND ti.task_id = w.task
    AND (w.map_index IS NULL OR ti.map_index = w.map_index)
WHERE coalesce(ti.state, 'none') IN ({", ".join(sorted(f"'{state or 'none'}'" for state in skips.SKIPPABLE))})
"""
#: Own rows and followers are locked together, by key: two runners that end neighbours cannot wait for each other.
_LOCK = """
SELECT ti.id, ti.fence, ti.state, ti.reason FROM scheduler_task_instance ti WHERE ti.id = ANY(%s::bigint[])
ORDER BY ti.id FOR NO KEY UPDATE OF ti
"""


#: Of a note, what a row keeps (characters): as much as the API lets a person write.
_NOTE_LENGTH = 1000
#: A report that says what the row says already is one that was written twice.
_NOTE_LATE = f"""
WITH w AS (SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[]) AS w(id, fence, state, text)),
locked AS MATERIALIZED (
    SELECT ti.id, w.text FROM scheduler_task_instance ti JOIN w ON w.id = ti.id
    WHERE ti.fence = w.fence AND ti.state IN ('success', 'failed', 'skipped') AND ti.state <> w.state
    ORDER BY ti.id FOR NO KEY UPDATE OF ti
)
UPDATE scheduler_task_instance ti
SET note = left(concat_ws(E'\n', nullif(ti.note, ''), locked.text), {_NOTE_LENGTH}),
    note_by = coalesce(ti.note_by, 'scheduler')
FROM locked WHERE ti.id = locked.id
"""


def write(reports: Sequence[Report], now: datetime) -> dict[int, Decision]:
    """Writes up to :data:`BATCH` reports; what was decided for each row that was still the attempt's own, by its id.

    An end that comes too late, because a person or the scheduler ended the row otherwise, stays as a note (BC-75),
    unless it is the failure of a task that was stopped for that.
    """
    decided = _write_plain(reports, now) if all(map(_is_plain, reports)) else _write_mixed(reports, now)
    rest = [report for report in reports if report.claim.ti_id not in decided]
    if rest and all(map(_is_plain, reports)):
        # A row that did not move may have been cleared while its task ran.
        decided |= _write_mixed(rest, now)
    _note_late([report for report in rest if report.claim.ti_id not in decided], now)
    return decided


def _note_late(reports: Sequence[Report], now: datetime) -> None:
    by_itself = [report for report in reports if not (report.stopped_for and _state(report) == states.FAILED)]
    said = [(report.claim, _state(report)) for report in by_itself]
    late = [(claim, state) for claim, state in said if state in (states.SUCCESS, states.FAILED, states.SKIPPED)]
    if not late:
        return
    texts = [
        f"Try {claim.try_number} reported {state} at {now:%Y-%m-%d %H:%M:%S} UTC, after this was decided otherwise."
        for claim, state in late
    ]
    ids, fences = [claim.ti_id for claim, _ in late], [claim.fence for claim, _ in late]
    db.execute(_NOTE_LATE, [ids, fences, [state for _, state in late], texts])


def _state(report: Report) -> str | None:
    return (report.outcome or {}).get("state")


def _is_plain(report: Report) -> bool:
    """A success that touches no other row: nearly every report of a healthy system."""
    outcome = report.outcome or {}
    return outcome.get("state") == states.SUCCESS and not outcome.get("skip") and not outcome.get("asset_events")


def _write_plain(reports: Sequence[Report], now: datetime) -> dict[int, Decision]:
    """Successes by one statement, whose guard is the lock; where nothing goes with them it needs no transaction."""
    wanted = {report.claim.ti_id: decide(report.claim, report.outcome, "", states.RUNNING, now) for report in reports}
    if not any(report.buffer.dirty or _wanted(report, wanted[report.claim.ti_id]) for report in reports):
        return {ti_id: wanted[ti_id] for ti_id in _move(reports, wanted, now)}
    with db.atomic():
        decided = {ti_id: wanted[ti_id] for ti_id in _move(reports, wanted, now)}
        if decided:
            _add_more([report for report in reports if report.claim.ti_id in decided], decided, now)
    return decided


def _write_mixed(reports: Sequence[Report], now: datetime) -> dict[int, Decision]:
    """All rows locked together first, by key, then moved verb by verb."""
    with db.atomic():
        followers = _followers(reports)
        rows = _lock([report.claim.ti_id for report in reports], followers)
        own = [report for report in reports if _is_own(report.claim, rows)]
        decided = {
            report.claim.ti_id: decide(
                report.claim,
                report.outcome,
                report.exit_text,
                rows[report.claim.ti_id].state,
                now,
                stopped_for=report.stopped_for,
                again=report.again,
                told=rows[report.claim.ti_id].reason,
            )
            for report in own
        }
        if decided:
            _move(own, decided, now)
            _skip(own, decided, followers, rows, now)
            _add_more(own, decided, now)
    return decided


def _add_more(own: Sequence[Report], decided: dict[int, Decision], now: datetime) -> None:
    """What goes with the states: events, callbacks, XComs, rendered fields, and the NOTIFY."""
    ended = [report for report in own if decided[report.claim.ti_id].verb == "succeed"]
    asset_events.write([(report.claim, report.outcome or {}) for report in ended], now)
    _add_callbacks([(report, decided[report.claim.ti_id]) for report in own], now)
    kept = [report for report in own if not decided[report.claim.ti_id].cleared]
    pushed = [(report.owner, report.buffer) for report in kept if report.buffer.dirty]
    buffers.write(pushed, now, then=f"NOTIFY {db.CHANNEL}")


def _followers(reports: Sequence[Report]) -> dict[int, list[int]]:
    """By skipping instance: the ids of those that it skips and that have not begun."""
    wanted: list[tuple[int, int, str, int | None]] = []
    for report in reports:
        claim, skip = report.claim, (report.outcome or {}).get("skip")
        if not skip or claim.graph is None:
            continue
        for task_id, indexes in skip_lists.named(claim.graph, claim.task_id, claim.map_index, skip).items():
            for index in [None] if indexes is None else sorted(indexes):
                wanted.append((claim.ti_id, claim.run_pk, task_id, index))
    found: dict[int, list[int]] = defaultdict(list)
    if wanted:
        for source, follower in db.fetch(_FOLLOWERS, [list(column) for column in zip(*wanted, strict=True)]):
            found[source].append(follower)
    return found


class _Row(NamedTuple):
    fence: int
    state: str | None
    reason: str | None


def _lock(ids: Sequence[int], followers: dict[int, list[int]]) -> dict[int, _Row]:
    every = {*ids, *(key for keys in followers.values() for key in keys)}
    return {row[0]: _Row(*row[1:]) for row in db.fetch(_LOCK, [sorted(every)])}


def _is_own(claim: Claim, rows: dict[int, _Row]) -> bool:
    row = rows.get(claim.ti_id)
    return row is not None and row.fence == claim.fence and row.state in states.WITH_PROCESS


def _move(own: Sequence[Report], decided: dict[int, Decision], now: datetime) -> list[int]:
    """The ids of the rows that moved."""
    moved: list[int] = []
    groups: dict[tuple[str, tuple[str, ...]], list[Report]] = defaultdict(list)
    for report in own:
        decision = decided[report.claim.ti_id]
        groups[decision.verb, tuple(sorted(decision.columns))].append(report)
    for (verb, names), members in sorted(groups.items(), key=lambda item: item[0]):
        columns: dict[str, Any] = {
            name: [decided[report.claim.ti_id].columns[name] for report in members] for name in names
        }
        if verb == "defer":
            columns["trigger_id"] = _add_triggers(members, now)
            columns["next_kwargs"] = [Json(value) for value in columns["next_kwargs"]]
        if "skips" in names:
            columns["skips"] = [Json(value) for value in columns["skips"]]
        ids = [report.claim.ti_id for report in members]
        moved += transitions.tasks(verb, ids, now, fences=[report.claim.fence for report in members], **columns)
    return moved


def _add_triggers(members: Sequence[Report], now: datetime) -> list[int]:
    defers = [(report.outcome or {})["defer"] for report in members]
    new = [
        NewTrigger(
            defer["classpath"],
            defer.get("kwargs") or {},
            report.claim.dag_id,
            report.claim.file.bundle_version or None,
        )
        for report, defer in zip(members, defers, strict=True)
    ]
    return Trigger.objects.add(new, now)


def _skip(
    own: Sequence[Report],
    decided: dict[int, Decision],
    followers: dict[int, list[int]],
    rows: dict[int, _Row],
    now: datetime,
) -> None:
    """A branch's verdict on its followers; one that has begun meanwhile goes on (BC-53)."""
    reasons = {
        key: skip_lists.reason(report.claim.task_id)
        for report in own
        if decided[report.claim.ti_id].verb == "succeed"
        for key in followers.get(report.claim.ti_id, ())
        if rows[key].state in skips.SKIPPABLE
    }
    ids = sorted(reasons)
    transitions.tasks("skip", ids, now, reason=[reasons[key] for key in ids])


def _wanted(report: Report, decision: Decision) -> list[Wanted]:
    """Callbacks and mails that the task has for this end; one hand-out asks for each kind at most once."""
    claim = report.claim
    if claim.task is None or decision.callback is None:
        return []
    of = Try(claim.ti_id, claim.fence, claim.dag_id, claim.run_pk, claim.try_number)
    return of_task(claim.task, decision.callback, of, _payload(report, decision))


def _add_callbacks(pairs: Sequence[tuple[Report, Decision]], now: datetime) -> None:
    wanted = [one for report, decision in pairs for one in _wanted(report, decision)]
    Callback.objects.want(wanted, now)


def _payload(report: Report, decision: Decision) -> dict[str, Any]:
    error = (report.outcome or {}).get("error") or None
    if error is None and decision.callback in ("failure", "retry"):
        error = {"type": "", "message": report.exit_text}
    reason = decision.columns.get("reason") or (error_text(report.outcome) if report.outcome else report.exit_text)
    cleaned = {key: storable(text) if isinstance(text, str) else text for key, text in (error or {}).items()}
    return {"error": cleaned or None, "reason": reason}
