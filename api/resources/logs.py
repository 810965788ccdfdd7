"""The log of a try or a callback: as JSON, with a token to go on from, or as one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core import signing
from django.http import StreamingHttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access, attempt_log
from scheduler_app.conf import conf
from scheduler_app.engine import states
from scheduler_app.log_store.reading import Source, open_log
from scheduler_app.models import TaskInstance

from .. import errors, params
from ..endpoint import Endpoint, asks_for
from .task_instances import visible_task

_SALT = "scheduler.api.log"
#: Bytes of a log in one JSON answer; ``full_content`` reads on up to the second number (as JSON it takes five times as
#: much memory), the token tells where it ended.
CHUNK = 1_000_000
MOST = 16_000_000


class LogView(Endpoint):
    kind = "task"

    def get(
        self, request: Request, dag_id: str, dag_run_id: str, task_id: str, try_number: str
    ) -> Response | StreamingHttpResponse:
        number = params.in_path(try_number, "try_number")
        index = params.get(request.query_params, "map_index", params.whole, -1)
        row = visible_task(self.actor, dag_id, dag_run_id, task_id, index)
        if number < 1 or number > max(row.try_number, _tries(self.actor, row)):
            raise errors.Problem(404, f"TaskInstance not found: it has no try {number}.")
        file = attempt_log.path(conf().log_folder, dag_id, dag_run_id, task_id, index, number)
        ended = number < row.try_number or row.state in states.FINISHED
        return answer(request, file, f"try {number}", ended=ended)


def answer(request: Request, file: Path, whose: str, *, ended: bool) -> Response | StreamingHttpResponse:
    """A part of a log, or all of it as lines. `whose`: of what it is; `ended`: nobody writes it any more."""
    query = request.query_params
    full = params.get(query, "full_content", params.flag, False)
    start = _offset(query.get("token"))
    source = _opened(file)
    if asks_for(request, "application/x-ndjson"):
        return StreamingHttpResponse(_stream(source, start), content_type="application/x-ndjson")
    lines, offset, more = _read(source, start, MOST if full else CHUNK)
    return Response(
        {
            "content": lines if lines or start else [_empty(source, whose)],
            "continuation_token": None if ended and not more else signing.dumps(offset, salt=_SALT),
        }
    )


def _opened(file: Path) -> Source | None:
    try:
        return open_log(conf(), file)
    except OSError as error:
        raise errors.Problem(503, f"The log store cannot be asked now: {error}") from error


def _read(source: Source | None, offset: int, most: int) -> tuple[list[dict[str, Any]], int, bool]:
    """Lines from an offset on, where they end, and whether there are more already."""
    if source is None:
        return [], offset, False
    lines, length = attempt_log.complete_lines(source.read(offset, most), most)
    return [_shown(line) for line in lines], offset + length, 0 < length < source.size - offset


def _stream(source: Source | None, offset: int) -> Iterator[str]:
    while True:
        lines, end, more = _read(source, offset, CHUNK)
        for line in lines:
            yield json.dumps(line) + "\n"
        if not more:
            return
        offset = end


def _shown(line: dict[str, Any]) -> dict[str, Any]:
    """A line that was no JSON has no time of its own, and clients take no null for one."""
    return {key: value for key, value in line.items() if not (key == "timestamp" and value is None)}


def _empty(source: Source | None, whose: str) -> dict[str, Any]:
    if source is not None:
        return {"event": f"{whose[:1].upper()}{whose[1:]} has written nothing yet."}
    return {"event": f"No log of {whose} here or in the log store: it has not started, or its log was removed."}


def _offset(token: str | None) -> int:
    if token is None or token == "":
        return 0
    try:
        return max(0, int(signing.loads(token, salt=_SALT)))
    except (signing.BadSignature, ValueError, TypeError) as error:
        raise errors.Problem(400, "Bad Signature. Please use only the tokens provided by the API.") from error


def _tries(actor: access.Actor, row: TaskInstance) -> int:
    newest = (
        access.history(actor).filter(task_instance=row).order_by("-try_number").values_list("try_number", flat=True)
    )
    return newest.first() or 0


class ExternalLogView(Endpoint):
    """Logs are kept here: there is no other place to link to."""

    kind = "task"

    def get(self, request: Request, dag_id: str, dag_run_id: str, task_id: str, try_number: str) -> Response:
        index = params.get(request.query_params, "map_index", params.whole, -1)
        params.in_path(try_number, "try_number")
        visible_task(self.actor, dag_id, dag_run_id, task_id, index)
        raise errors.Problem(400, "Task log handler does not support external logs.")
