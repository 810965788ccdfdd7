"""What Airflow 3.3.2 publishes of its API: the document of its wheel, unpacked when the tests run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

WHEEL = "apache-airflow-core==3.3.2"
SPEC = "airflow/api_fastapi/core_api/openapi/v2-rest-api-generated.yaml"


def document(folder: Path) -> dict[str, Any]:
    """The published document. Without an index to download from the test is left out, and fails where CI runs it."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), WHEEL]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"{WHEEL} cannot be downloaded: {done.stderr[-300:]}"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        spec = yaml.safe_load(wheel.read(SPEC))
    # A task instance also fits the other alternative (its id and name alone), so "one of" can never hold here.
    items = spec["components"]["schemas"]["ClearTaskInstanceCollectionResponse"]["properties"]["task_instances"][
        "items"
    ]
    items["anyOf"] = items.pop("oneOf")
    return spec


def operation(spec: dict[str, Any], method: str, path: str) -> dict[str, Any]:
    """The operation that a path belongs to: the template with the most literal parts."""
    asked = f"/api/v2/{path.split('?')[0]}"
    fitting = [
        template
        for template, methods in spec["paths"].items()
        if method.lower() in methods and re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", template), asked)
    ]
    best = min(fitting, key=lambda template: template.count("{"))
    return spec["paths"][best][method.lower()]


def mistakes(spec: dict[str, Any], method: str, path: str, answer: Any) -> list[str]:
    """What of an answer does not fit the schema of its operation and status."""
    responses = operation(spec, method, path)["responses"]
    described = responses.get(str(answer.status_code))
    if described is None:
        return [f"{method} {path}: {answer.status_code} is not described: {answer.content[:200]!r}"]
    if "content" not in described:
        return []
    schema = {**described["content"]["application/json"]["schema"], "components": spec["components"]}
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    return [
        f"{method} {path} {answer.status_code}: {'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
        for error in validator.iter_errors(answer.json())
    ]


def strangers(spec: dict[str, Any], schema: dict[str, Any], value: Any) -> list[str]:
    while "$ref" in schema:
        schema = spec["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    if isinstance(value, list) and "items" in schema:
        return [key for item in value for key in strangers(spec, schema["items"], item)]
    if not isinstance(value, dict) or "properties" not in schema or schema.get("additionalProperties"):
        return []
    found = [key for key in value if key not in schema["properties"]]
    for key, item in value.items():
        found += strangers(spec, schema["properties"].get(key, {}), item)
    return found
