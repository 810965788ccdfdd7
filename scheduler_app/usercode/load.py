"""Importing a DAG file in a child process, and what it gives: the DAGs themselves, or their documents."""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from scheduler_app.airflow_shim import finder
from scheduler_app.sdk import scope
from scheduler_app.sdk.dag import DAG
from scheduler_app.sdk.exceptions import AirflowDagDuplicatedIdException
from scheduler_app.sdk.serialize import serialize
from scheduler_app.usercode import own_django

finder.install()

Visit = Callable[[DAG, dict[str, Any]], None]

#: how deep a traceback is shown
_MAX_FRAMES = 30


def import_file(path: str, folder: str) -> dict[str, DAG]:
    """The DAGs of a file by id. Raises whatever the file raises, and AirflowDagDuplicatedIdException.

    ``folder``: the DAG folder; it and the file's own folder are importable from then on.
    """
    module = _import(path, folder)
    found = collect(module)
    _place(found, path, folder)
    return {dag.dag_id: dag for dag in found}


def parse_file(path: str, folder: str, visit: Visit = lambda dag, document: None) -> dict[str, Any]:
    """The parse result of docs/borders.md §5. Never raises what the file raises.

    ``visit`` gets each DAG with its document; what it raises is that DAG's error.
    """
    started = time.monotonic()
    before = set(sys.modules)
    result: dict[str, Any] = {"op": "parsed", "file": os.path.relpath(path, folder), "dags": [], "import_error": None}
    errors: dict[str, str] = {}
    module: ModuleType | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            module = _import(path, folder)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            result["import_error"] = describe_error(error, folder)
        if module is not None:
            result["dags"], errors = _documents(module, path, folder, visit)
    result["dag_errors"] = errors
    result["warnings"] = [_warning(item) for item in caught]
    result["modules"] = files_below(folder, set(sys.modules) - before, path)
    result["seconds"] = time.monotonic() - started
    scope.reset()
    return result


def _import(path: str, folder: str) -> ModuleType:
    scope.reset()
    own_django.set_up()
    for entry in (os.path.dirname(os.path.abspath(path)), os.path.abspath(folder)):
        if entry not in sys.path:
            sys.path.append(entry)
    plugins = os.path.join(os.path.dirname(os.path.abspath(folder)), "plugins")
    if os.path.isdir(plugins) and plugins not in sys.path:
        sys.path.append(plugins)
    name = module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def module_name(path: str) -> str:
    """A name that no other file has: two DAG files of one base name do not meet in ``sys.modules``."""
    stem = os.path.splitext(os.path.basename(path))[0].replace(".", "_")
    digest = hashlib.sha1(os.path.abspath(path).encode(), usedforsecurity=False).hexdigest()
    return f"unusual_prefix_{digest}_{stem}"


def collect(module: ModuleType) -> list[DAG]:
    """DAGs bound at module level, and those that registered themselves in a ``with`` block or through ``@dag``."""
    found: list[DAG] = []
    bound = [value for value in vars(module).values() if isinstance(value, DAG)]
    bound += [value.make_dag() for value in vars(module).values() if getattr(value, "_makes_dag", False)]
    for dag in [*bound, *scope.registered]:
        if not any(dag is known for known in found):
            found.append(dag)
    ids: dict[str, DAG] = {}
    for dag in found:
        if dag.dag_id in ids:
            raise AirflowDagDuplicatedIdException(
                dag.dag_id, incoming="a second DAG of this file", existing="the first"
            )
        ids[dag.dag_id] = dag
    return found


def _place(dags: list[DAG], path: str, folder: str) -> None:
    for dag in dags:
        dag.fileloc = path
        dag.relative_fileloc = os.path.relpath(path, folder)


def _documents(module: ModuleType, path: str, folder: str, visit: Visit) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Documents of the DAGs that are right, and the errors of those that are not."""
    try:
        found = collect(module)
    except Exception as error:
        return [], {getattr(error, "dag_id", ""): describe_error(error, folder)}
    _place(found, path, folder)
    documents, errors = [], {}
    for dag in found:
        try:
            dag.validate()
            document = serialize(dag)
            visit(dag, document)
            documents.append(document)
        except Exception as error:
            errors[dag.dag_id] = describe_error(error, folder)
    return documents, errors


def describe_error(error: BaseException, folder: str) -> str:
    """The traceback of an error, cut to the frames below the DAG folder (all of them when there are none)."""
    if isinstance(error, SyntaxError):
        return "".join(traceback.format_exception_only(error)).rstrip()
    root = os.path.join(os.path.abspath(folder), "")
    frames = traceback.extract_tb(error.__traceback__)
    linecache.checkcache()
    own = [frame for frame in frames if os.path.abspath(frame.filename).startswith(root)]
    chosen = (own or [frame for frame in frames if not _is_ours(frame.filename)])[-_MAX_FRAMES:]
    last = "".join(traceback.format_exception_only(_named(error), error)).rstrip()
    if not chosen:
        return last
    return "Traceback (most recent call last):\n" + "".join(traceback.format_list(chosen)) + last


def _named(error: BaseException) -> type[BaseException]:
    return type(error)


def _is_ours(filename: str) -> bool:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__))) in filename or filename.startswith("<frozen")


def _warning(item: warnings.WarningMessage) -> dict[str, Any]:
    return {
        "dag_id": None,
        "type": item.category.__name__,
        "message": f"{item.message} ({item.filename}:{item.lineno})",
    }


def files_below(folder: str, names: set[str], path: str) -> list[str]:
    """Files of the named modules that lie below ``folder``, relative to it, without ``path`` itself."""
    root = os.path.join(os.path.realpath(folder), "")
    own = os.path.realpath(path)
    found = set()
    for name in names:
        file = getattr(sys.modules.get(name), "__file__", None)
        real = os.path.realpath(file) if file else ""
        if real.startswith(root) and real != own:
            found.add(os.path.relpath(real, root))
    return sorted(found)
