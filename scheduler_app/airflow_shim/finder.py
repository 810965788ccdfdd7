"""The meta-path finder that serves ``airflow`` and everything below it from the table in ``names``.

Modules are made when imported, names when asked for. ``SCHEDULER_REAL_AIRFLOW=1`` makes it yield to an installed
Airflow.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from scheduler_app.airflow_shim.names import MODULES, PROVIDED, REMOVED, VERSION, packages

ENV_REAL = "SCHEDULER_REAL_AIRFLOW"
ROOT = "airflow"


class ShimModule(ModuleType):
    """A module whose names are looked up in the table."""

    def __getattr__(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        table = MODULES.get(self.__name__, {})
        if name in table:
            value = resolve(table[name])
            setattr(self, name, value)
            return value
        if path in MODULES or path in packages():
            return importlib.import_module(path)
        if path in PROVIDED:
            return resolve(PROVIDED[path])
        message = explain(self.__name__, name)
        if name.startswith("__") or not _asked_by_import(sys._getframe(1)):
            raise AttributeError(message)
        raise ImportError(message, name=path)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *MODULES.get(self.__name__, {})})


def _asked_by_import(frame: Any) -> bool:
    """Whether ``from module import name`` asks, and not getattr or hasattr: only then is ImportError the right
    answer."""
    import dis

    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def resolve(target: str) -> Any:
    """The object of ``"module:name"``, the module of ``"module"``; ``sdk…`` and ``airflow_shim…`` are ours."""
    module, _, name = target.partition(":")
    ours = module.partition(".")[0] in ("sdk", "airflow_shim")
    found = importlib.import_module(f"scheduler_app.{module}" if ours else module)
    return getattr(found, name) if name else found


def explain(module: str, name: str) -> str:
    """Why ``from module import name`` does not work, with the nearest name that does."""
    import difflib

    path = f"{module}.{name}"
    if path in REMOVED:
        return f"cannot import name {name!r} from {module!r}: {REMOVED[path]}"
    here = MODULES.get(module, {})
    close = difflib.get_close_matches(name, [*here, *_children(module)], n=1, cutoff=0.7)
    elsewhere = sorted(other for other, names in MODULES.items() if name in names)
    if close:
        hint = f" Did you mean {close[0]!r}?"
    elif elsewhere:
        best = difflib.get_close_matches(module, elsewhere, n=1, cutoff=0.0)[0]
        hint = f" It is in {best!r}."
    else:
        hint = " This scheduler does not have it; see docs/airflow-compatibility.md."
    return f"cannot import name {name!r} from {module!r}.{hint}"


def _children(module: str) -> set[str]:
    prefix = module + "."
    return {path[len(prefix) :].partition(".")[0] for path in MODULES if path.startswith(prefix)}


class ShimFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and makes the modules of the table."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != ROOT and not fullname.startswith(ROOT + "."):
            return None
        if fullname in MODULES or fullname in packages():
            is_package = fullname in packages()
            spec = importlib.machinery.ModuleSpec(fullname, self, is_package=is_package)
            if is_package:
                spec.submodule_search_locations = installed_folders(fullname)
            return spec
        if fullname.startswith("airflow.providers."):
            found = importlib.machinery.PathFinder.find_spec(fullname, path)
            if found is not None:
                return found
        raise ModuleNotFoundError(missing_module(fullname), name=fullname)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return ShimModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == ROOT:
            module.__version__ = VERSION  # type: ignore[attr-defined]
        module.__file__ = None
        module.__all__ = sorted(MODULES.get(module.__name__, {}))  # type: ignore[attr-defined]


def missing_module(fullname: str) -> str:
    """The text of the error for a module that does not exist."""
    import difflib

    if fullname in REMOVED:
        return f"No module named {fullname!r}: {REMOVED[fullname]}"
    if fullname.startswith("airflow.providers.") and not fullname.startswith("airflow.providers.standard."):
        package = "-".join(fullname.split(".")[2:4])
        wanted = f"apache-airflow-providers-{package}"
        return f"No module named {fullname!r}. Install its provider package (such as {wanted}) where tasks run."
    close = difflib.get_close_matches(fullname, MODULES, n=1, cutoff=0.75)
    if close:
        return f"No module named {fullname!r}. Did you mean {close[0]!r}?"
    return f"No module named {fullname!r}: this scheduler does not have it; see docs/airflow-compatibility.md."


def installed_folders(package: str) -> list[str]:
    """Folders of installed provider packages below one of our packages: ``airflow/providers/…`` on the import path."""
    if not (package + ".").startswith("airflow.providers."):
        return []
    folders = (os.path.join(entry or os.curdir, *package.split(".")) for entry in sys.path)
    return [folder for folder in folders if os.path.isdir(folder)]


def install() -> None:
    """Puts the finder in front, once. With ``SCHEDULER_REAL_AIRFLOW=1`` in the environment it does nothing."""
    if os.environ.get(ENV_REAL) == "1":
        return
    if not any(isinstance(finder, ShimFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, ShimFinder())
