"""The public module path of our classes: what people and the API see in place of where the code lies here."""

from __future__ import annotations

#: our package → the path under which authors know it; the longest prefix counts
PUBLIC: dict[str, str] = {
    "scheduler_app.sdk.operators.": "airflow.providers.standard.operators.",
    "scheduler_app.sdk.sensors.": "airflow.providers.standard.sensors.",
    "scheduler_app.sdk.triggers.": "airflow.providers.standard.triggers.",
    "scheduler_app.sdk.decorators.": "airflow.providers.standard.decorators.",
    "scheduler_app.sdk": "airflow.sdk",
}


def canonical_module(owner: type) -> str:
    """The module of a class, as authors import it."""
    module = owner.__module__
    for prefix, public in PUBLIC.items():
        if module.startswith(prefix):
            return public + module[len(prefix) :] if prefix.endswith(".") else public
    return module
