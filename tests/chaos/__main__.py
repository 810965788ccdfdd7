"""``python -m tests.chaos [--executor celery --broker URL] [--harm NAME …] [--tasks N] [--schedulers N]``.

One play for each harm, one line each, on the database of DATABASE_URL (without one: on an embedded server).

With ``--kill-every SECONDS`` there is one siege instead: two schedulers, a DAG processor, a triggerer and, with a
broker, two Celery workers, of which one is killed again and again; the database is away for ten seconds, the broker is
killed with all that it holds. What a siege harms is its own: it starts a database, and a broker of the kind of
``--broker`` (``redis://`` or ``amqp://``), for itself. ``--seed`` says who is harmed when.

The last line is ``N attempts, D doubled, L lost, O over a limit``; the exit code is 1 unless these three are 0, every
run succeeded and no slot is held at the end.
"""

from __future__ import annotations

import argparse
import os
import sys
from urllib.parse import urlsplit

from bench.database import reexec_with_embedded

from .own import Missing
from .play import CELERY_HARMS, HARMS, Accounts, fresh_database, play
from .siege import Siege


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--harm", action="append", choices=sorted({*HARMS, *CELERY_HARMS}), help="only this harm (may be repeated)"
    )
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.2, help="how long a task works")
    parser.add_argument("--schedulers", type=int, default=1, help="of a play; a siege has two")
    parser.add_argument("--executor", choices=["local", "celery"], default="local")
    parser.add_argument("--broker", default="", help="URL of the broker of --executor celery")
    parser.add_argument("--kill-every", type=float, default=0, help="seconds between two harms of a siege")
    parser.add_argument("--seed", type=int, default=1, help="of a siege")
    args = parser.parse_args()
    if (args.executor == "celery") != bool(args.broker):
        parser.error("--executor celery and --broker URL belong together")
    if args.kill_every and args.harm:
        parser.error("a siege does every harm: --harm is for plays, without --kill-every")
    harms = CELERY_HARMS if args.broker else HARMS
    for harm in args.harm or ():
        if harm not in harms:
            parser.error(f"{harm} is no harm to the {args.executor} executor; there are {', '.join(harms)}")
    return args


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _siege(args: argparse.Namespace) -> Accounts:
    kind = urlsplit(args.broker).scheme
    siege = Siege(args.tasks, args.seconds, args.kill_every, args.seed, broker=kind, say=_say)
    try:
        accounts = siege.run()
    except Missing as error:
        sys.exit(f"A siege of this broker needs one of its own: {error}.")
    print(f"siege, seed {args.seed}: {siege.harmed.total()} harms {dict(sorted(siege.harmed.items()))}", flush=True)
    print(f"siege, seed {args.seed}: {accounts}", flush=True)
    return accounts


def _plays(args: argparse.Namespace) -> list[Accounts]:
    harms = CELERY_HARMS if args.broker else HARMS
    found = []
    for name in args.harm or harms:
        schedulers = max(args.schedulers, 2 if "two" in name else 1)
        with fresh_database(os.environ["DATABASE_URL"]) as url:
            accounts = play(
                url,
                tasks=args.tasks,
                seconds=args.seconds,
                schedulers=schedulers,
                broker=args.broker,
                harm=harms[name],
            )
        print(f"{name} ({schedulers} scheduler(s)): {accounts}", flush=True)
        found.append(accounts)
    return found


def main() -> int:
    args = _arguments()
    if args.kill_every:
        every = [_siege(args)]
    else:
        reexec_with_embedded("tests.chaos")
        every = _plays(args)
    doubled, lost, over = (sum(getattr(one, name) for one in every) for name in ("doubled", "lost", "over"))
    print(f"{sum(one.attempts for one in every)} attempts, {doubled} doubled, {lost} lost, {over} over a limit")
    return int(not all(one.good for one in every))


if __name__ == "__main__":
    sys.exit(main())
