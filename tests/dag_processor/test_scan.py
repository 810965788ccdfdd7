"""One look at a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scheduler_app.dag_processor.scan import DagFileFilter, FolderUnreadableError, Scan, scan

DAG = "from airflow import DAG\n"


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        file = root / name.replace("__", "/").replace("_py", ".py").replace("_zip", ".zip").replace("_sql", ".sql")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_nested_folders_are_searched_and_ignored_ones_are_not_candidates_but_belong_to_the_bundle(tmp_path: Path):
    write(tmp_path, a_py=DAG, sub__b_py=DAG, out__c_py=DAG, out__q_sql="select 1")
    (tmp_path / ".airflowignore").write_text("out/\n")
    found = scan(tmp_path)
    assert found.python == ("a.py", "sub/b.py")
    assert sorted(found.files) == ["a.py", "out/c.py", "out/q.sql", "sub/b.py"]
    assert found.files["a.py"] == (os.stat(tmp_path / "a.py").st_mtime_ns, len(DAG))


def test_hidden_files_and_caches_are_not_seen(tmp_path: Path):
    for folder in (".git", "__pycache__"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.py").write_text(DAG)
    (tmp_path / ".hidden.py").write_text(DAG)
    assert scan(tmp_path).files == {}


def test_a_link_back_up_does_not_end_the_scan(tmp_path: Path):
    write(tmp_path, sub__a_py=DAG)
    (tmp_path / "sub" / "up").symlink_to(tmp_path)
    assert scan(tmp_path).python == ("sub/a.py",)


def test_a_zip_file_gets_a_warning_that_says_what_to_do(tmp_path: Path):
    write(tmp_path, pack_zip="")
    assert scan(tmp_path).warnings == (
        "pack.zip is not read: DAGs in zip files are not supported. Unpack it into a folder.",
    )


def test_a_missing_folder_is_an_error_not_an_empty_folder(tmp_path: Path):
    with pytest.raises(FolderUnreadableError, match="No such file"):
        scan(tmp_path / "nowhere")


def test_files_below_an_unreadable_folder_are_unknown():
    found = Scan(files={}, python=(), unreadable=("shut/",))
    assert not found.knows("shut/deep/a.py")
    assert found.knows("open/a.py")


def test_only_files_that_mention_a_scheduler_and_a_dag_or_asset_are_dag_files(tmp_path: Path):
    write(
        tmp_path,
        dag_py=DAG,
        asset_py="from airflow.sdk import asset\n",
        module_py="import airflow\n",
        other_py="dag = 1\n",
    )
    found = scan(tmp_path)
    assert list(DagFileFilter().dag_files(tmp_path, found)) == ["asset.py", "dag.py"]
    assert list(DagFileFilter(trust_all=True).dag_files(tmp_path, found)) == list(found.python)


def test_a_file_is_read_again_only_when_its_stamp_changes(tmp_path: Path):
    write(tmp_path, a_py=DAG)
    checker, first = DagFileFilter(), scan(tmp_path)
    assert list(checker.dag_files(tmp_path, first)) == ["a.py"]
    (tmp_path / "a.py").write_text("nothing of the kind")
    assert list(checker.dag_files(tmp_path, first)) == ["a.py"]
    assert list(checker.dag_files(tmp_path, scan(tmp_path))) == []
