"""``@asset``: a function that makes an asset is a DAG of one task; its arguments are the assets that it reads."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from scheduler_app.sdk import scope
from scheduler_app.sdk.assets import Asset, AssetRef, BaseAsset
from scheduler_app.sdk.context_keys import CONTEXT_KEYS
from scheduler_app.sdk.dag import DAG
from scheduler_app.sdk.operators.python import PythonOperator

#: keyword arguments of @asset that go to its DAG
_DAG_ARGUMENTS = frozenset(inspect.signature(DAG.__init__).parameters) - {"self", "dag_id", "removed"}


class _AssetMainOperator(PythonOperator):
    """Calls the function: inlets by their names, ``self`` is the asset, context names as usual."""

    def __init__(self, *, definition: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.definition = definition

    def execute(self, context: Any) -> Any:
        values: dict[str, Any] = {}
        for name in inspect.signature(self.python_callable).parameters:
            if name == "self":
                values[name] = self.definition
            elif name == "context":
                values[name] = context
            elif name in CONTEXT_KEYS and name in context:
                values[name] = context[name]
            else:
                values[name] = _known_asset(name)
        self.op_kwargs = values
        return self.execute_callable()


def _known_asset(name: str) -> Any:
    """The asset of a name; the reference itself when our side does not know it (yet)."""
    from scheduler_app.sdk.runtime import current_port

    found = current_port().get_asset(name=name)
    if found is None:
        return Asset.ref(name=name)
    return Asset(name=found["name"], uri=found["uri"], group=found.get("group", "asset"), extra=found.get("extra"))


def _inlets(function: Callable[..., Any], own: set[str]) -> list[AssetRef]:
    names = inspect.signature(function).parameters
    return [Asset.ref(name=name) for name in names if name not in CONTEXT_KEYS | {"self", "context"} | own]


def _make_dag(
    definition: Any, function: Callable[..., Any], outlets: list[Any], options: dict[str, Any], name: str
) -> DAG:
    dag_options = {
        "doc_md": function.__doc__,
        "catchup": False,
        **{key: options[key] for key in options if key in _DAG_ARGUMENTS},
    }
    made = DAG(name, auto_register=True, **dag_options)
    with made:
        _AssetMainOperator(
            task_id=name,
            definition=definition,
            python_callable=function,
            inlets=_inlets(function, {name}),
            outlets=outlets,
        )
    return made


class AssetDefinition(Asset):
    """What ``@asset`` leaves in place of the function: the asset."""

    def __init__(
        self, function: Callable[..., Any], asset_options: dict[str, Any], dag_options: dict[str, Any]
    ) -> None:
        name = asset_options.pop("name", None) or function.__name__
        super().__init__(name=name, **asset_options)
        self.function = function
        self.dag = _make_dag(
            self,
            function,
            [Asset(self.name, self.uri, group=self.group, extra=self.extra)],
            dag_options,
            function.__name__,
        )


class MultiAssetDefinition(BaseAsset):
    """What ``@asset.multi`` leaves: several assets made by one function."""

    def __init__(self, function: Callable[..., Any], outlets: list[Any], dag_options: dict[str, Any]) -> None:
        self.name, self.function, self.outlets = function.__name__, function, list(outlets)
        self.dag = _make_dag(self, function, self.outlets, dag_options, function.__name__)

    def to_condition(self) -> dict[str, Any]:
        return {"all": [item.to_condition() for item in self.outlets]}


_ASSET_OPTIONS = ("name", "uri", "group", "extra", "watchers", "access_control")


class asset:  # noqa: N801  (a decorator)
    """``@asset(schedule=…, uri=…)``; the arguments that a DAG takes go to the DAG."""

    def __init__(self, uri: Any = None, *, schedule: Any, **options: Any) -> None:
        if scope.current_dag() is not None:
            raise ValueError("@asset makes a DAG of its own: use it outside of `with DAG(...)`.")
        self.options: dict[str, Any] = {"schedule": schedule, **options}
        if uri is not None:
            self.options["uri"] = uri
        for name in options:
            if name not in _DAG_ARGUMENTS and name not in _ASSET_OPTIONS:
                raise TypeError(f"@asset does not take {name!r}.")

    def __call__(self, function: Callable[..., Any]) -> AssetDefinition:
        if inspect.signature(function).parameters and any(
            parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
            for parameter in inspect.signature(function).parameters.values()
        ):
            raise TypeError(
                f"The arguments of {function.__name__}() name its inlets, so it cannot take *args or **kwargs."
            )
        assets = {name: self.options[name] for name in _ASSET_OPTIONS if name in self.options}
        dags = {name: value for name, value in self.options.items() if name in _DAG_ARGUMENTS}
        return AssetDefinition(function, assets, dags)

    class multi:  # noqa: N801  (a decorator)
        """``@asset.multi(schedule=…, outlets=[…])``."""

        def __init__(self, *, schedule: Any, outlets: list[Any], **options: Any) -> None:
            if not outlets:
                raise ValueError("@asset.multi needs outlets.")
            self.outlets, self.options = outlets, {"schedule": schedule, **options}

        def __call__(self, function: Callable[..., Any]) -> MultiAssetDefinition:
            return MultiAssetDefinition(function, self.outlets, self.options)
