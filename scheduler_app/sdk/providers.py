"""What installed provider packages say about themselves: the hook class of each connection type, and SQL dialects."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
from collections.abc import Mapping
from typing import Any, NamedTuple

from scheduler_app.sdk.exceptions import AirflowException

ENTRY_POINTS = "apache_airflow_provider"


class HookInfo(NamedTuple):
    """The hook of one connection type."""

    hook_class_name: str
    connection_id_attribute_name: str
    package_name: str
    hook_name: str
    connection_type: str


class DialectInfo(NamedTuple):
    """A SQL dialect of a provider package."""

    name: str
    dialect_class_name: str
    provider_name: str


@functools.cache
def installed() -> dict[str, dict[str, Any]]:
    """Package name → what its ``get_provider_info`` gives. A package that fails to say so is left out."""
    found = {}
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            info = entry.load()()
        except Exception:
            continue
        found[info.get("package-name", entry.name)] = info
    return found


@functools.cache
def hook_classes() -> dict[str, tuple[str, str]]:
    """Connection type → (dotted class, package)."""
    return {
        item["connection-type"]: (item["hook-class-name"], package)
        for package, info in installed().items()
        for item in info.get("connection-types", ())
    }


def hook_of(connection: Any, hook_params: Mapping[str, Any] | None = None) -> Any:
    """A hook for the connection. Raises AirflowException when no installed package has one."""
    found = hook_classes().get(connection.conn_type)
    if found is None:
        raise AirflowException(
            f"No installed provider package has a hook for connections of type {connection.conn_type!r} "
            f"(connection {connection.conn_id!r}): install it where tasks run, or import a hook class and give it "
            "the id."
        )
    kind = _load(found[0])
    return kind(**{getattr(kind, "conn_name_attr", "conn_id"): connection.conn_id}, **(hook_params or {}))


def _load(dotted: str) -> Any:
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


class ProvidersManager:
    """The questions that provider packages ask about each other."""

    @property
    def providers(self) -> dict[str, dict[str, Any]]:
        return installed()

    @property
    def hooks(self) -> dict[str, HookInfo]:
        """By connection type; the classes are imported to learn their names."""
        return {kind: _info(kind, dotted, package) for kind, (dotted, package) in hook_classes().items()}

    @property
    def dialects(self) -> dict[str, DialectInfo]:
        return {
            item["dialect-type"]: DialectInfo(item["dialect-type"], item["dialect-class-name"], package)
            for package, info in installed().items()
            for item in info.get("dialects", ())
        }

    def initialize_providers_hooks(self) -> None:
        hook_classes()


ProvidersManagerTaskRuntime = ProvidersManager


def _info(connection_type: str, dotted: str, package: str) -> HookInfo:
    kind = _load(dotted)
    attribute = getattr(kind, "conn_name_attr", "conn_id")
    return HookInfo(dotted, attribute, package, getattr(kind, "hook_name", dotted), connection_type)
