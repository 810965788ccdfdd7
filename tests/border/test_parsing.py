"""Files are parsed in children: what they do there stays there."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler_app import process_tree
from scheduler_app.supervisor.parsing import ParsePool

pytestmark = pytest.mark.processes

GOOD = "from airflow.sdk import DAG\nwith DAG({name!r}, schedule=None):\n    pass\n"


@pytest.fixture
def pool() -> Iterator[ParsePool]:
    made = ParsePool(2, 1.0, 200, environ=dict(os.environ), monotonic=time.monotonic)
    made.submit(__file__, os.path.dirname(__file__))  # the base's own start does not count against a test's time-out
    while made.pending:
        made.poll(1.0)
    yield made
    made.close()


def parse(pool: ParsePool, folder: Path, files: dict[str, str]) -> dict[str, dict[str, Any]]:
    for name, text in files.items():
        folder.joinpath(name).write_text(text)
    found = pool.run([(str(folder / name), str(folder)) for name in files])
    return {parse.document["file"]: parse.document for parse in found if parse.document is not None}


def test_each_file_gives_its_document(pool: ParsePool, tmp_path: Path) -> None:
    files = {f"dag{n}.py": GOOD.format(name=f"dag{n}") for n in range(5)}
    found = parse(pool, tmp_path, files)
    assert {name: [dag["dag_id"] for dag in document["dags"]] for name, document in found.items()} == {
        f"dag{n}.py": [f"dag{n}"] for n in range(5)
    }
    assert all(document["import_error"] is None and document["op"] == "parsed" for document in found.values())


def test_a_file_that_hangs_eats_memory_or_crashes_fails_alone(pool: ParsePool, tmp_path: Path) -> None:
    files = {
        "hangs.py": "import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '1015'])\ntime.sleep(100)\n",
        "eats.py": "import time\nfood = bytearray(400 * 1024 * 1024)\ntime.sleep(100)\n",
        "crashes.py": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
        "leaves.py": "import os\nos._exit(0)\n",
        "good.py": GOOD.format(name="good"),
    }
    found = parse(pool, tmp_path, files)
    errors = {name: document["import_error"] for name, document in found.items()}
    assert errors == {
        "hangs.py": "The import took longer than 1 s and was stopped. Move slow work from the top level of the "
        "file into tasks, or raise parse_timeout_seconds.",
        "eats.py": "The import took more than 200 MB of memory and was stopped. Load data inside tasks, or raise "
        "parse_memory_mb.",
        "crashes.py": "The import of the file ended its process: its process was killed by signal 11 (SIGSEGV).",
        "leaves.py": "The import of the file ended its process: its process exited with code 0.",
        "good.py": None,
    }
    assert not [pid for pid in process_tree.descendants(os.getpid()) if b"1015" in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_what_one_file_imports_another_does_not_see(pool: ParsePool, tmp_path: Path) -> None:
    files = {
        "one.py": "import sys\nsys.left_behind = 1\n" + GOOD.format(name="one"),
        "two.py": "import sys\nassert not hasattr(sys, 'left_behind')\n" + GOOD.format(name="two"),
    }
    assert [document["import_error"] for document in parse(pool, tmp_path, files).values()] == [None, None]


def test_a_base_that_dies_is_replaced_and_its_files_are_parsed_all_the_same(pool: ParsePool, tmp_path: Path) -> None:
    path = tmp_path / "slow.py"
    path.write_text("import time\ntime.sleep(0.4)\n" + GOOD.format(name="slow"))
    (base,) = process_tree.children(os.getpid())
    pool.submit(str(path), str(tmp_path))
    pool.poll(0.05)
    os.kill(base, signal.SIGKILL)
    found = []
    while pool.pending:
        found += pool.poll(1.0)
    assert [dag["dag_id"] for parse in found for dag in parse.document["dags"]] == ["slow"]
