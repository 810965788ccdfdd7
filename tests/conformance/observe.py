"""Runs a case on a server and gathers its facts; compares two sets of facts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.conformance.cases import Case, Start
from tests.conformance.server import DONE, Server, wait_for

MOST_LINES = 16
LONG = 2000
HIDDEN_XCOMS = ("skipmixin", "_", "trigger_")


class Observer:
    def __init__(self, server: Server, markers: Path, patience: float = 1.0) -> None:
        self.server = server
        self.markers = markers
        self.patience = patience

    def observe(self, case: Case, expected: dict[str, Any] | None) -> dict[str, Any]:
        """The facts of the case; with expected ones, waits a little for what comes after the last task."""
        if case.story is not None:
            return _plain(case.story(self, case))
        if case.scheduled:
            self._let_schedule(case, expected)
        else:
            self._run_by_hand(case)
        end = time.monotonic() + (12 if expected else 0)
        while True:
            facts = _plain(self._facts(case))
            if expected is None or facts == expected or time.monotonic() > end:
                break
            time.sleep(1)
        if case.scheduled:
            self.server.pause(case.dag, True)
        return facts

    def _run_by_hand(self, case: Case) -> None:
        dags = (case.dag, *case.also)
        for dag in dags:
            self.server.pause(dag, True)
            self.server.forget_runs(dag)
        self._forget_markers(dags)
        for dag in dags:
            self.server.pause(dag, dag in case.stay_paused)
        for start in case.starts:
            self.start(case, start)
        for start in case.starts:
            if not start.never_ends:
                self.wait(start.dag or case.dag, start.run_id, case.seconds)
        for dag in case.also:
            if dag not in case.stay_paused:
                wait_for(lambda dag=dag: self._all_done(dag, least=1), case.seconds * self.patience, f"runs of {dag}")
        time.sleep(case.settle)

    def start(self, case: Case, start: Start) -> None:
        dag = start.dag or case.dag
        self.server.trigger(dag, dag_run_id=start.run_id, logical_date=start.logical_date, conf=start.conf)
        if start.wait and not start.never_ends:
            self.wait(dag, start.run_id, case.seconds)

    def wait(self, dag: str, run_id: str, seconds: float) -> dict[str, Any]:
        def finished() -> dict[str, Any] | None:
            run = self.server.run(dag, run_id)
            return run if run["state"] in DONE else None

        return wait_for(finished, seconds * self.patience, f"the end of {dag} {run_id}")

    def _all_done(self, dag: str, least: int) -> bool:
        runs = self.server.runs(dag)
        return len(runs) >= least and all(run["state"] in DONE for run in runs)

    def _let_schedule(self, case: Case, expected: dict[str, Any] | None) -> None:
        for dag in (case.dag, *case.also):
            self.server.pause(dag, False)
        if expected is None:
            time.sleep(case.settle or 30)
        if case.unfinished:
            time.sleep(case.settle or 30)
            return
        least = len(expected["runs"][case.dag]) if expected else 0
        wait_for(lambda: self._all_done(case.dag, least), case.seconds * self.patience, f"{least} runs of {case.dag}")
        time.sleep(4)

    def _facts(self, case: Case) -> dict[str, Any]:
        facts: dict[str, Any] = {"runs": {}}
        for dag in (case.dag, *case.also):
            facts["runs"][dag] = [self.run_facts(case, run) for run in _in_order(self.server.runs(dag))]
        if case.markers:
            facts["markers"] = self._marked((case.dag, *case.also))
        return facts

    def run_facts(self, case: Case, run: dict[str, Any]) -> dict[str, Any]:
        dates = ("logical_date", "data_interval_start", "data_interval_end")
        facts: dict[str, Any] = {"state": run["state"], "run_type": run["run_type"], "conf": run["conf"] or {}}
        facts["run_id"] = run["dag_run_id"]
        facts.update({key: _utc(run[key]) for key in dates})
        if run["run_type"] in ("scheduled", "backfill"):
            facts["run_after"] = _utc(run["run_after"])
        facts = {key: value for key, value in facts.items() if key not in case.leave_out}
        if "tasks" not in case.leave_out:
            facts["tasks"] = self.task_facts(case, run["dag_id"], run["dag_run_id"])
        return facts

    def task_facts(self, case: Case, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        xcoms = self._xcoms(case, dag_id, run_id)
        rows = []
        for task in self.server.tasks(dag_id, run_id):
            keys = ("task_id", "map_index", "state", "try_number", "max_tries", *case.fields)
            row = {key: task[key] for key in keys if key not in case.leave_out}
            if case.rendered:
                row["rendered"] = task["rendered_fields"]
            if found := xcoms.get((task["task_id"], task["map_index"])):
                row["xcom"] = found
            rows.append(row)
        return rows

    def _xcoms(self, case: Case, dag_id: str, run_id: str) -> dict[tuple[str, int], dict[str, Any]]:
        found: dict[tuple[str, int], dict[str, Any]] = {}
        root = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
        for entry in self.server.all(f"{root}/~/xcomEntries", "xcom_entries"):
            task, key, index = entry["task_id"], entry["key"], entry["map_index"]
            if key.startswith(HIDDEN_XCOMS) or task in case.no_xcom or key in case.no_xcom:
                continue
            params = {"map_index": index, "stringify": False}
            value = self.server.ask("GET", f"{root}/{task}/xcomEntries/{key}", params=params)["value"]
            text = json.dumps(value)
            found.setdefault((task, index), {})[key] = {"characters": len(text)} if len(text) > LONG else value
        return found

    def _marked(self, dags: Iterable[str]) -> list[Any]:
        lines = self.markers.read_text().splitlines() if self.markers.exists() else []
        rows = [json.loads(line) for line in lines]
        return sorted((row for row in rows if row["dag"] in dags), key=lambda row: json.dumps(row, sort_keys=True))

    def _forget_markers(self, dags: Iterable[str]) -> None:
        if self.markers.exists():
            keep = [row for row in map(json.loads, self.markers.read_text().splitlines()) if row["dag"] not in dags]
            self.markers.write_text("".join(json.dumps(row) + "\n" for row in keep))


def difference(expected: Any, found: Any, path: str = "", lines: list[str] | None = None) -> list[str]:
    """One line for each value that differs, at most MOST_LINES."""
    lines = [] if lines is None else lines
    if len(lines) >= MOST_LINES:
        return lines
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in [*expected, *(key for key in found if key not in expected)]:
            difference(expected.get(key, "<nothing>"), found.get(key, "<nothing>"), f"{path}.{key}", lines)
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            lines.append(f"{path}: {len(expected)} items, here {len(found)}")
        for number, (left, right) in enumerate(zip(expected, found, strict=False)):
            name = f"{path}[{_name(left) or number}]"
            difference(left, right, name, lines)
    elif json.dumps(expected) != json.dumps(found):
        lines.append(f"{path}: {json.dumps(expected)[:200]}, here {json.dumps(found)[:200]}")
    return lines


def _name(item: Any) -> str | None:
    if not isinstance(item, dict) or "task_id" not in item:
        return None
    return item["task_id"] + (f"#{item['map_index']}" if item.get("map_index", -1) >= 0 else "")


def _in_order(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(runs, key=lambda run: (_utc(run["logical_date"]) or "", _utc(run["run_after"]), run["dag_run_id"]))


def _utc(text: str | None) -> str | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC).isoformat()


def _plain(facts: Any) -> Any:
    return json.loads(json.dumps(facts, default=str, sort_keys=True))
