"""Tasks under another interpreter, or in an environment that is made for them: how they end, and what is said."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from scheduler_app.sdk import DAG
from scheduler_app.sdk.operators.virtualenv import ExternalPythonOperator, PythonVirtualenvOperator

from .memory_port import MemoryPort
from .test_attempts import attempt

pytestmark = pytest.mark.processes


def where() -> str:
    import sys

    return sys.prefix


def breaks() -> None:
    raise ValueError("no header")


def vanishes() -> None:
    import os

    os._exit(3)


def external(python: str, function: Any, **arguments: Any) -> dict[str, Any]:
    with DAG("d") as dag:
        ExternalPythonOperator(task_id="t", python=python, python_callable=function, **arguments)
    return attempt(dag, "t")


def in_environment(port: MemoryPort, **arguments: Any) -> dict[str, Any]:
    with DAG("d") as dag:
        PythonVirtualenvOperator(task_id="t", python_callable=where, **arguments)
    return attempt(dag, "t", port)


@pytest.mark.parametrize(
    ("function", "message"), [(breaks, "ValueError: no header"), (vanishes, "exit code 3")], ids=["raises", "exits"]
)
def test_what_the_function_ended_with_is_said(function: Any, message: str) -> None:
    outcome = external(sys.executable, function)
    assert outcome["state"] == "failed"
    assert outcome["error"]["message"].startswith(f"The function failed under {sys.executable}: ")
    assert message in outcome["error"]["message"]


def test_an_exit_code_may_skip_the_task() -> None:
    assert external(sys.executable, vanishes, skip_on_exit_code=3)["state"] == "skipped"


def test_an_interpreter_that_is_not_there_is_named() -> None:
    outcome = external("/no/such/python", where)
    assert outcome["state"] == "failed"
    assert "/no/such/python" in outcome["error"]["message"]


def test_a_version_that_is_not_installed_is_named() -> None:
    outcome = in_environment(MemoryPort(), python_version="2.1")
    assert outcome["error"]["message"] == (
        "There is no python2.1 on the path: install it, or leave out python_version."
    )


def test_a_function_runs_in_an_environment_that_is_kept_for_the_next_time(tmp_path: Path) -> None:
    port = MemoryPort()
    assert in_environment(port, venv_cache_path=tmp_path)["state"] == "success"
    (made,) = [folder for folder in tmp_path.iterdir() if folder.is_dir()]
    assert port.xcoms["t", -1, "return_value"] == str(made)
    (made / "mine").touch()
    assert in_environment(port, venv_cache_path=tmp_path)["state"] == "success"
    assert (made / "mine").exists()


def test_requirements_that_cannot_be_installed_fail_with_what_pip_said(tmp_path: Path) -> None:
    options = {"requirements": ["nothing-of-that-name==1"], "pip_install_options": ["--no-index"]}
    outcome = in_environment(MemoryPort(), venv_cache_path=tmp_path, **options)
    assert outcome["state"] == "failed"
    assert "pip install" in outcome["error"]["message"]
    assert "No matching distribution found for nothing-of-that-name==1" in outcome["error"]["message"]
    assert not list(tmp_path.glob("*/complete"))
