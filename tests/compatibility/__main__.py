"""``python -m tests.compatibility [--golden FOLDER] [--only TEXT]``: writes docs/airflow-compatibility.md anew.

It unpacks the example files of Airflow's own packages, loads them, runs each DAG once, and writes what became of them.
``--golden`` is a folder of recorded outcomes of the real Airflow (``<dag id>.json`` with ``run``: state and task
instances); DAGs that it names are compared. The exit code is 1 when a file does not load or a run differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from .packages import LEFT_OUT, PACKAGES, unpack
from .server import ROOT, Api, server

DOCUMENT = ROOT / "docs" / "airflow-compatibility.md"
#: Time for everything to be parsed, and for one run.
LOAD_SECONDS = 60
RUN_SECONDS = 60
#: Runs under way at a time.
AT_ONCE = 8
HEAD = f"""# Airflow's own example files

Written by `python -m tests.compatibility` (with the recorded outcomes of Airflow 3.3.2 where there are some). The files
come unmodified from {" and ".join(f"`{name}`" for name in PACKAGES)}; they are unpacked when the check runs.

*Ends* is the state of one run that was started by hand, *open* means that it still waited after {RUN_SECONDS} s (for
a person, an event or another DAG). *As Airflow* compares the states and tries of every task instance.

"""


@dataclass(slots=True)
class Result:
    file: str
    error: str = ""
    #: DAG id → (how its run ended, "yes" | "" (nothing recorded) | what differs)
    dags: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def bad(self) -> bool:
        return bool(self.error) or any(same not in ("", "yes") for _, same in self.dags.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.compatibility", description=__doc__)
    parser.add_argument("--golden", type=Path, help="folder of recorded outcomes")
    parser.add_argument("--only", default="", help="only files whose name has this text")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = [path for path in unpack(Path(folder)) if args.only in path.name]
        with server(Path(folder)) as api:
            results = _load(api, files, Path(folder))
            jobs = [(result, dag_id) for result in results for dag_id in sorted(result.dags)]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                for (result, dag_id), (state, found) in zip(
                    jobs, pool.map(lambda job: _run(api, job[1]), jobs), strict=True
                ):
                    result.dags[dag_id] = (state, _compare(args.golden, dag_id, found))
                    print(result.file, dag_id, *result.dags[dag_id], flush=True)
    if not args.only:
        DOCUMENT.write_text(_document(results, args.golden))
    expected = _expected_errors(args.golden)
    bad = [result.file for result in results if result.bad and result.file not in expected]
    print(f"{len(results)} files, {len(bad)} not as they should be {bad}")
    return int(bool(bad))


def _load(api: Api, files: list[Path], folder: Path) -> list[Result]:
    wanted = {str(path.relative_to(folder)) for path in files}
    deadline = time.monotonic() + LOAD_SECONDS
    while True:
        dags = api.all("/dags", "dags")
        errors = {_short(e["filename"], folder): e["stack_trace"] for e in api.all("/importErrors", "import_errors")}
        seen = {_short(dag["fileloc"], folder) for dag in dags} | errors.keys()
        if wanted <= seen or time.monotonic() > deadline:
            break
        time.sleep(1)
    results = {name: Result(name, (errors.get(name) or "").strip().rpartition("\n")[2]) for name in sorted(wanted)}
    for dag in dags:
        if (name := _short(dag["fileloc"], folder)) in results:
            results[name].dags[dag["dag_id"]] = ("", "")
    return list(results.values())


def _short(path: str, folder: Path) -> str:
    return path.removeprefix(f"{folder}/")


def _run(api: Api, dag_id: str) -> tuple[str, dict[str, Any]]:
    """One run by hand with a logical date, as the recorded ones had it."""
    api.call("PATCH", f"/dags/{dag_id}", is_paused=False)
    try:
        run = api.call(
            "POST", f"/dags/{dag_id}/dagRuns", dag_run_id="compatibility", logical_date="2024-03-15T10:20:30.456Z"
        )
    except requests.HTTPError as error:
        return f"refused: {error.response.json()['detail']}", {"state": "refused", "tis": []}
    deadline = time.monotonic() + RUN_SECONDS
    while run["state"] not in ("success", "failed") and time.monotonic() < deadline:
        time.sleep(0.5)
        run = api.call("GET", f"/dags/{dag_id}/dagRuns/compatibility")
    state = run["state"] if run["state"] in ("success", "failed") else "open"
    rows = api.all(f"/dags/{dag_id}/dagRuns/compatibility/taskInstances", "task_instances")
    api.call("PATCH", f"/dags/{dag_id}", is_paused=True)
    keys = ("task_id", "map_index", "state", "try_number")
    tis = sorted(({key: row[key] for key in keys} for row in rows), key=lambda ti: (ti["task_id"], ti["map_index"]))
    return state, {"state": state, "tis": tis}


def _compare(golden: Path | None, dag_id: str, found: dict[str, Any]) -> str:
    path = golden / f"{dag_id}.json" if golden is not None else None
    if path is None or not path.exists():
        return ""
    recorded = json.loads(path.read_text())
    if recorded.get("run") is None:
        return "yes" if not recorded.get("finished") or found["state"] != "open" else "it did not end"
    if recorded["run"] == found:
        return "yes"
    theirs = {(ti["task_id"], ti["map_index"]): ti for ti in recorded["run"]["tis"]}
    ours = {(ti["task_id"], ti["map_index"]): ti for ti in found["tis"]}
    differing = sorted({key[0] for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)})
    return f"differs: {', '.join(differing) or 'the state of the run'}"


def _expected_errors(golden: Path | None) -> set[str]:
    """Files that do not load in the real Airflow either (they import a package that is not part of the check)."""
    path = golden / "_files.json" if golden is not None else None
    if path is None or not path.exists():
        return set()
    short = {"core": "core", "standard": "providers_standard"}
    recorded = json.loads(path.read_text())["files"]
    return {f"{short[key.split('/')[0]]}/{key.split('/')[1]}" for key, file in recorded.items() if file["error"]}


def _document(results: list[Result], golden: Path | None) -> str:
    expected = _expected_errors(golden)
    lines = [HEAD, "| File | DAG | Loads | Ends | As Airflow |\n| --- | --- | --- | --- | --- |\n"]
    for result in results:
        if result.error:
            remark = "yes: it does not load there either" if result.file in expected else "no"
            lines.append(f"| {result.file} | | no: `{result.error}` | | {remark} |\n")
        for dag_id, (state, same) in sorted(result.dags.items()):
            lines.append(f"| {result.file} | {dag_id} | yes | {state} | {same} |\n")
    lines.append("\nNot run: " + "; ".join(f"`{name}` ({why})" for name, why in sorted(LEFT_OUT.items())) + ".\n")
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
