"""Compares a running server with the recorded facts, case by case: ``python -m tests.conformance --base-url URL``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path

from tests.conformance.cases import CASES, Case
from tests.conformance.observe import Observer, difference
from tests.conformance.server import Server, prepare, wait_for

FACTS = Path(__file__).parent / "facts"


def main() -> int:
    options = _options()
    cases = [case for case in CASES if any(fnmatch(case.name, glob) for glob in options.only.split(","))]
    server = Server(options.base_url, options.user, options.password)
    prepare(server)
    observer = Observer(server, Path(options.markers), options.patience)
    needed = {dag for case in cases for dag in (case.dag, *case.also) if dag}
    try:
        wait_for(lambda: needed <= server.dag_ids(), options.load_seconds, "all DAGs in the list")
    except TimeoutError:
        print(f"Not listed: {', '.join(sorted(needed - server.dag_ids()))}")
    agreed = 0
    with ThreadPoolExecutor(options.workers) as pool:
        waiting = {pool.submit(check, observer, case, options.record): case for case in cases if not case.alone}
        for future in as_completed(waiting):
            agreed += report(waiting[future], *future.result())
    for case in cases:
        if case.alone:
            agreed += report(case, *check(observer, case, options.record))
    print(f"{agreed} of {len(cases)} cases as Airflow does them, or differing for a reason that is written down.")
    return 0 if agreed == len(cases) else 1


def check(observer: Observer, case: Case, record: bool) -> tuple[list[str], float]:
    """What differs, and the seconds that it took; with ``record`` the facts are written instead."""
    file = FACTS / f"{case.name}.json"
    expected = json.loads(file.read_text()) if file.exists() and not record else None
    begin = time.monotonic()
    try:
        facts = observer.observe(case, expected)
    except Exception as error:  # a case must never end the others
        return [f"{type(error).__name__}: {error}"[:400]], time.monotonic() - begin
    if record:
        file.write_text(json.dumps(facts, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
        return [], time.monotonic() - begin
    lines = ["nothing recorded"] if expected is None else difference(expected, facts)
    return lines, time.monotonic() - begin


def report(case: Case, lines: list[str], seconds: float) -> bool:
    word = "same" if not lines else "disputed" if case.disputed else "differs"
    print(f"{word:8} {case.name} ({seconds:.1f} s){f': {case.disputed}' if lines else ''}".rstrip(": "), flush=True)
    for line in lines:
        print(f"         {line}", flush=True)
    return not lines or bool(case.disputed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--user", default="admin")
    parser.add_argument("--password", default="admin")
    parser.add_argument("--markers", default="/tmp/conformance.jsonl", help="the server's CONFORMANCE_OUT")
    parser.add_argument("--only", default="*", help="names or patterns, separated by commas")
    parser.add_argument("--workers", type=int, default=4, help="cases at once")
    parser.add_argument("--patience", type=float, default=1.0, help="factor on every time-out")
    parser.add_argument("--load-seconds", type=float, default=120, help="time for the DAGs to be listed")
    parser.add_argument("--record", action="store_true", help="write the facts (of a real Airflow) instead")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
