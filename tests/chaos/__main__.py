"""``python -m tests.chaos [--executor celery --broker URL] [--harm NAME …] [--tasks N] [--schedulers N]``.

One play for each harm, one line each. With ``--kill-every SECONDS`` there is one play, with two schedulers, in which
somebody is killed again and again; ``--seed`` says who.

The last line is ``N attempts, D doubled, L lost``; the exit code is 1 unless both are 0 and every run succeeded.
"""

from __future__ import annotations

import argparse
import os
import random
import sys

from bench.database import reexec_with_embedded

from .house import House
from .play import CELERY_HARMS, HARMS, Accounts, fresh_database, play
from .siege import besiege


def _siege(args: argparse.Namespace) -> Accounts:
    killed: dict[str, int] = {}

    def harm(house: House) -> None:
        def is_over() -> bool:
            return len({task_id for task_id, _ in house.lines("end")}) >= args.tasks

        killed.update(besiege(house, args.kill_every, is_over, random.Random(args.seed)))

    # an attempt is killed again and again: what is asked is that nothing is lost or doubled, not how many tries it took
    os.environ.setdefault("LEDGER_RETRIES", "20")
    with fresh_database(os.environ["DATABASE_URL"]) as url:
        limit = 120 + args.tasks * (args.seconds + 1)
        accounts = play(
            url,
            "siege",
            tasks=args.tasks,
            seconds=args.seconds,
            schedulers=max(2, args.schedulers),
            broker=args.broker,
            harmer=harm,
            limit_seconds=limit,
        )
    print(f"siege, seed {args.seed}: {sum(killed.values())} kills {killed}: {accounts}", flush=True)
    return accounts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument(
        "--harm", action="append", choices=sorted({*HARMS, *CELERY_HARMS}), help="only this harm (may be repeated)"
    )
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.2, help="how long a task works")
    parser.add_argument("--schedulers", type=int, default=1)
    parser.add_argument("--executor", choices=["local", "celery"], default="local")
    parser.add_argument("--broker", default="", help="URL of the broker of --executor celery")
    parser.add_argument("--kill-every", type=float, default=0, help="seconds between two kills of a siege")
    parser.add_argument("--seed", type=int, default=1, help="of a siege")
    args = parser.parse_args()
    if (args.executor == "celery") != bool(args.broker):
        parser.error("--executor celery and --broker URL belong together")
    harms = CELERY_HARMS if args.broker else HARMS
    for harm in args.harm or ():
        if harm not in harms:
            parser.error(f"{harm} is no harm to the {args.executor} executor; there are {', '.join(harms)}")
    reexec_with_embedded("tests.chaos")
    plays = [_siege(args)] if args.kill_every else []
    for harm in args.harm or (() if args.kill_every else harms):
        with fresh_database(os.environ["DATABASE_URL"]) as url:
            schedulers = max(args.schedulers, 2 if "two" in harm else 1)
            plays.append(
                play(url, harm, tasks=args.tasks, seconds=args.seconds, schedulers=schedulers, broker=args.broker)
            )
            print(f"{harm} ({schedulers} scheduler(s)): {plays[-1]}", flush=True)
    doubled, lost = sum(one.doubled for one in plays), sum(one.lost for one in plays)
    print(f"{sum(one.attempts for one in plays)} attempts, {doubled} doubled, {lost} lost")
    return int(bool(doubled or lost) or any(one.run_state != "success" for one in plays))


if __name__ == "__main__":
    sys.exit(main())
