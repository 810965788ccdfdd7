"""``python -m tests.siege [--runs N] [--schedulers N] [--seconds S] [--kill-every S] [--cut-every S] …``.

Starts a PostgreSQL of its own, so that the server can be stopped and its log be read. The last line is
``N runs, N hand-outs, D doubled, L lost, O over a limit, K deadlocks, E other errors, M dead of themselves``:
the exit code is 1 unless all of these but the first two are 0 and everything was done in time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from scheduler_app import embedded_db

#: Short leases, so that what is lost is found in seconds.
ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "scheduler_app.settings",
    "SCHEDULER_HEARTBEAT_SECONDS": "0.5",
    "SCHEDULER_LEASE_SECONDS": "3",
    "SCHEDULER_TASK_HEARTBEAT_TIMEOUT_SECONDS": "3",
    "SCHEDULER_QUEUED_TIMEOUT_SECONDS": "10",
    "SCHEDULER_LOAD_EXAMPLES": "false",
}
SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


def main() -> int:
    args = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="siege-"))
    server = embedded_db.Server(folder)
    try:
        with embedded_db.locked(folder):
            server.start()
            os.environ.update(ENVIRONMENT, DATABASE_URL=embedded_db.url(folder), SCHEDULER_HOME=str(folder))
            failed = _play(args, server, folder)
    finally:
        server.stop()
        if args.keep:
            print(f"kept: {folder}", file=sys.stderr)
        else:
            embedded_db.remove(folder)
            shutil.rmtree(folder, ignore_errors=True)
    return int(failed)


def _play(args: argparse.Namespace, server: embedded_db.Server, folder: Path) -> bool:
    import django

    django.setup()
    from django.core.management import call_command

    from scheduler_app.models import db, guard

    from . import judge, work
    from .play import Plan, Siege

    call_command("migrate", verbosity=0)
    guard.install()
    db.execute(judge.INSTALL)
    work.lay_out(args.runs)
    db.close()
    plan = Plan(
        schedulers=args.schedulers,
        seconds=args.seconds,
        kill_every=args.kill_every,
        cut_every=args.cut_every,
        stop_after=args.stop_after,
        stop_seconds=args.stop_seconds,
        stop_signal=SIGNALS[args.stop_mode],
        limit_seconds=args.limit_seconds,
        seed=args.seed,
    )
    found = Siege(server, folder, plan).play()
    for text, count in sorted((found.over + found.errors).items()):
        print(f"{count:6} x {text}")
    if found.lost:
        print(f"runs: {dict(found.runs)}, task instances: {dict(found.tasks)}")
    if found.failed:
        print((folder / "schedulers.log").read_text()[-4000:], file=sys.stderr)
    print(
        f"{found.seconds} s: {found.kills} kills, {found.cuts} connections cut, {found.stops} stops of the database;"
        f" limits counted at {found.checks} commits and {found.samples} times from outside"
    )
    print(
        f"{found.runs.total()} runs, {found.hand_outs} hand-outs, {found.doubled} doubled, {found.lost} lost,"
        f" {found.over.total()} over a limit, {found.deadlocks} deadlocks,"
        f" {found.errors.total() - found.deadlocks} other errors, {found.died} dead of themselves"
    )
    return found.failed


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.siege", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--schedulers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=60, help="how long the siege lasts")
    parser.add_argument("--kill-every", type=float, default=1, help="seconds between two kills (-9); 0: none")
    parser.add_argument("--cut-every", type=float, default=0, help="seconds between two cut connections; 0: none")
    parser.add_argument("--stop-after", type=float, default=0, help="seconds until the database is stopped; 0: never")
    parser.add_argument("--stop-seconds", type=float, default=30, help="how long it is away")
    parser.add_argument("--stop-mode", choices=sorted(SIGNALS), default="fast")
    parser.add_argument("--limit-seconds", type=float, default=300, help="for what is left after the siege")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
