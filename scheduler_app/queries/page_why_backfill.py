"""Why does a queued run of a backfill not start? Counted as the phase that starts them counts."""

from __future__ import annotations

from scheduler_app.engine import states
from scheduler_app.engine.explain import Verdict
from scheduler_app.models import Backfill, BackfillSlot, DagRun


def verdicts(run: DagRun) -> list[Verdict]:
    """The limit of its backfill, and its place in it. At most three queries."""
    row = Backfill.objects.filter(pk=run.backfill_id).first()
    if row is None:
        return []
    found = []
    if row.is_paused:
        found.append(Verdict("backfill_paused", False, f"Backfill {row.pk} is paused: let it go on to start its runs."))
    of_backfill = DagRun.objects.filter(backfill_id=row.pk)
    running = of_backfill.filter(state=states.RUNNING).count()
    limit = row.max_active_runs
    facts = {"running": running, "limit": limit, "backfill": row.pk}
    if running < limit:
        text = f"{running} of at most {limit} runs of backfill {row.pk} are running."
        return [*found, Verdict("backfill_max_active_runs", True, text, facts)]
    text = f"As many runs of backfill {row.pk} are running as it allows ({limit}). It starts when one of them ends."
    waiting = BackfillSlot.objects.filter(backfill=row, dag_run__in=of_backfill.filter(state=states.QUEUED))
    own = BackfillSlot.objects.filter(backfill=row, dag_run_id=run.pk).values("ordinal")[:1]
    ahead = waiting.filter(ordinal__lt=own).count()
    place = f"{ahead} queued {'run starts' if ahead == 1 else 'runs start'} before it." if ahead else "It is the next."
    found.append(Verdict("backfill_max_active_runs", False, text, facts))
    return [*found, Verdict("place", ahead == 0, place, {"ahead": ahead})]
