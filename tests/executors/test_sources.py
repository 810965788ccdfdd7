"""DAG files from the database: laid out once, by what they hold, readable by whoever runs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scheduler_app.models import BundleVersion, SourceBlob
from scheduler_app.runner.sources import Source, SourceMissing, Sources
from tests import rows

from .conftest import bundle

pytestmark = pytest.mark.django_db

DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


def modes(root: Path) -> set[tuple[str, str]]:
    return {("folder" if path.is_dir() else "file", oct(path.stat().st_mode & 0o777)) for path in root.rglob("*")}


def test_a_version_is_laid_out_whole_and_its_file_found(tmp_path: Path) -> None:
    version = bundle({"team/dag.py": "import team.part", "team/part.py": "X = 1", "sql/a.sql": "select 1"})
    file = Sources(tmp_path / "s", follow_newest=True).file(Source("dags", "team/dag.py", "", version))
    assert (file.path, file.folder) == (f"{tmp_path}/s/{version}/team/dag.py", f"{tmp_path}/s/{version}")
    assert file.bundle_version == version
    assert (tmp_path / "s" / version / "sql/a.sql").read_text() == "select 1"
    assert modes(tmp_path / "s") == {("folder", "0o700"), ("file", "0o600")}
    assert [path.name for path in (tmp_path / "s").iterdir()] == [version]


def test_another_system_user_can_read_it_where_tasks_run_as_one(tmp_path: Path) -> None:
    version = bundle({"team/dag.py": ""})
    Sources(tmp_path / "s", follow_newest=True, readable_by_all=True).file(Source("dags", "team/dag.py", "", version))
    assert modes(tmp_path / "s") == {("folder", "0o755"), ("file", "0o644")}


@pytest.mark.parametrize(("follow", "text"), [(True, "new"), (False, "old")])
def test_the_settings_say_which_version_a_run_gets(tmp_path: Path, follow: bool, text: str) -> None:
    source = Source("dags", "dag.py", bundle({"dag.py": "old"}), bundle({"dag.py": "new"}))
    assert Path(Sources(tmp_path, follow_newest=follow).file(source).path).read_text() == text


def test_a_tree_that_is_there_costs_no_query(tmp_path: Path, django_assert_num_queries: object) -> None:
    source = Source("dags", "dag.py", "", bundle({"dag.py": "x"}))
    first = Sources(tmp_path, follow_newest=True)
    with django_assert_num_queries(2):  # type: ignore[operator]
        first.file(source)
    with django_assert_num_queries(0):  # type: ignore[operator]
        first.file(source)
        Sources(tmp_path, follow_newest=True).file(source)  # a worker that was started again


def test_trees_that_nobody_asked_for_in_a_week_go_when_a_new_one_comes(tmp_path: Path) -> None:
    clock = Clock()
    sources = Sources(tmp_path, follow_newest=True, wall=clock)
    versions = [bundle({"dag.py": str(n)}) for n in range(3)]
    for version in versions[:2]:
        sources.file(Source("dags", "dag.py", "", version))
        os.utime(tmp_path / version, (clock.now, clock.now))
    clock.now += 6 * DAY
    sources.file(Source("dags", "dag.py", "", versions[0]))
    clock.now += 2 * DAY
    sources.file(Source("dags", "dag.py", "", versions[2]))
    assert {path.name for path in tmp_path.iterdir()} == {versions[0], versions[2]}
    assert Path(sources.file(Source("dags", "dag.py", "", versions[1])).path).read_text() == "1"


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    sources = Sources(tmp_path, follow_newest=True)
    version = bundle({"dag.py": "x"})
    with pytest.raises(SourceMissing, match="no version of bundle dags is stored yet"):
        sources.file(Source("dags", "dag.py", "", ""))
    with pytest.raises(SourceMissing, match="is not in the database"):
        sources.file(Source("dags", "dag.py", "", "f" * 64))
    with pytest.raises(SourceMissing, match=r"has no file other\.py"):
        sources.file(Source("dags", "other.py", "", version))


def test_contents_that_are_not_what_the_manifest_says_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    version = bundle({"dag.py": "x"})
    SourceBlob.objects.update(content=b"y")
    with pytest.raises(SourceMissing, match=r"the contents of dag\.py"):
        Sources(tmp_path, follow_newest=True).file(Source("dags", "dag.py", "", version))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["../dag.py", "/etc/dag.py", "a/../../dag.py"])
def test_a_manifest_cannot_write_outside_its_tree(tmp_path: Path, path: str) -> None:
    bundle({"dag.py": "x"})
    (blob,) = SourceBlob.objects.values_list("pk", flat=True)
    BundleVersion.objects.create(bundle_name="dags", version="bad", manifest={path: blob}, created_at=rows.T0)
    with pytest.raises(SourceMissing, match="leaves the bundle's folder"):
        Sources(tmp_path / "s", follow_newest=True).file(Source("dags", path, "", "bad"))
    assert [found.name for found in tmp_path.rglob("dag.py")] == []
