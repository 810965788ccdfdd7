"""Params: the typed inputs of a run, each with a default and a JSON schema."""

from __future__ import annotations

import copy
from collections.abc import Iterator, MutableMapping
from typing import Any

from scheduler_app.sdk.exceptions import ParamValidationError
from scheduler_app.sdk.xcom_arg import NOTSET, is_arg_set


class Param:
    """A default value, a description, and a JSON schema given as keyword arguments.

    Without a default a run must bring the value. :meth:`resolve` raises ParamValidationError.
    """

    def __init__(
        self, default: Any = NOTSET, description: str | None = None, *, source: str | None = None, **schema: Any
    ) -> None:
        if is_arg_set(default):
            _need_json(default)
        self.value = default
        self.description = description
        self.source = source
        self.schema: dict[str, Any] = schema.pop("schema", None) or schema

    def resolve(self, value: Any = NOTSET, suppress_exception: bool = False) -> Any:
        """``value`` (or the default) checked against the schema."""
        final = value if is_arg_set(value) else self.value
        try:
            if not is_arg_set(final):
                raise ParamValidationError("No value passed and Param has no default value")
            _need_json(final)
            if self.schema:
                self._check(final)
        except ParamValidationError:
            if suppress_exception:
                return None
            raise
        self.value = final
        return final

    def _check(self, value: Any) -> None:
        import jsonschema
        from jsonschema import FormatChecker

        try:
            jsonschema.validate(value, self.schema, format_checker=FormatChecker())
        except jsonschema.ValidationError as error:
            raise ParamValidationError(f"{value!r} does not fit the param's schema: {error.message}") from None

    def dump(self) -> dict[str, Any]:
        return {"value": self.value if self.has_value else None, "description": self.description, "schema": self.schema}

    @property
    def has_value(self) -> bool:
        return is_arg_set(self.value)

    def copy(self) -> Param:
        return copy.copy(self)

    def __repr__(self) -> str:
        return f"Param({self.value!r})"


def _need_json(value: Any) -> None:
    import json

    try:
        json.dumps(value)
    except (TypeError, ValueError):
        raise ParamValidationError(
            f"A param's value must be JSON; {value!r} is not: give text, numbers, lists, dicts."
        ) from None


class ParamsDict(MutableMapping[str, Any]):
    """Params by name. Reading gives the checked value; writing a plain value keeps the schema of the name."""

    def __init__(self, source: Any = None, suppress_exception: bool = False) -> None:
        self.suppress_exception = suppress_exception
        self._params: dict[str, Param] = {}
        if isinstance(source, ParamsDict):
            self._params = {name: param.copy() for name, param in source._params.items()}
        elif source:
            for name, value in dict(source).items():
                self._params[name] = value if isinstance(value, Param) else Param(value)

    def __getitem__(self, name: str) -> Any:
        return self._params[name].resolve(suppress_exception=self.suppress_exception)

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(value, Param):
            self._params[name] = value
            return
        param = self._params.get(name)
        if param is None:
            self._params[name] = Param(value)
            return
        try:
            param.resolve(value, suppress_exception=self.suppress_exception)
        except ParamValidationError as error:
            raise ParamValidationError(f"Invalid input for param {name}: {error}") from None

    def __delitem__(self, name: str) -> None:
        del self._params[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)

    def __contains__(self, name: object) -> bool:
        return name in self._params

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ParamsDict):
            return self.dump() == other.dump()
        return isinstance(other, dict) and self.dump() == other

    def __repr__(self) -> str:
        return repr({name: param.value for name, param in self._params.items()})

    def get_param(self, name: str) -> Param:
        return self._params[name]

    def params(self) -> Iterator[tuple[str, Param]]:
        """(name, Param) pairs."""
        return iter(self._params.items())

    def dump(self) -> dict[str, Any]:
        """The values, unchecked; a param without one gives None."""
        return {name: (param.value if param.has_value else None) for name, param in self._params.items()}

    def validate(self) -> dict[str, Any]:
        """All values, checked. Raises ParamValidationError that names the param."""
        values = {}
        for name, param in self._params.items():
            try:
                values[name] = param.resolve(suppress_exception=self.suppress_exception)
            except ParamValidationError as error:
                raise ParamValidationError(f"Invalid input for param {name}: {error}") from None
        return values

    def copy(self) -> ParamsDict:
        return ParamsDict(self)


class DagParam:
    """``dag.param(name)`` and the arguments of a ``@dag`` function: the run's value of a param, inside templates."""

    def __init__(self, current_dag: Any, name: str, default: Any = NOTSET) -> None:
        if is_arg_set(default):
            current_dag.params[name] = default
        self._name = name
        self.current_dag = current_dag

    def iter_references(self) -> Iterator[Any]:
        return iter(())

    def resolve(self, context: Any) -> Any:
        """Raises AirflowException when the run has no value."""
        from scheduler_app.sdk.exceptions import AirflowException

        conf = getattr(context.get("dag_run"), "conf", None) or {}
        if self._name in conf:
            return conf[self._name]
        params = context.get("params") or {}
        if self._name in params:
            return params[self._name]
        raise AirflowException(
            f"The run has no value for param {self._name!r}: give the DAG a default, or put it into conf."
        )

    def __repr__(self) -> str:
        return f"DagParam({self._name!r})"
