"""``import airflow…`` without Airflow."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler_app.airflow_shim import finder
from scheduler_app.airflow_shim.names import MODULES

finder.install()
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", sorted(MODULES))
def test_every_module_of_the_table_is_importable_with_all_its_names(path: str) -> None:
    module = importlib.import_module(path)
    assert [name for name in MODULES[path] if not hasattr(module, name)] == []


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("airflow", "airflow.sdk", "DAG"),
        ("airflow.models", "airflow.models.dag", "DAG"),
        ("airflow.operators.bash", "airflow.providers.standard.operators.bash", "BashOperator"),
        ("airflow.operators.bash_operator", "airflow.operators.bash", "BashOperator"),
        ("airflow.decorators", "airflow.sdk", "task"),
        ("airflow.utils.task_group", "airflow.sdk", "TaskGroup"),
        ("airflow.exceptions", "airflow.sdk.exceptions", "AirflowSkipException"),
        ("airflow.sensors.base", "airflow.sdk", "BaseSensorOperator"),
    ],
)
def test_both_generations_give_one_and_the_same_object(old: str, new: str, name: str) -> None:
    assert getattr(importlib.import_module(old), name) is getattr(importlib.import_module(new), name)


def test_submodules_are_attributes_as_well() -> None:
    import airflow.operators

    assert airflow.operators.python.PythonOperator.__name__ == "PythonOperator"
    from airflow.utils import timezone

    assert timezone.datetime(2024, 1, 1).utcoffset().total_seconds() == 0


def test_the_version_is_one_that_files_can_compare() -> None:
    import airflow

    assert airflow.__version__ == "3.3.2"


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("from airflow.operators.bash import BashOperatr", "Did you mean 'BashOperator'"),
        ("from airflow.operators.python import BashOperator", "It is in 'airflow.operators.bash'"),
        ("import airflow.operators.pyton", "Did you mean 'airflow.operators.python'"),
        ("from airflow.operators.subdag import SubDagOperator", "use a TaskGroup"),
        ("from airflow.operators.email import EmailOperator", "apache-airflow-providers-smtp"),
        ("from airflow.providers.nowhere.hooks.x import X", "apache-airflow-providers-nowhere"),
    ],
)
def test_an_unknown_name_is_an_import_error_that_helps(statement: str, hint: str) -> None:
    with pytest.raises(ImportError, match=hint):
        exec(statement)


def test_a_table_of_airflows_database_can_be_named_and_says_what_to_use_when_it_is_used() -> None:
    from airflow.models import DagBag, DagModel

    assert not isinstance("sales", DagModel)
    with pytest.raises(RuntimeError, match="ExternalTaskSensor"):
        DagBag()
    with pytest.raises(RuntimeError, match="REST API"):
        DagModel.get_current("sales")


def test_small_functions_of_helpers_do_what_their_names_say() -> None:
    from airflow.utils.helpers import as_flattened_list, is_container, parse_template_string, validate_key

    assert as_flattened_list([1, [2, ("three", {4})]]) == [1, 2, "three", 4]
    assert (is_container([]), is_container("text")) == (True, False)
    assert parse_template_string("{x}.log") == ("{x}.log", None)
    text, template = parse_template_string("{{ x }}.log")
    assert (text, template.render(x=1)) == (None, "1.log")
    with pytest.raises(Exception, match="only have"):
        validate_key("a b")


def test_asking_whether_a_name_is_there_is_no_error() -> None:
    import airflow.models

    assert not hasattr(airflow.models, "NoSuchThing")
    assert getattr(airflow.models, "NoSuchThing", None) is None


def test_installed_provider_packages_are_found_beside_ours(tmp_path: Path) -> None:
    package = tmp_path / "airflow" / "providers" / "mine"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "hooks.py").write_text("from airflow.hooks.base import BaseHook\nclass MineHook(BaseHook):\n    pass\n")
    code = (
        "from scheduler_app.airflow_shim import finder; finder.install(); "
        "from airflow.providers.mine.hooks import MineHook; "
        "from airflow.providers.standard.operators.bash import BashOperator; "
        "print(MineHook.__mro__[1].__name__, BashOperator.__name__)"
    )
    env = {"PYTHONPATH": f"{ROOT}:{tmp_path}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.split() == ["BaseHook", "BashOperator"]


def test_it_yields_to_a_real_airflow_when_told_to(tmp_path: Path) -> None:
    (tmp_path / "airflow").mkdir()
    (tmp_path / "airflow" / "__init__.py").write_text("__version__ = 'real'\n")
    code = "from scheduler_app.airflow_shim import finder; finder.install(); import airflow; print(airflow.__version__)"
    for value, version in (("1", "real"), ("0", "3.3.2")):
        env = {"PYTHONPATH": f"{tmp_path}:{ROOT}", finder.ENV_REAL: value}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
        assert done.stdout.strip() == version
