"""``python -m tests.chaos [--harm NAME …] [--tasks N] [--schedulers N]``: one play for each harm, one line each.

The last line is ``N attempts, D doubled, L lost``; the exit code is 1 unless both are 0 and every run succeeded.
"""

from __future__ import annotations

import argparse
import os
import sys

from bench.database import reexec_with_embedded

from .play import HARMS, fresh_database, play


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--harm", action="append", choices=sorted(HARMS), help="only this harm (may be repeated)")
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.2, help="how long a task works")
    parser.add_argument("--schedulers", type=int, default=1)
    args = parser.parse_args()
    reexec_with_embedded("tests.chaos")
    plays = []
    for harm in args.harm or HARMS:
        with fresh_database(os.environ["DATABASE_URL"]) as url:
            schedulers = max(args.schedulers, 2 if "two" in harm else 1)
            plays.append(play(url, harm, tasks=args.tasks, seconds=args.seconds, schedulers=schedulers))
            print(f"{harm} ({schedulers} scheduler(s)): {plays[-1]}", flush=True)
    doubled, lost = sum(one.doubled for one in plays), sum(one.lost for one in plays)
    print(f"{sum(one.attempts for one in plays)} attempts, {doubled} doubled, {lost} lost")
    return int(bool(doubled or lost) or any(one.run_state != "success" for one in plays))


if __name__ == "__main__":
    sys.exit(main())
