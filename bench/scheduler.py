"""How fast the scheduler is when execution costs nothing: ``python -m bench.scheduler [--shape NAME] [--repeat N]``.

From created run to success, through the real phases and the runner's own claim and outcome statements. One JSON line a
shape: task instances a second, the same of the bare SQL (``bench.bound``, measured in between), their ratio, CPU of the
loop and of the database, statements a pass (docs/performance.md explains the figures). ``--growth`` measures the same
beside rows that should not matter, ``--schedulers 2`` several processes side by side. It uses a throw-away database on
DATABASE_URL, else an embedded one.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys

from bench import bound, growth, side_by_side
from bench.database import reexec_with_embedded, throwaway
from bench.play import SHAPES, UNLIMITED, Stage, play
from bench.statements import table, watch


def measure(stage: Stage, shape: str, repeat: int, per_tick: int) -> dict[str, object]:
    """The median of so many plays, each followed by the bare SQL of the same writes on fresh rows."""
    record = bound.record(stage, shape, per_tick)
    plays, bare = [], []
    for _ in range(repeat):
        plays.append(play(stage, shape, per_tick))
        bare.append(bound.replay(stage, shape, record))
    total = SHAPES[shape].task_instances
    seconds, bare_seconds = (statistics.median(found) for found in ([one.seconds for one in plays], bare))
    middle = min(plays, key=lambda one: abs(one.seconds - seconds))
    rates = sorted(round(total / one.seconds) for one in plays)
    return {
        "shape": shape,
        "tis_per_s": round(total / seconds),
        "sql_bound_tis_per_s": round(total / bare_seconds),
        "ratio": round(bare_seconds / seconds, 2),
        "cpu_ms_per_ti": round(statistics.median(one.cpu for one in plays) / total * 1000, 3),
        "db_cpu_ms_per_ti": round(statistics.median(one.db_cpu for one in plays) / total * 1000, 3),
        "queries_per_tick": round(record.statements / record.ticks, 1),
        "ticks": middle.ticks,
        "tick_ms": round(middle.seconds / middle.ticks * 1000, 2),
        "min": rates[0],
        "max": rates[-1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=sorted(SHAPES), action="append", help="only this shape (may be repeated)")
    parser.add_argument("--repeat", type=int, default=9, help="measurements a shape; the median is printed")
    parser.add_argument("--per-tick", type=int, default=UNLIMITED, help="attempts that end between two ticks")
    parser.add_argument("--statements", action="store_true", help="print where the database's time goes as well")
    parser.add_argument("--growth", action="store_true", help="the cost beside history, idle DAGs and blocked tasks")
    parser.add_argument("--large", action="store_true", help="with --growth: 10⁷ finished task instances too (minutes)")
    parser.add_argument("--schedulers", type=int, default=0, help="so many processes side by side, against one")
    args = parser.parse_args()
    reexec_with_embedded("bench.scheduler")
    with throwaway("scheduler"):
        logging.getLogger("scheduler_app").setLevel(logging.WARNING)
        stage = Stage.set()
        if args.growth:
            growth.main(stage, args.repeat, large=args.large)
        elif args.schedulers:
            side_by_side.main(stage, args.schedulers, args.repeat)
        else:
            for shape in args.shape or SHAPES:
                print(json.dumps(measure(stage, shape, args.repeat, args.per_tick)), flush=True)
                if args.statements:
                    with watch() as seen:
                        play(stage, shape, args.per_tick)
                    print(table(seen), file=sys.stderr)


if __name__ == "__main__":
    main()
