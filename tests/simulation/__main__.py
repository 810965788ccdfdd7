"""``python -m tests.simulation --seeds 300 --steps 300 --schedulers 2 [--first-seed K]``: plays seeds one by one.

The last line is ``N seeds, M violations``; the exit code is 1 when M > 0.
"""

from __future__ import annotations

import argparse
import logging
import sys

from bench.database import reexec_with_embedded, throwaway


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--schedulers", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    args = parser.parse_args()
    reexec_with_embedded("tests.simulation")
    violations = 0
    with throwaway("simulation"):
        from scheduler_app.models import db, guard

        from .play import play
        from .world import Violation

        logging.getLogger("scheduler_app.scheduler").setLevel(logging.CRITICAL)
        guard.install()
        db.execute("SET synchronous_commit = off")
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            try:
                play(seed, args.steps, args.schedulers)
            except Violation as violation:
                violations += 1
                print(violation, flush=True)
    print(f"{args.seeds} seeds, {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
