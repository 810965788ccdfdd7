"""What a task or group is mapped over: a product of lists (``expand``) or a list of dicts (``expand_kwargs``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler_app.sdk.exceptions import AirflowException
from scheduler_app.sdk.xcom_arg import Referencing, SkippedItem, XComArg, items_of

if TYPE_CHECKING:
    from scheduler_app.sdk.abstract_operator import AbstractOperator


class ExpandInput:
    """Base of the two kinds."""

    style: str

    def iter_references(self) -> Iterator[tuple[AbstractOperator, str]]:
        raise NotImplementedError

    def iter_mapped(self) -> Iterator[tuple[AbstractOperator, str]]:
        """The results among the references whose lengths say how many instances there are."""
        raise NotImplementedError

    def resolve(self, context: Mapping[str, Any], map_index: int) -> tuple[dict[str, Any], set[int]]:
        """The arguments of one instance, and the ids of those that came from XComs (they are not templates)."""
        raise NotImplementedError

    def to_doc(self) -> dict[str, Any]:
        """The ``MapInput`` of docs/borders.md."""
        raise NotImplementedError


class ProductInput(ExpandInput):
    """``expand(x=…, y=…)``: every combination; the last argument changes fastest."""

    style = "expand"

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value

    def iter_references(self) -> Iterator[tuple[AbstractOperator, str]]:
        for item in self.value.values():
            yield from XComArg.iter_xcom_references(item)

    def iter_mapped(self) -> Iterator[tuple[AbstractOperator, str]]:
        for item in self.value.values():
            yield from _lengths(item)

    def to_doc(self) -> dict[str, Any]:
        return {"style": self.style, "inputs": {name: ref_of(item) for name, item in self.value.items()}}

    def resolve(self, context: Mapping[str, Any], map_index: int) -> tuple[dict[str, Any], set[int]]:
        if map_index < 0:
            raise RuntimeError("A mapped task has no values without a map index.")
        columns = {name: _column(item, context) for name, item in self.value.items()}
        chosen: dict[str, Any] = {}
        rest = map_index
        for name in reversed(list(columns)):
            rest, place = divmod(rest, max(len(columns[name]), 1))
            chosen[name] = _pick(columns[name], place, name)
        if rest:
            raise AirflowException(f"Map index {map_index} lies beyond the values that the upstream tasks pushed.")
        literal = {name for name, item in self.value.items() if not isinstance(item, (XComArg, Referencing))}
        values = {name: _or_skip(chosen[name]) for name in self.value}
        resolved = {id(value) for name, value in values.items() if name not in literal}
        return {name: _inner(values[name], context, name in literal) for name in values}, resolved


class DictsInput(ExpandInput):
    """``expand_kwargs([{…}, {…}])``: one instance for each dict."""

    style = "expand_kwargs"

    def __init__(self, value: Any) -> None:
        self.value = value

    def iter_references(self) -> Iterator[tuple[AbstractOperator, str]]:
        yield from XComArg.iter_xcom_references(self.value)

    def iter_mapped(self) -> Iterator[tuple[AbstractOperator, str]]:
        yield from _lengths(self.value)

    def to_doc(self) -> dict[str, Any]:
        return {"style": self.style, "inputs": {"kwargs": ref_of(self.value)}}

    def resolve(self, context: Mapping[str, Any], map_index: int) -> tuple[dict[str, Any], set[int]]:
        if map_index < 0:
            raise RuntimeError("A mapped task has no values without a map index.")
        is_literal = not isinstance(self.value, (XComArg, Referencing))
        item = self.value[map_index] if is_literal else _pick(_column(self.value, context), map_index, "kwargs")
        item = _or_skip(item)
        if isinstance(item, XComArg):
            item, is_literal = item.resolve(context), False
        if not isinstance(item, Mapping):
            raise ValueError(f"expand_kwargs() takes dicts; element {map_index} is {item!r}.")
        for key in item:
            if not isinstance(key, str):
                raise ValueError(
                    f"expand_kwargs() takes dicts with text keys; element {map_index} has the key {key!r}."
                )
        values = {key: _inner(value, context, is_literal) for key, value in item.items()}
        resolved = set() if is_literal else {id(value) for value in values.values()}
        return values, resolved


def _lengths(item: Any) -> Iterator[tuple[AbstractOperator, str]]:
    """Of a literal list only the list's own length counts, not that of a result which is an element of it."""
    if isinstance(item, (XComArg, Referencing)):
        yield from XComArg.iter_xcom_references(item)


def _inner(value: Any, context: Mapping[str, Any], literal: bool) -> Any:
    """An XComArg that sits as an element of a literal list is read too."""
    return value.resolve(context) if literal and isinstance(value, (XComArg, Referencing)) else value


def _column(item: Any, context: Mapping[str, Any]) -> Sequence[Any]:
    if isinstance(item, XComArg):
        return item.items(context)
    return items_of(item.resolve(context) if isinstance(item, Referencing) else item)


def _pick(items: Sequence[Any], index: int, name: str) -> Any:
    if index >= len(items):
        raise AirflowException(
            f"Argument {name!r} has {len(items)} elements now, but instance {index} was made for one more."
        )
    return items[index]


def _or_skip(value: Any) -> Any:
    if isinstance(value, SkippedItem):
        raise value.reason
    return value


def ref_of(item: Any) -> dict[str, Any]:
    """The ``Ref`` of docs/borders.md for one input."""
    if isinstance(item, XComArg):
        return item.to_ref()
    if isinstance(item, Referencing):
        raise NotImplementedError("A task inside a mapped group cannot be mapped itself.")
    return {"literal": len(item)}


def check_mappable(method: str, name: str, value: Any) -> None:
    """Raises ValueError for what cannot be mapped over."""
    if isinstance(value, (XComArg, Referencing)):
        return
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, Mapping)):
        raise ValueError(
            f"{method}() got {name}={value!r} ({type(value).__qualname__}), which cannot be mapped over: "
            "give a list, a dict, or the result of a task; constants belong into partial()."
        )


def check_dicts(kwargs: Any) -> None:
    """Raises TypeError for what ``expand_kwargs`` cannot take, as far as the file says it."""
    if isinstance(kwargs, Mapping):
        raise TypeError("expand_kwargs() takes a list of dicts; it got one dict.")
    for item in kwargs if isinstance(kwargs, Sequence) else ():
        if not isinstance(item, (Mapping, XComArg, Referencing)):
            raise TypeError(f"expand_kwargs() takes dicts (or results of tasks), not {item!r}.")


def mapped_over(task: AbstractOperator) -> list[Any]:
    """The tasks and groups of the DAG that are mapped over the result of ``task``."""
    return [] if task.dag is None else index_of(task.dag).get(task.task_id, [])


def index_of(dag: Any) -> dict[str, list[Any]]:
    """Task id → the tasks and groups that are mapped over its result; made once for a DAG."""
    if dag._mapped_over is None:
        index: dict[str, list[Any]] = {}
        for node in [*dag.tasks, *dag.task_group.iter_groups()]:
            if node.is_mapped:
                for source, _ in node.expand_input.iter_mapped():
                    index.setdefault(source.task_id, []).append(node)
        dag._mapped_over = index
    found: dict[str, list[Any]] = dag._mapped_over
    return found
