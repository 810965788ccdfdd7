"""The log of a try: its parts for the page that follows it, and the whole file."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from scheduler_app import attempt_log
from scheduler_app.conf import conf
from scheduler_app.engine import states
from scheduler_app.log_store.reading import Source, chunks, open_log
from scheduler_app.models import TaskInstance
from scheduler_app.queries import page_log, page_task

from . import task
from .page import Ask, page

log = logging.getLogger(__name__)


def log_of(instance: TaskInstance, try_number: int) -> Source | None:
    """The log of a try, wherever it lies."""
    run_id = instance.dag_run.run_id
    return opened(
        attempt_log.path(conf().log_folder, instance.dag_id, run_id, instance.task_id, instance.map_index, try_number)
    )


def opened(file: Path) -> Source | None:
    """A log by its file's name, on this machine or in the store. A store that cannot be asked has none for now."""
    try:
        return open_log(conf(), file)
    except Exception:
        # whatever the driver of a remote store raises: the page stands all the same
        log.exception("The log store cannot be asked for %s", file)
        return None


def offset(ask: Ask, name: str) -> int | None:
    """A byte offset from the query string; None when it is missing or no number."""
    text = ask.request.GET.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 16 else None


def at_least(lines: Iterable[page_log.Line], level: str) -> list[page_log.Line]:
    """The lines of a level or a worse one; all for an unknown level."""
    least = page_log.LEVELS.index(level) if level in page_log.LEVELS else 0
    return [line for line in lines if page_log.LEVELS.index(line.level) >= least]


def _chosen(ask: Ask, dag_id: str, run_id: str, task_id: str) -> tuple[TaskInstance, page_task.Try]:
    text = ask.request.GET.get("map", "")
    instance = task.find(ask, dag_id, run_id, task_id, int(text) if text.isdecimal() and len(text) < 9 else None)
    found = task.chosen_try(ask, page_task.tries(instance))
    if found is None:
        raise Http404(_("This task has not started, so it has no log."))
    return instance, found


@page
def part(ask: Ask, dag_id: str, run_id: str, task_id: str) -> HttpResponse:
    """The lines from byte ``?from=`` on. The answer's headers say where to go on, and whether more may come."""
    instance, chosen = _chosen(ask, dag_id, run_id, task_id)
    start = offset(ask, "from") or 0
    read = page_log.read_part(log_of(instance, chosen.number), start=start)
    live = chosen.current and instance.state in states.WITH_PROCESS
    lines = at_least(read.lines, ask.request.GET.get("level", "")) if read else []
    response = ask.show("part/log_lines.html", {"lines": lines})
    response["X-Next"] = str(read.end if read else start)
    response["X-Live"] = "yes" if live or (read and read.more_after and read.end > start) else "no"
    return response


@page
def download(ask: Ask, dag_id: str, run_id: str, task_id: str) -> StreamingHttpResponse:
    """All of it as it was written: JSON lines, streamed."""
    instance, chosen = _chosen(ask, dag_id, run_id, task_id)
    return sent(log_of(instance, chosen.number), f"{dag_id}.{task_id}.{chosen.number}.log")


def sent(source: Source | None, name: str) -> StreamingHttpResponse:
    """A whole log as a file of that name."""
    if source is None:
        raise Http404(_("The log is neither on this machine nor in the log store."))
    disposition = content_disposition_header(True, name)
    headers = {"Content-Disposition": str(disposition), "Content-Length": str(source.size)}
    return StreamingHttpResponse(chunks(source), content_type="application/x-ndjson", headers=headers)
