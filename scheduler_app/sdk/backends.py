"""Classes of the user that take part when a task reads a secret or passes an XCom on, named as Airflow names them.

``AIRFLOW__SECRETS__BACKEND`` (with ``…__BACKEND_KWARGS``, a JSON object) is asked for Variables and Connections before
the environment and the database. ``AIRFLOW__CORE__XCOM_BACKEND`` turns values into what is stored and back. Both are
user code: they run where tasks run, and nowhere else.
"""

from __future__ import annotations

import functools
import json
import logging
from types import SimpleNamespace
from typing import Any

from scheduler_app.sdk.configuration import conf
from scheduler_app.sdk.exceptions import AirflowConfigException
from scheduler_app.sdk.provider_support import import_string

log = logging.getLogger("airflow.secrets")


def secret_variable(key: str) -> str | None:
    """What the secrets backend has under the key; None when it has nothing, failed (the log says so), or is not set."""
    return _ask("get_variable", key)


def secret_connection(conn_id: str) -> Any:
    """A Connection, or None as above."""
    return _ask("get_connection", conn_id)


def stored(value: Any, key: str, own: tuple[str, str, str, int] | None) -> Any:
    """What is stored in place of a value that a task pushes."""
    backend = _xcom_backend()
    if backend is None:
        return value
    dag_id, run_id, task_id, map_index = own or (None, None, None, -1)
    names = {"key": key, "dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
    return backend.serialize_value(value, **names)


def loaded(value: Any, key: str, dag_id: str, run_id: str, task_id: str, map_index: int) -> Any:
    """The value that was pushed, from what was stored."""
    backend = _xcom_backend()
    if backend is None:
        return value
    return backend.deserialize_value(
        SimpleNamespace(value=value, key=key, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)
    )


def _ask(method: str, name: str) -> Any:
    backend = _secrets_backend()
    try:
        return None if backend is None else getattr(backend, method)(name)
    except Exception:
        log.exception("The secrets backend %s failed; the next source is asked.", type(backend).__qualname__)
        return None


def _secrets_backend() -> Any:
    path = conf.get("secrets", "backend", fallback="")
    return _made(path, conf.get("secrets", "backend_kwargs", fallback="") or "{}") if path else None


@functools.cache
def _made(path: str, kwargs: str) -> Any:
    try:
        return import_string(path)(**json.loads(kwargs))
    except Exception as error:
        raise AirflowConfigException(
            f"The secrets backend {path!r} cannot be made ({type(error).__name__}: {error}): "
            "correct AIRFLOW__SECRETS__BACKEND and AIRFLOW__SECRETS__BACKEND_KWARGS (a JSON object)."
        ) from error


def _xcom_backend() -> Any:
    path = conf.get("core", "xcom_backend", fallback="")
    return _found(path) if path else None


@functools.cache
def _found(path: str) -> Any:
    """None for the class that is used anyway."""
    from scheduler_app.sdk.xcom import BaseXCom

    try:
        found = import_string(path)
    except ImportError as error:
        raise AirflowConfigException(
            f"The XCom backend {path!r} cannot be imported ({error}): correct AIRFLOW__CORE__XCOM_BACKEND."
        ) from error
    if not (isinstance(found, type) and issubclass(found, BaseXCom)):
        raise AirflowConfigException(f"AIRFLOW__CORE__XCOM_BACKEND names {path!r}, which is no subclass of BaseXCom.")
    return None if found is BaseXCom else found
