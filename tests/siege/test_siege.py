"""A short siege for every day: ``python -m tests.siege`` is the long one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_schedulers_that_are_killed_and_lose_their_database_do_everything_once_and_pass_no_limit() -> None:
    """Four of them, one killed and one connection cut each second, the database away for three seconds."""
    siege = (
        "--runs 120 --seconds 9 --kill-every 1 --cut-every 0.7 --stop-after 4 --stop-seconds 3 --stop-mode immediate"
    )
    done = subprocess.run(
        [sys.executable, "-m", "tests.siege", *siege.split(), "--limit-seconds", "60"],
        cwd=ROOT,
        # a server and a home of its own
        env={name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "SCHEDULER_HOME")},
        capture_output=True,
        text=True,
        check=False,
    )
    said = f"{done.stdout}\n{done.stderr}"
    last = re.search(r"^120 runs, (\d+) hand-outs, (.*)$", done.stdout, re.M)
    assert last, said
    assert int(last[1]) >= 380, said
    nothing = "0 doubled, 0 lost, 0 over a limit, 0 deadlocks, 0 other errors, 0 dead of themselves"
    assert (last[2], done.returncode) == (nothing, 0), said
    assert "1 stops of the database" in done.stdout
