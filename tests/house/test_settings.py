from __future__ import annotations

import ast
import dataclasses
import re
import sys
import tomllib
from io import StringIO
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command

from scheduler_app import checks
from scheduler_app.conf import Conf, conf, from_mapping
from scheduler_app.management.commands.settings import with_table

ROOT = Path(__file__).resolve().parents[2]
UNITS = ("_seconds", "_mb")


def test_the_document_of_the_settings_lists_every_knob_as_it_is() -> None:
    text = (ROOT / "docs/settings.md").read_text()
    assert "SCHEDULER_PARALLELISM" in text
    assert text == with_table(text), "run ./check fix"


def test_the_document_names_every_variable_that_settings_py_reads() -> None:
    names = re.findall(r'env\.\w+\(\s*"(\w+)"', (ROOT / "scheduler_app/settings.py").read_text())
    text = (ROOT / "docs/settings.md").read_text()
    assert "DATABASE_URL" in names
    assert [name for name in names if f"`{name}`" not in text] == []


def test_a_float_knob_has_its_unit_in_its_name() -> None:
    floats = [spec.name for spec in dataclasses.fields(Conf) if isinstance(spec.default, float)]
    assert [name for name in floats if not name.endswith(UNITS)] == []


def test_an_unknown_setting_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"no setting 'paralelism'\. Did you mean 'parallelism'\?"):
        from_mapping({"paralelism": 3})


def test_folders_follow_home_unless_they_are_set() -> None:
    values = from_mapping({"home": "/srv/scheduler", "log_folder": "/var/log/scheduler"})
    assert (values.dags_folder, values.log_folder) == (Path("/srv/scheduler/dags"), Path("/var/log/scheduler"))


def test_S_67_conf_follows_the_settings_in_force(settings) -> None:
    settings.SCHEDULER = {"parallelism": 3}
    assert conf().parallelism == 3
    settings.SCHEDULER = {"parallelism": 4}
    assert conf().parallelism == 4


@pytest.mark.parametrize(
    ("values", "ids"),
    [
        ({}, []),
        ({"parallelism": 0}, ["scheduler_app.E003"]),
        ({"parallelism": "many"}, ["scheduler_app.E002"]),
        ({"lease_seconds": 9.0}, ["scheduler_app.E004"]),
        ({"task_heartbeat_timeout_seconds": 9.0}, ["scheduler_app.E005"]),
        ({"database_alias": "elsewhere"}, ["scheduler_app.E006"]),
        ({"default_timezone": "Mars/Olympus"}, ["scheduler_app.E007"]),
        ({"max_active_tasks_per": "pool"}, ["scheduler_app.E009"]),
        ({"timed_out_running_tasks": "gone"}, ["scheduler_app.E011"]),
        ({"interrupted_tasks": "some"}, ["scheduler_app.E012"]),
        ({"log_store": "nowhere://logs"}, ["scheduler_app.E013"]),
        ({"log_store": "file:///tmp/logs"}, []),
        ({"nonsense": 1}, ["scheduler_app.E001"]),
    ],
)
def test_a_value_that_cannot_work_is_named_by_the_checks(settings, values, ids) -> None:
    settings.SCHEDULER = values
    assert [message.id for message in checks.check_conf()] == ids


def test_another_database_than_postgresql_is_refused(settings, monkeypatch) -> None:
    settings.SCHEDULER = {}
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.sqlite3")
    assert [message.id for message in checks.check_engine()] == ["scheduler_app.E008"]


def test_the_settings_command_shows_values_and_keeps_secrets(settings) -> None:
    settings.SCHEDULER = {"parallelism": 7, "fernet_keys": ("a-key",)}
    out = StringIO()
    call_command("settings", stdout=out)
    assert "parallelism = 7  [default: 32]" in out.getvalue()
    assert "fernet_keys = set\n" in out.getvalue()
    assert "a-key" not in out.getvalue() + repr(conf())


def reads_environment(node: ast.AST) -> bool:
    """``os.environ[…]``, ``os.environ.get(…)``, ``os.getenv(…)``. Passing all of it on to a child is no reading."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "environ"
    if isinstance(node, ast.Attribute) and node.attr == "get":
        return isinstance(node.value, ast.Attribute) and node.value.attr == "environ"
    return isinstance(node, ast.Attribute) and node.attr == "getenv"


def test_settings_py_alone_reads_the_environment() -> None:
    package = ROOT / "scheduler_app"
    theirs = ("usercode", "sdk", "airflow_shim", "examples")  # they live in children: the environment is the user's
    readers = {
        name
        for path in package.rglob("*.py")
        if (name := path.relative_to(package).as_posix()).split("/")[0] not in theirs
        if any(reads_environment(node) for node in ast.walk(ast.parse(path.read_text())))
    }
    assert readers == set()


def test_the_wheel_asks_for_the_packages_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=]", line)[0] for line in project["dependencies"]}
    names |= {re.split(r"[<>=]", line)[0] for line in project["optional-dependencies"]["embedded"]}
    pinned = {line.split("==")[0] for line in (ROOT / "requirements.txt").read_text().splitlines() if "==" in line}
    assert names == pinned - {"pytest-django"}


def test_a_log_store_whose_driver_is_missing_says_what_to_install(settings, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    settings.SCHEDULER = {"log_store": "s3://bucket/logs"}
    (told,) = checks.check_conf()
    assert "a URL of s3, which cannot be used: Install s3fs to access S3" in told.msg
    assert told.hint == "pip install s3fs, for the web server and every process that runs tasks."
