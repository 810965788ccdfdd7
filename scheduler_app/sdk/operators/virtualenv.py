"""Functions that run under another Python: an existing one, or a virtual environment made for the task."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from scheduler_app.sdk.exceptions import AirflowException, AirflowSkipException
from scheduler_app.sdk.operators.branch import BranchMixIn, keep_answer
from scheduler_app.sdk.operators.python import PythonOperator
from scheduler_app.sdk.subprocess_hook import SubprocessHook

#: runs in the other Python: reads the arguments, calls the function, writes what it returned
_SCRIPT = """\
import pickle, sys

with open(sys.argv[1], "rb") as handle:
    _call = pickle.load(handle)

{source}

try:
    _result = {name}(*_call["args"], **_call["kwargs"])
except Exception as _error:
    with open(sys.argv[3], "w") as handle:
        handle.write(type(_error).__name__ + ": " + str(_error))
    raise
with open(sys.argv[2], "wb") as handle:
    pickle.dump(_result, handle, protocol=4)
"""


def is_venv_installed() -> bool:
    """Whether virtual environments can be made here."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return shutil.which("uv") is not None
    return True


class _OtherPythonOperator(PythonOperator):
    """The function's source and its pickled arguments go to another Python; its pickled result comes back.

    The function must import what it needs itself. Of the context it gets what it names, as plain values.
    """

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        serializer: str | None = None,
        use_dill: bool = False,
        expect_airflow: bool = True,
        skip_on_exit_code: int | Iterable[int] | None = None,
        string_args: Iterable[str] | None = None,
        env_vars: Mapping[str, str] | None = None,
        inherit_env: bool = True,
        **kwargs: Any,
    ) -> None:
        if serializer not in (None, "pickle", "cloudpickle", "dill"):
            raise AirflowException(f"serializer is pickle, cloudpickle or dill, not {serializer!r}.")
        if getattr(python_callable, "__name__", "<lambda>") == "<lambda>":
            raise ValueError(
                f"Task {kwargs.get('task_id')!r} needs a function that was defined with def, not a lambda."
            )
        super().__init__(python_callable=python_callable, **kwargs)
        codes: Any = skip_on_exit_code
        self.skip_on_exit_code = [] if codes is None else [codes] if isinstance(codes, int) else list(codes)
        self.string_args, self.env_vars, self.inherit_env = list(string_args or ()), dict(env_vars or {}), inherit_env
        self.serializer, self.expect_airflow = serializer or ("dill" if use_dill else "pickle"), expect_airflow
        self._hook = SubprocessHook()

    def _run_under(self, python: str) -> Any:
        with tempfile.TemporaryDirectory(prefix="task") as folder:
            paths = {name: os.path.join(folder, name) for name in ("script.py", "input", "output", "error")}
            Path(paths["script.py"]).write_text(self._script(), encoding="utf-8")
            Path(paths["input"]).write_bytes(
                pickle.dumps({"args": list(self.op_args), "kwargs": self._plain_kwargs()}, protocol=4)
            )
            env = {**(os.environ if self.inherit_env else {}), **self.env_vars}
            command = [python, *(paths[name] for name in ("script.py", "input", "output", "error")), *self.string_args]
            result = self._hook.run_command(command, env=dict(env), cwd=folder)
            if result.exit_code in self.skip_on_exit_code:
                raise AirflowSkipException(f"The process ended with exit code {result.exit_code}: the task is skipped.")
            if result.exit_code != 0:
                error = (
                    Path(paths["error"]).read_text()
                    if os.path.exists(paths["error"])
                    else f"exit code {result.exit_code}"
                )
                raise AirflowException(f"The function failed under {python}: {error}")
            return pickle.loads(Path(paths["output"]).read_bytes())  # noqa: S301  (written by the task's own process)

    def _script(self) -> str:
        return _SCRIPT.format(source=function_source(self.python_callable), name=self.python_callable.__name__)

    def _plain_kwargs(self) -> dict[str, Any]:
        """Arguments that can cross; objects of the context that cannot are left out."""
        kept = {}
        for name, value in dict(self.op_kwargs).items():
            try:
                pickle.dumps(value)
            except Exception:
                continue
            if not type(value).__module__.startswith(("scheduler_app.", "airflow.")):
                kept[name] = value
        return kept

    def on_kill(self) -> None:
        self._hook.send_sigterm()


def function_source(function: Callable[..., Any]) -> str:
    """The text of a function without its decorators."""
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(("def ", "async def ")))
    return "\n".join(lines[start:])


class ExternalPythonOperator(_OtherPythonOperator):
    """Runs the function under ``python``, the path of an interpreter."""

    template_fields = ("templates_dict", "op_args", "op_kwargs", "python")

    def __init__(self, *, python: str, expect_pendulum: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not python:
            raise ValueError("ExternalPythonOperator needs python: the path of an interpreter.")
        self.python, self.expect_pendulum = python, expect_pendulum

    def execute_callable(self) -> Any:
        if not os.path.exists(self.python):
            raise AirflowException(f"There is no interpreter {self.python!r}: make its environment first.")
        return self._run_under(self.python)


class PythonVirtualenvOperator(_OtherPythonOperator):
    """Makes an environment with ``requirements`` and runs the function in it; ``venv_cache_path`` keeps it for the
    next time."""

    template_fields = ("templates_dict", "op_args", "op_kwargs", "requirements", "index_urls", "venv_cache_path")
    template_ext = (".txt",)

    def __init__(
        self,
        *,
        requirements: str | Iterable[str] | None = None,
        python_version: str | None = None,
        system_site_packages: bool = True,
        pip_install_options: list[str] | None = None,
        index_urls: str | list[str] | None = None,
        index_urls_from_connection_ids: str | list[str] | None = None,
        venv_cache_path: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.requirements = [requirements] if isinstance(requirements, str) else list(requirements or ())
        self.python_version, self.system_site_packages = python_version, system_site_packages
        self.pip_install_options = list(pip_install_options or ())
        self.index_urls = [index_urls] if isinstance(index_urls, str) else list(index_urls or ())
        self.index_urls_from_connection_ids = index_urls_from_connection_ids
        self.venv_cache_path = os.fspath(venv_cache_path) if venv_cache_path else None

    def _interpreter(self) -> str:
        if self.python_version is None:
            return sys.executable
        found = shutil.which(f"python{self.python_version}")
        if found is None:
            raise AirflowException(
                f"There is no python{self.python_version} on the path: install it, or leave out python_version."
            )
        return found

    def _make(self, folder: str) -> str:
        """Makes the environment; gives its interpreter. Raises AirflowException with the output of what failed."""
        command = [
            self._interpreter(),
            "-m",
            "venv",
            *(["--system-site-packages"] if self.system_site_packages else []),
            folder,
        ]
        _check(command)
        python = os.path.join(folder, "bin", "python")
        lines = [line for item in self.requirements for line in str(item).splitlines() if line.strip()]
        if lines:
            urls = [word for url in self.index_urls for word in ("--extra-index-url", url)]
            if self.index_urls:
                urls = ["--index-url", self.index_urls[0], *urls[2:]]
            _check([python, "-m", "pip", "install", "--quiet", *self.pip_install_options, *urls, *lines])
        return python

    def _key(self) -> str:
        parts = [
            self.requirements,
            self.python_version,
            self.system_site_packages,
            self.pip_install_options,
            sys.version,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def execute_callable(self) -> Any:
        if self.venv_cache_path is None:
            with tempfile.TemporaryDirectory(prefix="venv") as folder:
                return self._run_under(self._make(folder))
        return self._run_under(self._cached())

    def _cached(self) -> str:
        """An environment that is kept; a lock keeps two tasks from making it at once."""
        import fcntl

        folder = os.path.join(str(self.venv_cache_path), f"venv-{self._key()}")
        os.makedirs(str(self.venv_cache_path), exist_ok=True)
        with open(f"{folder}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            marker = os.path.join(folder, "complete")
            if not os.path.exists(marker):
                shutil.rmtree(folder, ignore_errors=True)
                self._make(folder)
                Path(marker).touch()
        return os.path.join(folder, "bin", "python")


def _check(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AirflowException(f"{' '.join(command[:4])} … failed:\n{(result.stdout + result.stderr)[-4000:]}")


class _Branching(BranchMixIn):
    def execute(self, context: Any) -> Any:
        chosen = super().execute(context)  # type: ignore[misc]
        keep_answer(self, context, chosen)
        return self.do_branch(context, chosen)


class BranchPythonVirtualenvOperator(_Branching, PythonVirtualenvOperator):
    """The function's result names what runs next."""

    inherits_from_skipmixin = True


class BranchExternalPythonOperator(_Branching, ExternalPythonOperator):
    """The function's result names what runs next."""

    inherits_from_skipmixin = True
