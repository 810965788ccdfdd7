"""Provider packages beside the shim: what they import, and what they say about themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scheduler_app.sdk.configuration import conf
from scheduler_app.sdk.connection import Connection
from scheduler_app.sdk.exceptions import AirflowConfigException, AirflowException
from scheduler_app.sdk.provider_support import chunks, exactly_one, import_string, merge_dicts, prune_dict
from scheduler_app.sdk.session import create_session, provide_session

ROOT = Path(__file__).parents[2]


def test_a_connection_finds_the_hook_of_an_installed_package(tmp_path: Path) -> None:
    package = tmp_path / "airflow" / "providers" / "common" / "mine"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "def get_provider_info():\n"
        "    hook = {'hook-class-name': 'airflow.providers.common.mine.hook.MineHook', 'connection-type': 'mine'}\n"
        "    return {'package-name': 'mine', 'connection-types': [hook]}\n"
    )
    (package / "hook.py").write_text(
        "from airflow.providers.common.compat.sdk import BaseHook, prune_dict\n"
        "class MineHook(BaseHook):\n"
        "    conn_name_attr = 'mine_conn_id'\n"
        "    def __init__(self, mine_conn_id, fast=False):\n"
        "        self.said = (mine_conn_id, fast)\n"
    )
    info = tmp_path / "mine-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[apache_airflow_provider]\nprovider_info = airflow.providers.common.mine:get_provider_info\n"
    )
    code = (
        "from scheduler_app.airflow_shim import finder; finder.install(); from airflow.models import Connection; "
        "print(Connection(conn_id='c', conn_type='mine').get_hook(hook_params={'fast': True}).said)"
    )
    env = {"PYTHONPATH": f"{ROOT}:{tmp_path}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.strip() == "('c', True)"


def test_a_connection_type_that_no_package_has_is_named() -> None:
    with pytest.raises(AirflowException, match="'nowhere'"):
        Connection(conn_id="c", conn_type="nowhere").get_hook()


def test_a_database_session_is_importable_and_says_what_to_use_instead() -> None:
    @provide_session
    def count(session: object = None) -> str:
        return "counted"

    assert count(session="own") == "counted"
    with pytest.raises(RuntimeError, match=r"count.*REST API"):
        count()
    with pytest.raises(RuntimeError, match="REST API"):
        create_session()


def test_configuration_comes_from_the_environment_a_default_or_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__MINE__NUMBER", "5")
    monkeypatch.setenv("AIRFLOW__MINE__CLASS", "collections.OrderedDict")
    assert (conf.getint("mine", "number"), conf.getboolean("core", "load_examples")) == (5, False)
    assert (conf.get("mine", "absent", fallback="fb"), conf.getimport("mine", "class").__name__) == (
        "fb",
        "OrderedDict",
    )
    assert conf.getsection("mine") == {"number": "5", "class": "collections.OrderedDict"}
    with pytest.raises(AirflowConfigException, match="AIRFLOW__MINE__ABSENT"):
        conf.get("mine", "absent")


def test_small_functions_do_what_their_names_say() -> None:
    assert prune_dict({"a": None, "b": {"c": None, "d": 0}, "e": [None, 1]}) == {"b": {"d": 0}, "e": [1]}
    assert prune_dict({"a": 0, "b": ""}, mode="truthy") == {}
    assert merge_dicts({"a": {"x": 1}, "b": 1}, {"a": {"y": 2}, "b": 2}) == {"a": {"x": 1, "y": 2}, "b": 2}
    assert (exactly_one(1, 0, None), exactly_one(1, 2), list(chunks([1, 2, 3], 2))) == (True, False, [[1, 2], [3]])
    assert import_string("collections.OrderedDict").__name__ == "OrderedDict"
