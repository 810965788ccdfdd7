"""One process's share of the seeds, in a database of its own. (A module by itself: a new process imports it first.)"""

from __future__ import annotations

import argparse
import logging
import traceback

from bench.database import throwaway


def play_share(args: argparse.Namespace, job: int) -> int:
    """Plays the seeds of one job; how many violations they had."""
    with throwaway("simulation"):
        from .play import opened, play, stage
        from .world import Violation

        logging.getLogger("scheduler_app").setLevel(logging.CRITICAL + 1)
        violations = 0
        with stage() as aside:
            for seed in range(args.first_seed + job, args.first_seed + args.seeds, args.jobs):
                world = opened(seed, aside, args.schedulers, args.dags)
                try:
                    play(world, args.steps)
                except Violation as violation:
                    violations += 1
                    print(violation, flush=True)
                except Exception:
                    violations += 1
                    print(f"seed {seed}, step {world.step_number}: {traceback.format_exc()}", flush=True)
                if args.show:
                    print("\n".join(world.history))
                if violations == args.most > 0:
                    break
        return violations
