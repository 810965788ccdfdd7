"""People who clear, mark and delete what is there, with every choice that the pages and the API give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scheduler_app.actions import clear, mark, runs, selection, task_instances
from scheduler_app.actions.errors import ActionError

from .deeds import Deed
from .people import PERSON, a_run, a_task, asked

if TYPE_CHECKING:
    from .world import World

#: How often people clear in one seed: without an end of it nothing else would ever be done.
CLEARS = 12
#: Whatever a person may clear; what is waiting for its turn too.
_CLEARED = ("success", "failed", "upstream_failed", "skipped", "running", "queued", "deferred", "scheduled")


def _wanted(world: World, found: tuple[str, str, str, int], *, often: float = 0.1) -> selection.Wanted:
    """The task instance, or its task in all its indexes, with some of what comes before and after."""
    dag_id, run_id, task_id, index = found
    rng = world.rng
    only_failed = rng.random() < 2 * often
    return selection.Wanted(
        dag_id,
        tasks=[(task_id, index) if rng.random() < 0.8 else task_id],
        runs=[run_id],
        downstream=rng.random() < 5 * often,
        upstream=rng.random() < often,
        past=rng.random() < often,
        future=rng.random() < often,
        only_failed=only_failed,
        only_running=not only_failed and rng.random() < often,
    )


def clears_a_task(world: World) -> Deed | None:
    """Perhaps what a preview showed, which may be something else by then."""
    found = a_task(world, *_CLEARED)
    if found is None or world.spent("clear", CLEARS):
        return None
    rng = world.rng
    wanted = _wanted(world, found)
    expect = _preview(wanted) if rng.random() < 0.3 else None
    options: dict[str, Any] = {
        "latest_version": rng.random() < 0.3,
        "reset_runs": rng.random() < 0.9,
        "refuse_running": rng.random() < 0.1,
        "expect": expect,
    }
    now = world.now

    def then(done: clear.Cleared) -> None:
        if expect is not None and sorted(row.pk for row in done.task_instances) != sorted(expect):
            world.fail("I10", f"a person saw that {expect} would be cleared, and others were: {done}")
        if not options["reset_runs"]:
            _reset_later(world, done)

    return asked(world, f"{found}", lambda: clear.clear(PERSON, wanted, now, **options), then)


def _preview(wanted: selection.Wanted) -> list[int] | None:
    """None where it is refused: then the deed is refused too."""
    try:
        return [row.pk for row in selection.picked(PERSON, wanted)]
    except ActionError:
        return None


def _reset_later(world: World, done: clear.Cleared) -> None:
    """Runs that stay ended with tasks that are open: a person has to say that they go on."""
    world.left_ended |= {row.dag_run_id for row in done.task_instances}


def clears_a_run(world: World) -> Deed | None:
    found = a_run(world, "success", "failed", "running")
    if found is None or world.spent("clear", CLEARS):
        return None
    now, rng = world.now, world.rng
    options = {name: rng.random() < 0.2 for name in ("only_new", "only_failed", "latest_version")}
    return asked(world, f"{found}", lambda: runs.clear_run(PERSON, *found, now, **options))


def clears_runs(world: World) -> Deed | None:
    """Some runs of one DAG together."""
    first = a_run(world, "success", "failed", "running")
    if first is None or world.spent("clear", CLEARS):
        return None
    others = [a_run(world, "success", "failed", "running") for _ in range(2)]
    run_ids = sorted({first[1], *(other[1] for other in others if other and other[0] == first[0])})
    now, failed = world.now, world.rng.random() < 0.3
    return asked(
        world, f"{first[0]} {run_ids}", lambda: runs.clear_runs(PERSON, first[0], run_ids, now, only_failed=failed)
    )


def marks_a_task(world: World) -> Deed | None:
    found = a_task(world, None, "scheduled", "queued", "running", "failed", "deferred", "up_for_retry", "success")
    if found is None:
        return None
    wanted = _wanted(world, found, often=0.03)
    state, now = world.rng.choice(["success", "failed", "skipped"]), world.now
    return asked(world, f"{found} {state}", lambda: mark.mark(PERSON, wanted, state, now))


def marks_a_run(world: World) -> Deed | None:
    found = a_run(world, "queued", "running", "failed", "success")
    if found is None:
        return None
    state, now = world.rng.choice(["success", "failed", "queued"]), world.now
    return asked(world, f"{found} {state}", lambda: runs.mark_run(PERSON, *found, state, now))


def deletes_a_run(world: World) -> Deed | None:
    found = a_run(world, "queued", "success", "failed")
    now = world.now
    return None if found is None else asked(world, f"{found}", lambda: runs.delete_run(PERSON, *found, now))


def deletes_a_task(world: World) -> Deed | None:
    found = a_task(world, None, "scheduled", "success", "failed", "skipped", "removed", "up_for_retry")
    if found is None:
        return None
    dag_id, run_id, task_id, index = found
    wanted = selection.Wanted(dag_id, tasks=[(task_id, index)], runs=[run_id])
    now = world.now
    return asked(world, f"{found}", lambda: task_instances.delete(PERSON, wanted, now))
