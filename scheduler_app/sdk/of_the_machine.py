"""What DAG files ask Airflow for that is Python's or the machine's: names, passwords at random, commands, paths."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import secrets
import socket
import string
import subprocess
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scheduler_app.sdk.configuration import conf
from scheduler_app.sdk.exceptions import AirflowException

_KEY = re.compile(r"[\w.-]+")

AIRFLOW_HOME = os.environ.get("AIRFLOW_HOME") or os.path.expanduser("~/airflow")
DAGS_FOLDER = conf.get("core", "dags_folder", fallback=os.path.join(AIRFLOW_HOME, "dags"))

md5 = hashlib.md5


def is_container(obj: Any) -> bool:
    """Whether it is a collection, and no text."""
    return hasattr(obj, "__iter__") and not isinstance(obj, str)


def as_flattened_list(iterable: Iterable[Any]) -> list[Any]:
    """The items of collections in collections, one after the other."""
    found: list[Any] = []
    for item in iterable:
        found.extend(as_flattened_list(item) if is_container(item) else [item])
    return found


def validate_key(k: str, max_length: int = 250) -> None:
    """Raises TypeError or AirflowException for what cannot be an id."""
    if not isinstance(k, str):
        raise TypeError(f"The key has to be a text, not {k!r}.")
    if len(k) > max_length:
        raise AirflowException(f"The key {k[:40]!r}… is longer than {max_length} characters.")
    if not _KEY.fullmatch(k):
        raise AirflowException(f"The key {k!r} may only have letters, digits, dashes, dots and underscores.")


def render_template_to_string(template: Any, context: Mapping[str, Any]) -> str:
    """A template of Jinja, rendered to text."""
    return str(template.render(**context))


def parse_template_string(template_string: str) -> tuple[str | None, Any]:
    """(text to format, None), or (None, template of Jinja) when there is a ``{{`` in it."""
    if "{{" not in template_string:
        return template_string, None
    from scheduler_app.sdk.jinja_env import environment

    return None, environment().from_string(template_string)


def get_random_string(length: int = 8, choices: str = string.ascii_letters + string.digits) -> str:
    return "".join(secrets.choice(choices) for _ in range(length))


def get_hostname() -> str:
    return socket.getfqdn()


def get_host_ip_address() -> str:
    return socket.gethostbyname(socket.getfqdn())


def getuser() -> str:
    """Raises AirflowException when the user has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise AirflowException("The user that tasks run as has no name: add it to the system's users.") from error


def execute_in_subprocess(cmd: list[str], cwd: str | None = None, env: dict[str, str] | None = None) -> None:
    """Runs a command, its output in the log of the task. Raises subprocess.CalledProcessError."""
    subprocess.run(cmd, cwd=cwd, env=env, check=True)


def get_unique_task_id(task_id: str, dag: Any = None, task_group: Any = None) -> str:
    """``task_id``, or with a number behind it when the DAG has it."""
    from scheduler_app.sdk.decorators.base import free_task_id

    return free_task_id(task_id, dag, task_group)


def require_provider_version(provider_name: str, provider_min_version: str) -> Callable[..., Any]:
    """Every version is accepted: what is installed is what there is."""
    return lambda function: function
