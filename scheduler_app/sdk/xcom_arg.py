"""XComArg: the result of a task as a value in the DAG file; it draws the edge, and is resolved when its reader runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler_app.sdk.exceptions import AirflowException, AirflowSkipException, XComNotFound
from scheduler_app.sdk.node import Linkable

if TYPE_CHECKING:
    from scheduler_app.sdk.operator import AbstractOperator

XCOM_RETURN_KEY = "return_value"


class _NotSet:
    def __repr__(self) -> str:
        return "NOTSET"

    def __bool__(self) -> bool:
        return False


NOTSET: Any = _NotSet()


class _SetDuringExecution(_NotSet):
    def __repr__(self) -> str:
        return "DYNAMIC (set during execution)"


#: first value of an operator's field that only its execution knows
SET_DURING_EXECUTION: Any = _SetDuringExecution()


def is_arg_set(value: Any) -> bool:
    return not isinstance(value, _NotSet)


class XComArg(Linkable):
    """``XComArg(task, key)`` is the plain kind; ``.map``, ``.zip`` and ``.concat`` make the others."""

    def __new__(cls, *args: Any, **kwargs: Any) -> XComArg:
        return super().__new__(PlainXComArg if cls is XComArg else cls)

    def iter_references(self) -> Iterator[tuple[AbstractOperator, str]]:
        """Every (task, key) that the value is made of."""
        raise NotImplementedError

    @staticmethod
    def iter_xcom_references(value: Any) -> Iterator[tuple[AbstractOperator, str]]:
        """As :meth:`iter_references`, for any value: lists, dicts, and objects with template fields are looked into."""
        if isinstance(value, (XComArg, Referencing)):
            yield from value.iter_references()
        elif isinstance(value, (str, bytes, int, float)) or value is None:
            return
        elif isinstance(value, Mapping):
            for item in value.values():
                yield from XComArg.iter_xcom_references(item)
        elif isinstance(value, (list, tuple, set, frozenset)):
            for item in value:
                yield from XComArg.iter_xcom_references(item)
        elif not isinstance(value, (Linkable, type)) and isinstance(
            getattr(type(value), "template_fields", None), (list, tuple)
        ):
            for name in type(value).template_fields:
                yield from XComArg.iter_xcom_references(getattr(value, name, None))

    @staticmethod
    def apply_upstream_relationship(task: Any, value: Any) -> None:
        """Draws the edges that ``value`` as an argument of ``task`` implies."""
        for source, _ in XComArg.iter_xcom_references(value):
            if source is not task:
                task.set_upstream(source)

    @property
    def roots(self) -> Sequence[Any]:
        return list(dict.fromkeys(op for op, _ in self.iter_references()))

    @property
    def leaves(self) -> Sequence[Any]:
        return self.roots

    def set_upstream(self, other: Any, edge_modifier: Any = None) -> None:
        for task in self.roots:
            task.set_upstream(other, edge_modifier=edge_modifier)

    def set_downstream(self, other: Any, edge_modifier: Any = None) -> None:
        for task in self.roots:
            task.set_downstream(other, edge_modifier=edge_modifier)

    def map(self, f: Callable[[Any], Any]) -> MapXComArg:
        """``f`` of every element, called when the reader runs. ``f`` is a plain function."""
        if getattr(f, "_is_task_decorator", False) or isinstance(f, Linkable):
            raise ValueError("XComArg.map() takes a plain function, not one decorated with @task.")
        return MapXComArg(self, [f])

    def zip(self, *others: XComArg, fillvalue: Any = NOTSET) -> ZipXComArg:
        return ZipXComArg([self, *others], fillvalue)

    def concat(self, *others: XComArg) -> ConcatXComArg:
        return ConcatXComArg([self, *others])

    def resolve(self, context: Mapping[str, Any]) -> Any:
        """The value in a running attempt."""
        raise NotImplementedError

    def items(self, context: Mapping[str, Any]) -> Sequence[Any]:
        """The elements that a reader is mapped over."""
        return items_of(self.resolve(context))

    def to_ref(self) -> dict[str, Any]:
        """The ``Ref`` of docs/borders.md."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        for task in self.roots:
            task.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        for task in reversed(self.roots):
            task.__exit__(*error)


class Referencing:
    """Other values that stand for XComs (arguments of a mapped group)."""

    def iter_references(self) -> Iterator[tuple[AbstractOperator, str]]:
        raise NotImplementedError

    def resolve(self, context: Mapping[str, Any]) -> Any:
        raise NotImplementedError


class PlainXComArg(XComArg):
    """What ``operator`` pushed under ``key``."""

    def __init__(self, operator: AbstractOperator, key: str = XCOM_RETURN_KEY) -> None:
        self.operator, self.key = operator, key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlainXComArg):
            return NotImplemented
        return self.operator is other.operator and self.key == other.key

    def __hash__(self) -> int:
        return hash((id(self.operator), self.key))

    def __repr__(self) -> str:
        return f"XComArg({self.operator!r}, key={self.key!r})"

    def __getitem__(self, item: Any) -> XComArg:
        """``result["key"]``: the XCom that a task with multiple outputs pushed under that key."""
        if not isinstance(item, str):
            raise ValueError(
                f"A task's result can only be indexed by the name of one of its outputs in the DAG file, not {item!r}: "
                "take the element inside the task that reads it."
            )
        return PlainXComArg(self.operator, item)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(
            f"The result of task {self.operator.task_id!r} is not known while the DAG file is read, so it cannot be "
            "looped "
            "over there: use .expand(), or loop inside a task."
        )

    def __str__(self) -> str:
        """Jinja text that pulls the value, for use inside a template."""
        key = "" if self.key == XCOM_RETURN_KEY else f", key={self.key!r}"
        dag = f", dag_id={self.operator.dag_id!r}" if self.operator.has_dag() else ""
        return f"{{{{ task_instance.xcom_pull(task_ids={self.operator.task_id!r}{dag}{key}) }}}}"

    def iter_references(self) -> Iterator[tuple[AbstractOperator, str]]:
        yield self.operator, self.key

    def map(self, f: Callable[[Any], Any]) -> MapXComArg:
        self._only_return_value("map")
        return super().map(f)

    def zip(self, *others: XComArg, fillvalue: Any = NOTSET) -> ZipXComArg:
        self._only_return_value("zip")
        return super().zip(*others, fillvalue=fillvalue)

    def concat(self, *others: XComArg) -> ConcatXComArg:
        self._only_return_value("concat")
        return super().concat(*others)

    def _only_return_value(self, method: str) -> None:
        if self.key != XCOM_RETURN_KEY:
            raise ValueError(f"XComArg.{method}() works on a task's return value, not on its XCom {self.key!r}.")

    def as_setup(self) -> XComArg:
        for operator, _ in self.iter_references():
            operator.is_setup = True
        return self

    def as_teardown(self, *, setups: Any = NOTSET, on_failure_fail_dagrun: Any = NOTSET) -> XComArg:
        self.operator.as_teardown(setups=setups, on_failure_fail_dagrun=on_failure_fail_dagrun)
        return self

    @property
    def is_setup(self) -> bool:
        return bool(self.operator.is_setup)

    @is_setup.setter
    def is_setup(self, value: bool) -> None:
        self.operator.is_setup = value

    @property
    def is_teardown(self) -> bool:
        return bool(self.operator.is_teardown)

    @is_teardown.setter
    def is_teardown(self, value: bool) -> None:
        self.operator.is_teardown = value

    @property
    def on_failure_fail_dagrun(self) -> bool:
        return bool(self.operator.on_failure_fail_dagrun)

    @on_failure_fail_dagrun.setter
    def on_failure_fail_dagrun(self, value: bool) -> None:
        self.operator.on_failure_fail_dagrun = value

    def to_ref(self) -> dict[str, Any]:
        return {"xcom": self.operator.task_id, "key": self.key}

    def resolve(self, context: Mapping[str, Any]) -> Any:
        ti = context["ti"]
        reader = context["task"]
        indexes = relevant_map_indexes(reader, self.operator, ti.map_index)
        if indexes == "all":
            from scheduler_app.sdk.lazy_sequence import LazyXComSequence

            return LazyXComSequence(ti, self.operator.task_id, self.key)
        found, value = ti.find_xcom(self.operator.task_id, self.key, map_index=indexes)
        if found:
            return value
        if self.key == XCOM_RETURN_KEY or self.operator.multiple_outputs:
            return None
        raise XComNotFound(ti.dag_id, self.operator.task_id, self.key)


def relevant_map_indexes(reader: Any, source: Any, map_index: int) -> int | str:
    """Which instances of ``source`` a reader sees: a map index, or ``"all"``.

    Inside a mapped group a task reads its own index; from outside, everything that is mapped is read whole.
    """
    source_group = source.get_closest_mapped_task_group()
    if source_group is not None and reader.get_closest_mapped_task_group() is source_group:
        return map_index
    return "all" if source.is_mapped or source_group is not None else -1


class MapXComArg(XComArg):
    """Functions applied to every element."""

    def __init__(self, arg: XComArg, callables: list[Callable[[Any], Any]]) -> None:
        self.arg, self.callables = arg, callables

    def __repr__(self) -> str:
        return f"{self.arg!r}.map(…)"

    def iter_references(self) -> Iterator[tuple[AbstractOperator, str]]:
        yield from self.arg.iter_references()

    def map(self, f: Callable[[Any], Any]) -> MapXComArg:
        return MapXComArg(self.arg, [*self.callables, f])

    def to_ref(self) -> dict[str, Any]:
        return {"map": self.arg.to_ref()}

    def resolve(self, context: Mapping[str, Any]) -> Any:
        return list(self.items(context))

    def items(self, context: Mapping[str, Any]) -> Sequence[Any]:
        source = self.arg.items(context)
        return Elements(len(source), lambda index: self._apply(source[index]))

    def _apply(self, item: Any) -> Any:
        for function in self.callables:
            try:
                item = function(item)
            except AirflowSkipException as skip:
                return SkippedItem(skip)
        return item


class SkippedItem:
    """Stands for an element whose ``.map`` function raised AirflowSkipException: its task instance is skipped."""

    def __init__(self, reason: AirflowSkipException) -> None:
        self.reason = reason


class ZipXComArg(XComArg):
    """Elements side by side, as with ``zip`` (or ``zip_longest`` when a fill value is given)."""

    def __init__(self, args: Sequence[XComArg], fillvalue: Any = NOTSET) -> None:
        if not args:
            raise ValueError("zip() needs at least one result.")
        self.args, self.fillvalue = list(args), fillvalue

    def iter_references(self) -> Iterator[tuple[AbstractOperator, str]]:
        for arg in self.args:
            yield from arg.iter_references()

    def to_ref(self) -> dict[str, Any]:
        return {"zip": [arg.to_ref() for arg in self.args], "fill": is_arg_set(self.fillvalue)}

    def resolve(self, context: Mapping[str, Any]) -> Any:
        return list(self.items(context))

    def items(self, context: Mapping[str, Any]) -> Sequence[Any]:
        columns = [arg.items(context) for arg in self.args]
        longest = is_arg_set(self.fillvalue)
        length = (max if longest else min)(len(column) for column in columns)

        def row(index: int) -> tuple[Any, ...]:
            return tuple(column[index] if index < len(column) else self.fillvalue for column in columns)

        return Elements(length, row)


class ConcatXComArg(XComArg):
    """One after another."""

    def __init__(self, args: Sequence[XComArg]) -> None:
        self.args = list(args)

    def iter_references(self) -> Iterator[tuple[AbstractOperator, str]]:
        for arg in self.args:
            yield from arg.iter_references()

    def concat(self, *others: XComArg) -> ConcatXComArg:
        return ConcatXComArg([*self.args, *others])

    def to_ref(self) -> dict[str, Any]:
        return {"concat": [arg.to_ref() for arg in self.args]}

    def resolve(self, context: Mapping[str, Any]) -> Any:
        return list(self.items(context))

    def items(self, context: Mapping[str, Any]) -> Sequence[Any]:
        places = [
            (column, index) for arg in self.args for column in [arg.items(context)] for index in range(len(column))
        ]
        return Elements(len(places), lambda place: places[place][0][places[place][1]])


class Elements(Sequence[Any]):
    """Elements made when they are asked for: a function that breaks for one of them breaks one instance, not all."""

    def __init__(self, length: int, make: Callable[[int], Any]) -> None:
        self._length, self._make = length, make

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._make(place) for place in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._make(index % self._length)


def items_of(value: Any) -> list[Any]:
    """The elements that mapping sees: a dict gives its (key, value) pairs."""
    if isinstance(value, Mapping):
        return list(value.items())
    if value is None or isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise AirflowException(f"Cannot map over {value!r}: a list or a dict is needed.")
    return list(value)
