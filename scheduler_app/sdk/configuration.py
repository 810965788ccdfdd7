"""``conf`` of DAG files: reads ``AIRFLOW__SECTION__KEY`` from the environment, and a few defaults that files ask
for."""

from __future__ import annotations

import os
from typing import Any

from scheduler_app.sdk.exceptions import AirflowConfigException
from scheduler_app.sdk.xcom_arg import NOTSET, is_arg_set

DEFAULTS: dict[tuple[str, str], str] = {
    ("core", "default_timezone"): "utc",
    ("core", "executor"): "LocalExecutor",
    ("core", "parallelism"): "32",
    ("core", "load_examples"): "False",
    ("core", "max_map_length"): "1024",
    ("core", "unit_test_mode"): "False",
    ("operators", "default_owner"): "airflow",
    ("operators", "default_queue"): "default",
    ("operators", "default_deferrable"): "False",
    ("kubernetes_executor", "namespace"): "default",
    ("kubernetes_executor", "worker_container_repository"): "",
    ("kubernetes_executor", "worker_container_tag"): "",
    ("api", "base_url"): "http://localhost:8080",
    ("webserver", "base_url"): "http://localhost:8080",
    ("logging", "logging_level"): "INFO",
}
_TRUE, _FALSE = ("t", "true", "1", "y", "yes", "on"), ("f", "false", "0", "n", "no", "off")


class Configuration:
    """The part of Airflow's ``conf`` that DAG files use. A missing value without ``fallback`` raises
    AirflowConfigException."""

    def get(self, section: str, key: str, fallback: Any = NOTSET, **_: Any) -> Any:
        section, key = section.lower(), key.lower()
        found = os.environ.get(f"AIRFLOW__{section.replace('.', '_').upper()}__{key.upper()}")
        if found is not None:
            return found
        if (section, key) in DEFAULTS:
            return self._default(section, key)
        if is_arg_set(fallback):
            return fallback
        raise AirflowConfigException(
            f"section/key [{section}/{key}] is not set: set AIRFLOW__{section.upper()}__{key.upper()} in the "
            "environment, "
            "or give a fallback."
        )

    def _default(self, section: str, key: str) -> str:
        return DEFAULTS[section, key]

    def getboolean(self, section: str, key: str, fallback: Any = NOTSET, **_: Any) -> bool:
        value = str(self.get(section, key, fallback)).strip().lower()
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
        raise AirflowConfigException(f"[{section}/{key}] is {value!r}, which is neither true nor false.")

    def getint(self, section: str, key: str, fallback: Any = NOTSET, **_: Any) -> int:
        return int(self.get(section, key, fallback))

    def getfloat(self, section: str, key: str, fallback: Any = NOTSET, **_: Any) -> float:
        return float(self.get(section, key, fallback))

    def getlist(self, section: str, key: str, fallback: Any = NOTSET, delimiter: str = ",", **_: Any) -> list[str]:
        value = self.get(section, key, fallback)
        return [item.strip() for item in value.split(delimiter)] if isinstance(value, str) else list(value)

    def getjson(self, section: str, key: str, fallback: Any = NOTSET, **_: Any) -> Any:
        import json

        value = self.get(section, key, fallback)
        return json.loads(value) if isinstance(value, str) else value

    def getimport(self, section: str, key: str, fallback: Any = None, **_: Any) -> Any:
        """The object of the dotted path in the value, or None. Raises AirflowConfigException."""
        import importlib

        value = self.get(section, key, fallback)
        if not isinstance(value, str) or not value:
            return None
        module, _, name = value.rpartition(".")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise AirflowConfigException(
                f"[{section}/{key}] names {value!r}, which cannot be imported: {error}"
            ) from error

    def getsection(self, section: str) -> dict[str, str]:
        """All values of a section that are set in the environment."""
        prefix = f"AIRFLOW__{section.upper()}__"
        return {name[len(prefix) :].lower(): value for name, value in os.environ.items() if name.startswith(prefix)}

    def has_option(self, section: str, key: str) -> bool:
        return is_arg_set(self.get(section, key, fallback=NOTSET)) if self._known(section, key) else False

    def _known(self, section: str, key: str) -> bool:
        name = f"AIRFLOW__{section.replace('.', '_').upper()}__{key.upper()}"
        return name in os.environ or (section.lower(), key.lower()) in DEFAULTS

    def get_mandatory_value(self, section: str, key: str, **_: Any) -> str:
        return str(self.get(section, key))


conf = Configuration()
