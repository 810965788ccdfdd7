"""The live poll: 204 while a page still shows what is true, else what to change in place.

``?page=run:<dag>/<run>&token=…`` is answered with ``{"v": token, "set": {element id: [state or null, text]},
"refresh": [element ids]}``. The token is a digest of what the page shows, so no change can slip past it, however late
its transaction commits. ``set`` changes words and shapes in place; ``refresh`` names the parts to fetch again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.engine import states
from scheduler_app.queries import page_backfills, page_dags, page_run, page_task
from scheduler_app.templatetags.scheduler_ui import span, state_label


@dataclass(frozen=True, slots=True)
class Change:
    token: str
    set: dict[str, tuple[str | None, str]] = field(default_factory=dict)
    refresh: tuple[str, ...] = ()
    #: nothing more will change: the browser stops asking
    done: bool = False


Pulse = Callable[[Actor, str, str], Change | None]


@never_cache
@require_safe
def poll(request: HttpRequest) -> HttpResponse:
    """404 for a page that does not exist or that the reader may not see; 401 when the session has ended."""
    if not request.user.is_authenticated:
        return HttpResponse(status=401)
    kind, _colon, key = request.GET.get("page", "").partition(":")
    pulse = PULSES.get(kind)
    token = request.GET.get("token", "")
    change = pulse(access.of_user(request.user), key, token) if pulse else None
    if change is None:
        return HttpResponse(status=404)
    if change.token == token:
        return HttpResponse(status=204)
    answer = {"v": change.token, "set": change.set, "refresh": list(change.refresh), "done": change.done}
    return JsonResponse(answer)


def _run(actor: Actor, key: str, token: str) -> Change | None:
    dag_id, _slash, run_id = key.partition("/")
    if not access.can(actor, "view", "run"):
        return None
    pulse = page_run.run_pulse(access.runs(actor), dag_id, run_id)
    if pulse is None:
        return None
    # The first half of the token names the rows that there are and the run's state, the second how the rows stand.
    shape, _dot, _rest = token.partition(".")
    parts = ("run-head", "run-chips", "run-tasks", "run-facts", "run-gantt")
    return Change(
        token=pulse.token,
        set={
            f"ti-{pk}{part}": value
            for pk, state, number, start, end in pulse.rows
            for part, value in (
                ("", (state or "none", state_label(state))),
                ("-dur", (None, span((end - start).total_seconds()) if start and end else "")),
            )
            if value[1]
        },
        refresh=parts if shape != pulse.shape else ("run-head", "run-chips", "run-gantt"),
        done=pulse.state in states.RUN_FINISHED and all(row[1] in states.FINISHED for row in pulse.rows),
    )


def _task(actor: Actor, key: str, token: str) -> Change | None:
    if not key.isdecimal() or len(key) > 18 or not access.can(actor, "view", "task"):
        return None
    pulse = page_task.pulse(access.task_instances(actor), int(key))
    return None if pulse is None else Change(pulse, refresh=("task-head", "task-facts", "task-tabs"))


def _dags(actor: Actor, key: str, token: str) -> Change | None:
    if not access.can(actor, "view", "dag"):
        return None
    return Change(page_dags.pulse(access.dags(actor)), refresh=("dags",))


def _backfill(actor: Actor, key: str, token: str) -> Change | None:
    if not key.isdecimal() or len(key) > 18 or not access.can(actor, "view", "run"):
        return None
    pulse = page_backfills.pulse(access.backfills(actor), int(key))
    if pulse is None:
        return None
    return Change(pulse[0], refresh=("backfill-head", "backfill-progress", "backfill-slots"), done=pulse[1])


PULSES: dict[str, Pulse] = {"run": _run, "task": _task, "dags": _dags, "backfill": _backfill}
