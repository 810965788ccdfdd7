"""Small functions and classes that provider packages import from Airflow's own modules."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import reduce
from itertools import islice
from typing import Any, NamedTuple

from scheduler_app.sdk.operator import BaseOperator
from scheduler_app.sdk.xcom_arg import NOTSET, SET_DURING_EXECUTION, _NotSet, is_arg_set

__all__ = ["NOTSET", "SET_DURING_EXECUTION", "is_arg_set"]

ArgNotSet = _NotSet


def prune_dict(val: Any, mode: str = "strict") -> Any:
    """``val`` without the entries that are None (mode "strict") or empty (mode "truthy"), at any depth."""
    if mode not in ("strict", "truthy"):
        raise ValueError(f"mode is strict or truthy, not {mode!r}.")

    def keep(item: Any) -> bool:
        return item is not None if mode == "strict" else bool(item)

    if isinstance(val, dict):
        pruned = {key: prune_dict(item, mode) if isinstance(item, (dict, list)) else item for key, item in val.items()}
        return {key: item for key, item in pruned.items() if keep(item)}
    if isinstance(val, list):
        items = [prune_dict(item, mode) if isinstance(item, (dict, list)) else item for item in val]
        return [item for item in items if keep(item)]
    return val


def exactly_one(*args: Any) -> bool:
    """Whether one of the arguments is true, and no other. Raises ValueError for a list as argument."""
    if any(isinstance(arg, (list, tuple, set)) for arg in args):
        raise ValueError("exactly_one() takes values, not a list of them: write exactly_one(*values).")
    return sum(map(bool, args)) == 1


def at_most_one(*args: Any) -> bool:
    """Whether one of the arguments is set, or none."""
    return sum(bool(arg) and is_arg_set(arg) for arg in args) <= 1


def merge_dicts(dict1: Mapping[str, Any], dict2: Mapping[str, Any]) -> dict[str, Any]:
    """``dict2`` over ``dict1``, at any depth."""
    merged = dict(dict1)
    for key, value in dict2.items():
        both = isinstance(merged.get(key), Mapping) and isinstance(value, Mapping)
        merged[key] = merge_dicts(merged[key], value) if both else value
    return merged


def chunks(items: list[Any], chunk_size: int) -> Iterator[list[Any]]:
    """Lists of at most ``chunk_size`` items."""
    if chunk_size <= 0:
        raise ValueError("chunk_size is 1 or more.")
    iterator = iter(items)
    while part := list(islice(iterator, chunk_size)):
        yield part


def reduce_in_chunks(
    fn: Callable[[Any, list[Any]], Any], iterable: list[Any], initializer: Any, chunk_size: int = 0
) -> Any:
    """As ``functools.reduce``, over chunks of the items (all at once for size 0)."""
    if not iterable:
        return initializer
    return reduce(fn, chunks(iterable, chunk_size or len(iterable)), initializer)


def convert_camel_to_snake(camel_str: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() and at else char.lower() for at, char in enumerate(camel_str))


def determine_kwargs(func: Callable[..., Any], args: Collection[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of ``kwargs`` that a call of ``func`` with ``args`` takes."""
    from scheduler_app.sdk.operators.python import call_arguments

    return call_arguments(func, args, kwargs, {})


def is_async_callable(func: Any) -> bool:
    """Whether calling it gives a coroutine."""
    while hasattr(func, "func"):
        func = func.func
    return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(getattr(func, "__call__", None))  # noqa: B004


def import_string(dotted_path: str) -> Any:
    """The object of a dotted path. Raises ImportError."""
    module, _, name = dotted_path.rpartition(".")
    if not module:
        raise ImportError(f"{dotted_path!r} is no dotted path of a name in a module.")
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        raise ImportError(f"Module {module!r} has no {name!r}.") from None


def iter_namespace(module: Any) -> Iterable[str]:
    """Dotted names of the modules in a package."""
    return (name for _, name, _ in pkgutil.iter_modules(module.__path__, module.__name__ + "."))


def qualname(thing: Any, use_qualname: bool = False) -> str:
    """Module and name of a class, a function, or of an object's class."""
    kind = thing if callable(thing) and hasattr(thing, "__name__") else type(thing)
    return f"{kind.__module__}.{kind.__qualname__ if use_qualname else kind.__name__}"


def is_valid_dotpath(path: str) -> bool:
    return isinstance(path, str) and all(part.isidentifier() for part in path.split(".")) and "." in path


def to_boolean(astring: str | None) -> bool:
    """True for the words that mean yes."""
    return astring is not None and astring.strip().lower() in ("true", "t", "yes", "y", "1", "on")


class TaskInstanceKey(NamedTuple):
    """What names one task instance."""

    dag_id: str
    task_id: str
    run_id: str
    try_number: int = 1
    map_index: int = -1


class BaseAsyncOperator(BaseOperator):
    """Override :meth:`aexecute`, a coroutine."""

    @property
    def is_async(self) -> bool:
        return True

    async def aexecute(self, context: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no aexecute(self, context): define it.")

    def execute(self, context: Any) -> Any:
        import asyncio

        return asyncio.run(self.aexecute(context))


class BaseSecretsBackend:
    """Base of secrets backends; ``sdk/backends.py`` asks the one that AIRFLOW__SECRETS__BACKEND names."""

    @staticmethod
    def build_path(path_prefix: str, secret_id: str, sep: str = "/") -> str:
        return f"{path_prefix}{sep}{secret_id}"

    def get_conn_value(self, conn_id: str) -> str | None:
        raise NotImplementedError

    def deserialize_connection(self, conn_id: str, value: str) -> Any:
        """The Connection of a URI or of JSON."""
        from scheduler_app.sdk.connection import Connection

        return Connection.read(value, conn_id)

    def get_connection(self, conn_id: str) -> Any:
        """The Connection, or None when the backend does not have it."""
        value = self.get_conn_value(conn_id)
        return None if value is None else self.deserialize_connection(conn_id, value)

    def get_variable(self, key: str) -> str | None:
        raise NotImplementedError

    def get_config(self, key: str) -> str | None:
        return None


class Stats:
    """The metrics client that provider packages call. Their metrics are not collected here; every call is accepted."""

    @staticmethod
    def incr(stat: str, count: int = 1, rate: float = 1, *, tags: Any = None, **_: Any) -> None: ...

    @staticmethod
    def decr(stat: str, count: int = 1, rate: float = 1, *, tags: Any = None, **_: Any) -> None: ...

    @staticmethod
    def gauge(stat: str, value: float, rate: float = 1, delta: bool = False, **_: Any) -> None: ...

    @staticmethod
    def timing(stat: str, dt: Any, *, tags: Any = None, **_: Any) -> None: ...


class LineageCollector:
    """Where hooks report the assets that they touched. Lineage is not collected here; every report is accepted."""

    has_collected = False

    def add_input_asset(self, *args: Any, **kwargs: Any) -> None: ...

    def add_output_asset(self, *args: Any, **kwargs: Any) -> None: ...

    def add_extra(self, *args: Any, **kwargs: Any) -> None: ...

    def create_asset(self, *args: Any, **kwargs: Any) -> None: ...


_collector = LineageCollector()


def get_hook_lineage_collector() -> LineageCollector:
    return _collector
