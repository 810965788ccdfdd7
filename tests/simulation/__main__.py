"""``python -m tests.simulation --seeds 300 --steps 300 --schedulers 2 [--first-seed K] [--jobs N]``: plays seeds.

Without a ``DATABASE_URL`` a temporary PostgreSQL of our own is started for it. Each job is a process with a database of
its own and takes every N-th seed. The last line is ``N seeds, M violations``; the exit code is 1 when M > 0.
``--show`` prints the whole history of each seed, for a replay.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time

from bench.database import reexec_with_embedded

from .share import play_share


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--schedulers", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--most", type=int, default=0, help="stop after so many violations (0: never)")
    parser.add_argument("--dags", nargs="*", default=[], help="these of cast.py play in every seed")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    reexec_with_embedded("tests.simulation")
    started = time.monotonic()
    if args.jobs > 1:
        with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
            violations = sum(pool.starmap(play_share, [(args, number) for number in range(args.jobs)]))
    else:
        violations = play_share(args, 0)
    print(f"{args.seeds} seeds, {violations} violations ({time.monotonic() - started:.0f} s)")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
