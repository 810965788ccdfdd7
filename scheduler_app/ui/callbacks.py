"""Who was told, and who was not? Callbacks of DAGs and tasks, one of them with its log, and running one again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduler_app import access
from scheduler_app.actions import callbacks as actions
from scheduler_app.conf import conf
from scheduler_app.queries import callbacks, page_log
from scheduler_app.queries.page_slice import page_slice

from . import log
from .page import Ask, back, deed, page, page_number

SIZE: Final = 50
#: state → word, and the shape of the state of a task that stands for it
STATES: Final = {
    "failed": (gettext_lazy("Given up"), "failed"),
    "pending": (gettext_lazy("Waiting"), "queued"),
    "running": (gettext_lazy("Running"), "running"),
    "success": (gettext_lazy("Done"), "success"),
}


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "run")
    asked = ask.request.GET
    state, dag_id = asked.get("state", ""), asked.get("dag", "").strip()
    state = state if state in STATES else ""
    rows = callbacks.listed(access.callbacks(ask.actor))
    if state:
        rows = rows.filter(state=state)
    if dag_id:
        rows = rows.filter(dag_id=dag_id)
    number = page_number(ask.request)
    found, more = page_slice(rows.order_by("-id"), number, SIZE)
    context = {
        "section": "scheduler:failures",
        "rows": found,
        "more": more,
        "page": number,
        "state": state,
        "dag_id": dag_id,
        "states": STATES,
    }
    return ask.show("callbacks.html", context)


@page
def one(ask: Ask, callback_id: int) -> HttpResponse:
    ask.need("view", "run")
    row = _find(ask, callback_id)
    # a task's callback writes into the log of its try
    readable = row.task_name is None or ask.can("view", "task")
    part = page_log.read_part(log.opened(callbacks.log_file(Path(conf().log_folder), row))) if readable else None
    context = {
        "section": "scheduler:failures",
        "callback": row,
        "states": STATES,
        "readable": readable,
        "lines": part.lines if part else [],
    }
    return ask.show("callback.html", context)


@page
def download(ask: Ask, callback_id: int) -> StreamingHttpResponse:
    """All that it wrote, as it was written: JSON lines, streamed."""
    ask.need("view", "run")
    row = _find(ask, callback_id)
    if row.task_name is not None:
        ask.need("view", "task")
    return log.sent(
        log.opened(callbacks.log_file(Path(conf().log_folder), row)), f"{row.dag_id}.{row.kind}.{callback_id}.log"
    )


@deed
def replay(ask: Ask, callback_id: int) -> HttpResponse:
    reason = ask.request.POST.get("why", "").strip() or None
    actions.replay(ask.actor, callback_id, ask.now, reason=reason)
    messages.success(ask.request, _("The callback runs again."))
    return back(ask, reverse("scheduler:callback", args=[callback_id]))


def _find(ask: Ask, callback_id: int) -> Any:
    row = callbacks.listed(access.callbacks(ask.actor)).filter(pk=callback_id).first()
    if row is None:
        raise Http404(_("There is no callback %(id)s, or you may not see it.") % {"id": callback_id})
    return row
