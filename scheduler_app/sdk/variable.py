"""Variables: texts (or JSON) by key, read while a DAG file is read or a task runs, written by tasks."""

from __future__ import annotations

import json
from typing import Any

from scheduler_app.sdk import backends
from scheduler_app.sdk.exceptions import AirflowRuntimeError, ErrorType
from scheduler_app.sdk.runtime import current_port, has_port
from scheduler_app.sdk.secret_names import is_sensitive, secrets_in
from scheduler_app.sdk.xcom_arg import NOTSET, is_arg_set


class Variable:
    """``Variable.get("key")`` and its kin. A DAG file may only read them."""

    def __init__(self, key: str | None = None, val: Any = None, description: str | None = None) -> None:
        self.key, self.val, self.description = key, val, description

    @classmethod
    def get(
        cls,
        key: str,
        default: Any = NOTSET,
        deserialize_json: bool = False,
        *,
        default_var: Any = NOTSET,
    ) -> Any:
        """The value; ``default`` (in Airflow 2: ``default_var``) when there is none, else AirflowRuntimeError."""
        fallback = default if is_arg_set(default) else default_var
        value = read_variable(key)
        if value is None:
            if is_arg_set(fallback):
                return fallback
            raise AirflowRuntimeError(
                f"{ErrorType.VARIABLE_NOT_FOUND}: there is no Variable {key!r}: create it, or give a default.",
                ErrorType.VARIABLE_NOT_FOUND,
            )
        return _from_json(key, value) if deserialize_json else value

    @classmethod
    def set(cls, key: str, value: Any, description: str | None = None, serialize_json: bool = False) -> None:
        """Creates or overwrites a variable."""
        if not isinstance(key, str) or not key:
            raise ValueError(f"A variable's key is a non-empty text, not {key!r}.")
        text = json.dumps(value, indent=2) if serialize_json else str(value)
        current_port().set_variable(key, text, description)

    @classmethod
    def delete(cls, key: str) -> None:
        current_port().delete_variable(key)

    @classmethod
    def setdefault(cls, key: str, default: Any, description: str | None = None, deserialize_json: bool = False) -> Any:
        """The value, after storing ``default`` when there was none. Raises ValueError for a default of None."""
        found = cls.get(key, None, deserialize_json)
        if found is not None:
            return found
        if default is None:
            raise ValueError(f"Variable.setdefault({key!r}) needs a default that is not None.")
        cls.set(key, default, description, serialize_json=deserialize_json)
        return default

    @classmethod
    def update(cls, key: str, value: Any, serialize_json: bool = False) -> None:
        cls.get(key)
        cls.set(key, value, serialize_json=serialize_json)


def read_variable(key: str) -> str | None:
    """The text of a variable: of the secrets backend, the environment (``AIRFLOW_VAR_KEY``), then from our side."""
    import os

    found = backends.secret_variable(key)
    if found is None:
        found = os.environ.get(f"AIRFLOW_VAR_{key.upper()}")
    if found is None:
        found = current_port().get_variable(key)
    if found and is_sensitive(key) and has_port():
        current_port().mask_secret(found)
    return found


def _from_json(key: str, text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(
            f"Variable {key!r} is no JSON ({error}): correct it, or read it without deserialize_json."
        ) from None
    for secret in secrets_in(value, key) if has_port() else ():
        current_port().mask_secret(secret)
    return value


class VariableAccessor:
    """``var.value.name`` and ``var.json.name`` in templates; ``.get(name, default)`` too."""

    def __init__(self, *, deserialize_json: bool) -> None:
        self._json = deserialize_json

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        return Variable.get(key, deserialize_json=self._json)

    def __getitem__(self, key: str) -> Any:
        return Variable.get(key, deserialize_json=self._json)

    def __repr__(self) -> str:
        return f"<variables{' as JSON' if self._json else ''}>"

    def get(self, key: str, default: Any = NOTSET, default_var: Any = NOTSET) -> Any:
        fallback = default if is_arg_set(default) else default_var
        return Variable.get(key, fallback, deserialize_json=self._json)
