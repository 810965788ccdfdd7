"""What a successful attempt leaves: its XComs, the events of its outlets, and the success outcome."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from scheduler_app.engine.mapping import NO_LENGTH
from scheduler_app.sdk.configuration import conf
from scheduler_app.sdk.exceptions import (
    UnmappableXComLengthPushed,
    UnmappableXComTypePushed,
    XComForMappingNotPushed,
)
from scheduler_app.sdk.lazy_sequence import LazyXComSequence
from scheduler_app.sdk.mapping import mapped_over
from scheduler_app.sdk.runs import own_value
from scheduler_app.sdk.xcom_arg import XCOM_RETURN_KEY
from scheduler_app.wire import encode

log = logging.getLogger("airflow.task")


def push_result(task: Any, value: Any, port: Any, map_index: int = -1) -> int | None:
    """Pushes the returned value (and each output of a task with several). Gives the length that mapping needs.

    An instance of a mapped task (or of one in a mapped group) is one element of what is mapped over its task, whatever
    it returns: its length is ``NO_LENGTH``, which says that it pushed something.

    Raises XComForMappingNotPushed, UnmappableXComTypePushed, UnmappableXComLengthPushed, TypeError for outputs that are
    no dict with text keys, wire.EncodeError for values that cannot cross.
    """
    value = own_value(value) if value is not None and task.do_xcom_push else None
    feeds = bool(mapped_over(task))
    is_element = task.is_mapped or map_index >= 0 or not _declared(task)
    if value is None:
        if feeds and not is_element:
            raise XComForMappingNotPushed
        return None
    length = NO_LENGTH if feeds else None
    if feeds and not is_element:
        if isinstance(value, (str, bytes)) or not isinstance(value, (list, tuple, dict, LazyXComSequence)):
            raise UnmappableXComTypePushed(value)
        length = len(value)
        if length > (longest := conf.getint("core", "max_map_length")):
            raise UnmappableXComLengthPushed(value, longest)
    if task.multiple_outputs:
        _push_outputs(task, value, port)
    port.set_xcom(XCOM_RETURN_KEY, value, length)
    return length


def _declared(task: Any) -> bool:
    """False for an instance of a mapped task: its length is the number of instances."""
    declared = task.dag.task_dict.get(task.task_id) if task.dag is not None else None
    return declared is not None and not declared.is_mapped


def _push_outputs(task: Any, value: Any, port: Any) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(
            f"Task {task.task_id!r} has multiple_outputs, so it must return a dict; it returned a "
            f"{type(value).__qualname__}."
        )
    for key in value:
        if not isinstance(key, str):
            raise TypeError(
                f"The outputs of task {task.task_id!r} need text keys; {key!r} is a {type(key).__qualname__}."
            )
    for key, item in value.items():
        port.set_xcom(key, own_value(item), None)


def success_document(task: Any, context: Any, length: int | None = None) -> dict[str, Any]:
    """The success outcome with the events of the task's outlets."""
    outlets = context["outlets"]
    events = context["outlet_events"].documents(outlets, context.get("partition_key")) if outlets else []
    document: dict[str, Any] = {"state": "success"}
    if length is not None:
        document["map_length"] = length
    if events:
        document["asset_events"] = encode(events, "asset_events")
    return document


def render_map_index(task: Any, context: Any) -> None:
    """Renders ``map_index_template``, which may use what the task put into the context. Raises what that raises."""
    if task.map_index_template and context["ti"].map_index >= 0:
        text = task.render_template(task.map_index_template, context, task.get_template_env())
        context["ti"].rendered_map_index = str(text)


def map_index_of(context: Any) -> dict[str, Any]:
    rendered = context["ti"].rendered_map_index if context is not None and "ti" in context else None
    return {} if rendered is None else {"rendered_map_index": rendered}
