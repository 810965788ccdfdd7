"""Cases that are more than one run: what people do over the API, and what each answer and state is afterwards."""

from __future__ import annotations

import time
from typing import Any

from tests.conformance.server import DONE, Refused, Server, wait_for

WHEN = "2024-05-17T08:30:00+00:00"


class Story:
    """One DAG on a server, and short words for what is asked of it."""

    def __init__(self, observer: Any, case: Any) -> None:
        self.observer = observer
        self.server: Server = observer.server
        self.dag = case.dag
        self.seconds = case.seconds
        self.root = f"/api/v2/dags/{self.dag}"

    def start(self, run_id: str = "conf", when: str | None = WHEN, **more: Any) -> dict[str, Any]:
        return self.server.trigger(self.dag, dag_run_id=run_id, logical_date=when, **more)

    def fresh(self, *, wait: bool = True) -> None:
        """One run, alone."""
        self.server.pause(self.dag, True)
        self.server.forget_runs(self.dag)
        self.server.pause(self.dag, False)
        self.start()
        if wait:
            self.end()

    def end(self, run_id: str = "conf") -> str:
        return str(self.observer.wait(self.dag, run_id, self.seconds)["state"])

    def until(self, task: str, state: str, run_id: str = "conf") -> None:
        def seen() -> bool:
            return any(t["task_id"] == task and t["state"] == state for t in self.server.tasks(self.dag, run_id))

        wait_for(seen, self.seconds, f"{task} is {state}")

    def states(self, run_id: str = "conf") -> dict[str, Any]:
        """The run's state, and for each task instance its state, try and most tries."""
        found: dict[str, Any] = {"run": self.server.run(self.dag, run_id)["state"]}
        for t in self.server.tasks(self.dag, run_id):
            index = "" if t["map_index"] < 0 else f"#{t['map_index']}"
            found[t["task_id"] + index] = [t["state"], t["try_number"], t["max_tries"]]
        return found

    def ask(self, method: str, path: str, **more: Any) -> Any:
        """The JSON of an answer, or its status when it is refused."""
        try:
            return self.server.ask(method, self.root + path, **more)
        except Refused as refused:
            return refused.status

    def clear(self, **body: Any) -> Any:
        """What a clear named, by task id."""
        answer = self.ask("POST", "/clearTaskInstances", json={"dry_run": False, "dag_run_id": "conf", **body})
        if isinstance(answer, int):
            return answer
        return sorted({t["task_id"] for t in answer["task_instances"]})

    def settle(self, run_id: str = "conf", pause: float = 3) -> dict[str, Any]:
        time.sleep(pause)
        self.end(run_id)
        return self.states(run_id)


def marking_runs(observer: Any, case: Any) -> dict[str, Any]:
    story = Story(observer, case)
    found = {}
    for state in ("failed", "success"):
        story.fresh(wait=False)
        story.until("slow", "running")
        answer = story.ask("PATCH", "/dagRuns/conf", json={"state": state})
        time.sleep(8)
        found[state] = {"answer": answer["state"], "after": story.states()}
    found["queued again"] = _queue_again(story)
    found["wrong state"] = story.ask("PATCH", "/dagRuns/conf", json={"state": "running"})
    found["note"] = story.ask("PATCH", "/dagRuns/conf", json={"note": "seen"})["note"]
    found["unknown field"] = story.ask("PATCH", "/dagRuns/conf", json={"conf": {}})
    found["unknown run"] = story.ask("PATCH", "/dagRuns/nothing", json={"state": "failed"})
    return found


def _queue_again(story: Story) -> Any:
    answer = story.ask("PATCH", "/dagRuns/conf", json={"state": "queued"})
    time.sleep(6)
    after = story.states()
    story.ask("PATCH", "/dagRuns/conf", json={"state": "failed"})
    time.sleep(4)
    return {"answer": answer if isinstance(answer, int) else answer["state"], "after": after}


def marking_tasks(observer: Any, case: Any) -> dict[str, Any]:
    story = Story(observer, case)
    found: dict[str, Any] = {}
    for name, task, body in (
        ("success", "b", {"new_state": "success"}),
        ("skipped", "b", {"new_state": "skipped"}),
        ("failed", "a", {"new_state": "failed"}),
        ("downstream", "b", {"new_state": "success", "include_downstream": True}),
        ("upstream", "c", {"new_state": "failed", "include_upstream": True}),
    ):
        story.fresh()
        answer = story.ask("PATCH", f"/dagRuns/conf/taskInstances/{task}", json=body)
        told = (
            answer if isinstance(answer, int) else sorted([t["task_id"], t["state"]] for t in answer["task_instances"])
        )
        found[name] = {"told": told, "after": story.settle()}
    one = "/dagRuns/conf/taskInstances/a"
    dry = story.ask("PATCH", one + "/dry_run", json={"new_state": "failed", "include_downstream": True})
    found["dry run"] = dry if isinstance(dry, int) else sorted(t["task_id"] for t in dry["task_instances"])
    found["note"] = [t["note"] for t in story.ask("PATCH", one, json={"note": "looked at"})["task_instances"]]
    for name, body in (("running", {"new_state": "running"}), ("none", {}), ("bogus", {"new_state": "odd"})):
        answer = story.ask("PATCH", one, json=body)
        found[f"refuses {name}"] = answer if isinstance(answer, int) else 200
    found["unknown task"] = story.ask("PATCH", "/dagRuns/conf/taskInstances/nope", json={"new_state": "failed"})
    return found


def marking_running_tasks(observer: Any, case: Any) -> dict[str, Any]:
    story = Story(observer, case)
    found = {}
    for state in ("success", "failed", "skipped"):
        story.fresh(wait=False)
        story.until("slow", "running")
        story.ask("PATCH", "/dagRuns/conf/taskInstances/slow", json={"new_state": state})
        found[state] = story.settle(pause=6)
    return found


def clearing(observer: Any, case: Any) -> dict[str, Any]:
    story = Story(observer, case)
    story.fresh()
    found: dict[str, Any] = {"first": story.states()}
    for name, body in (
        ("failed only", {"only_failed": True}),
        ("one task", {"task_ids": ["a"], "only_failed": False}),
        ("with downstream", {"task_ids": ["b"], "include_downstream": True, "only_failed": False}),
        ("with upstream", {"task_ids": ["c"], "include_upstream": True, "only_failed": False}),
        ("failed with downstream", {"task_ids": ["b"], "include_downstream": True, "only_failed": True}),
        ("everything", {"only_failed": False}),
        ("leaves the run", {"task_ids": ["a"], "only_failed": False, "reset_dag_runs": False}),
    ):
        cleared = story.clear(**body)
        found[name] = {"cleared": cleared, "after": story.settle() if body.get("reset_dag_runs", True) else None}
    time.sleep(5)
    found["run that was left"] = story.states()
    found["unknown task"] = story.clear(task_ids=["nope"])
    found["unknown run"] = story.clear(dag_run_id="nothing")
    found["dry run"] = story.clear(dry_run=True, only_failed=False)
    found["both kinds"] = story.clear(only_failed=True, only_running=True)
    tries = story.ask("GET", "/dagRuns/conf/taskInstances/b/tries")["task_instances"]
    found["tries of b"] = sorted([t["try_number"], t["state"], t["max_tries"]] for t in tries)
    found["clear run"] = sorted(
        t["task_id"] for t in story.ask("POST", "/dagRuns/conf/clear", json={"dry_run": True})["task_instances"]
    )
    story.ask("POST", "/dagRuns/conf/clear", json={"dry_run": False})
    found["after clear run"] = story.settle()
    return found


def clearing_what_runs(observer: Any, case: Any) -> dict[str, Any]:
    story = Story(observer, case)
    story.fresh(wait=False)
    story.until("slow", "running")
    cleared = story.clear(task_ids=["slow"], only_failed=False)
    time.sleep(4)
    story.until("slow", "running")
    found = {"cleared": cleared, "again": story.states()}
    story.ask("PATCH", "/dagRuns/conf", json={"state": "failed"})
    time.sleep(4)
    return {**found, "ended": story.states()}


def clearing_a_branch(observer: Any, case: Any) -> dict[str, Any]:
    story = Story(observer, case)
    story.fresh()
    found: dict[str, Any] = {"first": story.states()}
    story.clear(task_ids=["right"], only_failed=False)
    found["the arm not taken"] = story.settle()
    story.clear(task_ids=["pick"], include_downstream=True, only_failed=False)
    return {**found, "the branch": story.settle()}


def clearing_mapped(observer: Any, case: Any) -> dict[str, Any]:
    story = Story(observer, case)

    def length(text: str) -> None:
        if (
            story.server.status("PATCH", "/api/v2/variables/story_length", json={"key": "story_length", "value": text})
            == 404
        ):
            story.server.ask("POST", "/api/v2/variables", json={"key": "story_length", "value": text})

    length("3")
    story.fresh()
    found: dict[str, Any] = {"first": story.states()}
    found["one index"] = {"cleared": story.clear(task_ids=[["twice", 1]], only_failed=False), "after": story.settle()}
    found["all"] = {"cleared": story.clear(task_ids=["twice"], only_failed=False), "after": story.settle()}
    length("2")
    story.clear(task_ids=["numbers"], include_downstream=True, only_failed=False)
    found["shorter"] = story.settle()
    length("3")
    story.clear(task_ids=["numbers"], include_downstream=True, only_failed=False)
    found["longer"] = story.settle()
    listed = story.ask("GET", "/dagRuns/conf/taskInstances/twice/listMapped")
    found["listed"] = [t["map_index"] for t in listed["task_instances"]]
    found["group"] = {"cleared": story.clear(task_group_id="group", only_failed=False)}
    story.settle()
    found["not mapped"] = story.ask("GET", "/dagRuns/conf/taskInstances/numbers/listMapped")
    found["without index"] = story.ask("GET", "/dagRuns/conf/taskInstances/twice")
    found["index"] = story.ask("GET", "/dagRuns/conf/taskInstances/twice/1")["state"]
    found["no such index"] = story.ask("GET", "/dagRuns/conf/taskInstances/twice/9")
    return found


def clearing_over_time(observer: Any, case: Any) -> dict[str, Any]:
    """Past and future of a clear; the runs are those of a schedule."""
    story = Story(observer, case)
    server = story.server
    server.pause(story.dag, False)
    wait_for(lambda: [r["state"] for r in server.runs(story.dag)] == ["success"] * 3, story.seconds, "three runs")
    ids = [r["dag_run_id"] for r in server.runs(story.dag)]
    found: dict[str, Any] = {}
    for name, body in (
        ("future", {"include_future": True}),
        ("past", {"include_past": True}),
        ("both", {"include_future": True, "include_past": True}),
    ):
        answer = story.ask(
            "POST",
            "/clearTaskInstances",
            json={"dry_run": True, "only_failed": False, "dag_run_id": ids[1], "task_ids": ["two"], **body},
        )
        found[name] = sorted([t["dag_run_id"], t["task_id"]] for t in answer["task_instances"])
    answer = story.ask(
        "PATCH",
        f"/dagRuns/{ids[0]}/taskInstances/one",
        json={"new_state": "failed", "include_future": True, "include_downstream": True},
    )
    found["marked"] = sorted([t["dag_run_id"], t["task_id"], t["state"]] for t in answer["task_instances"])
    time.sleep(4)
    found["after"] = [story.states(run_id) for run_id in ids]
    dated = {
        "dry_run": True,
        "only_failed": False,
        "start_date": "2024-01-02T00:00:00Z",
        "end_date": "2024-01-02T23:00:00Z",
    }
    answer = story.ask("POST", "/clearTaskInstances", json=dated)
    found["by dates"] = sorted([t["dag_run_id"], t["task_id"]] for t in answer["task_instances"])
    server.pause(story.dag, True)
    return found


def backfilling(observer: Any, case: Any) -> dict[str, Any]:
    story = Story(observer, case)
    server = story.server
    server.pause(story.dag, True)
    server.forget_runs(story.dag)
    server.pause(story.dag, False)
    time.sleep(4)
    body = {"dag_id": story.dag, "from_date": "2024-02-01T00:00:00Z", "to_date": "2024-02-03T00:00:00Z"}

    def ask(path: str, **more: Any) -> Any:
        try:
            return server.ask("POST", f"/api/v2/backfills{path}", json={**body, **more})
        except Refused as refused:
            return refused.status

    def runs() -> list[Any]:
        keys = ("dag_run_id", "run_type", "logical_date", "run_after", "state", "conf", "triggered_by")
        return [[r[key] for key in keys] for r in server.runs(story.dag) if r["run_type"] == "backfill"]

    found: dict[str, Any] = {"dry run": ask("/dry_run")}
    made = ask("", max_active_runs=1, dag_run_conf={"k": 1})
    found["made"] = (
        made
        if isinstance(made, int)
        else {key: made[key] for key in ("is_paused", "max_active_runs", "reprocess_behavior", "dag_run_conf")}
    )
    wait_for(lambda: len(runs()) == 3 and all(r[4] in DONE for r in runs()), story.seconds, "three backfilled runs")
    found["runs"] = runs()
    found["again"] = {"answer": type(ask("")).__name__, "runs": len(runs())}
    time.sleep(3)
    found["completed again"] = _backfill_again(ask, runs, reprocess_behavior="completed")
    found["backwards"] = ask("/dry_run", run_backwards=True)
    found["wrong behaviour"] = ask("", reprocess_behavior="sometimes")
    found["unknown dag"] = ask("", dag_id="no_such_dag")
    found["empty range"] = ask("", from_date="2024-03-05T00:00:00Z", to_date="2024-03-01T00:00:00Z")
    server.pause(story.dag, True)
    return found


def _backfill_again(ask: Any, runs: Any, **more: Any) -> Any:
    answer = ask("", **more)
    time.sleep(6)
    wait_for(lambda: all(r[4] in DONE for r in runs()), 120, "the backfill's end")
    return {"answer": answer if isinstance(answer, int) else "made", "runs": runs()}


def refusing(observer: Any, case: Any) -> dict[str, Any]:
    """Statuses of odd requests."""
    story = Story(observer, case)
    server = story.server
    story.fresh()
    v2 = "/api/v2"
    asked = {
        "trigger: date is no date": ("POST", f"{story.root}/dagRuns", {"logical_date": "soon"}),
        "trigger: naive date": (
            "POST",
            f"{story.root}/dagRuns",
            {"logical_date": "2024-06-01T00:00:00", "dag_run_id": "naive"},
        ),
        "trigger: conf is text": ("POST", f"{story.root}/dagRuns", {"logical_date": None, "conf": "text"}),
        "trigger: conf is a list": ("POST", f"{story.root}/dagRuns", {"logical_date": None, "conf": [1]}),
        "trigger: run id empty": ("POST", f"{story.root}/dagRuns", {"logical_date": None, "dag_run_id": ""}),
        "trigger: run id reserved": (
            "POST",
            f"{story.root}/dagRuns",
            {"logical_date": None, "dag_run_id": "scheduled__x"},
        ),
        "trigger: run id too long": ("POST", f"{story.root}/dagRuns", {"logical_date": None, "dag_run_id": "x" * 300}),
        "trigger: half an interval": (
            "POST",
            f"{story.root}/dagRuns",
            {"logical_date": None, "data_interval_start": WHEN},
        ),
        "trigger: interval backwards": (
            "POST",
            f"{story.root}/dagRuns",
            {
                "logical_date": "2024-07-01T00:00:00Z",
                "data_interval_start": "2024-07-02T00:00:00Z",
                "data_interval_end": "2024-07-01T00:00:00Z",
                "dag_run_id": "backwards",
            },
        ),
        "trigger: run after": (
            "POST",
            f"{story.root}/dagRuns",
            {"logical_date": None, "run_after": WHEN, "dag_run_id": "later"},
        ),
        "trigger: note": ("POST", f"{story.root}/dagRuns", {"logical_date": None, "note": "n" * 1001}),
        "trigger: no body": ("POST", f"{story.root}/dagRuns", None),
        "run: delete": ("DELETE", f"{story.root}/dagRuns/naive", None),
        "run: delete again": ("DELETE", f"{story.root}/dagRuns/naive", None),
        "runs: unknown order": ("GET", f"{story.root}/dagRuns?order_by=nothing", None),
        "runs: unknown state": ("GET", f"{story.root}/dagRuns?state=odd", None),
        "runs: limit 0": ("GET", f"{story.root}/dagRuns?limit=0", None),
        "runs: limit negative": ("GET", f"{story.root}/dagRuns?limit=-1", None),
        "runs: limit large": ("GET", f"{story.root}/dagRuns?limit=100000", None),
        "runs: offset text": ("GET", f"{story.root}/dagRuns?offset=x", None),
        "runs: bad date": ("GET", f"{story.root}/dagRuns?start_date_gte=x", None),
        "runs: unknown filter": ("GET", f"{story.root}/dagRuns?colour=red", None),
        "dag: unknown": ("GET", f"{v2}/dags/no_such_dag", None),
        "dag: unknown details": ("GET", f"{v2}/dags/no_such_dag/details", None),
        "dag: patch nothing": ("PATCH", story.root, {}),
        "dag: patch unknown field": ("PATCH", story.root, {"description": "x"}),
        "dag: patch wrong mask": ("PATCH", story.root + "?update_mask=description", {"is_paused": False}),
        "task: unknown": ("GET", f"{story.root}/tasks/nope", None),
        "tasks: order": ("GET", f"{story.root}/tasks?order_by=-task_id", None),
        "tasks: bad order": ("GET", f"{story.root}/tasks?order_by=colour", None),
        "log: unknown try": ("GET", f"{story.root}/dagRuns/conf/taskInstances/a/logs/9", None),
        "log: task that never ran": ("GET", f"{story.root}/dagRuns/conf/taskInstances/c/logs/1", None),
        "xcom: unknown": ("GET", f"{story.root}/dagRuns/conf/taskInstances/a/xcomEntries/nope", None),
        "xcom: make": (
            "POST",
            f"{story.root}/dagRuns/conf/taskInstances/a/xcomEntries",
            {"key": "k", "value": {"x": [1]}},
        ),
        "xcom: make again": (
            "POST",
            f"{story.root}/dagRuns/conf/taskInstances/a/xcomEntries",
            {"key": "k", "value": 2},
        ),
        "xcom: change": ("PATCH", f"{story.root}/dagRuns/conf/taskInstances/a/xcomEntries/k", {"value": 3}),
        "xcom: delete": ("DELETE", f"{story.root}/dagRuns/conf/taskInstances/a/xcomEntries/k", None),
        "pool: bad slots": ("POST", f"{v2}/pools", {"name": "story", "slots": "many"}),
        "pool: slots -2": ("POST", f"{v2}/pools", {"name": "story", "slots": -2}),
        "pool: make": ("POST", f"{v2}/pools", {"name": "story", "slots": 2}),
        "pool: again": ("POST", f"{v2}/pools", {"name": "story", "slots": 2}),
        "pool: delete": ("DELETE", f"{v2}/pools/story", None),
        "pool: delete default": ("DELETE", f"{v2}/pools/default_pool", None),
        "pool: rename default": ("PATCH", f"{v2}/pools/default_pool", {"name": "other", "slots": 1}),
        "variable: empty key": ("POST", f"{v2}/variables", {"key": "", "value": "x"}),
        "variable: number": ("POST", f"{v2}/variables", {"key": "story_number", "value": 5}),
        "variable: again": ("POST", f"{v2}/variables", {"key": "story_number", "value": 5}),
        "variable: patch other key": ("PATCH", f"{v2}/variables/story_number", {"key": "other", "value": "x"}),
        "variable: delete": ("DELETE", f"{v2}/variables/story_number", None),
        "variable: delete again": ("DELETE", f"{v2}/variables/story_number", None),
        "connection: bad id": ("POST", f"{v2}/connections", {"connection_id": "a b", "conn_type": "http"}),
        "connection: no type": ("POST", f"{v2}/connections", {"connection_id": "story"}),
        "connection: bad extra": (
            "POST",
            f"{v2}/connections",
            {"connection_id": "story", "conn_type": "http", "extra": "{no"},
        ),
        "connection: make": ("POST", f"{v2}/connections", {"connection_id": "story", "conn_type": "http"}),
        "connection: again": ("POST", f"{v2}/connections", {"connection_id": "story", "conn_type": "http"}),
        "connection: delete": ("DELETE", f"{v2}/connections/story", None),
        "no such page": ("GET", f"{v2}/nothing", None),
        "wrong method": ("PUT", f"{v2}/dags", None),
        "version": ("GET", f"{v2}/version", None),
        "health": ("GET", f"{v2}/monitor/health", None),
    }
    found: dict[str, Any] = {}
    for name, (method, path, body) in asked.items():
        found[name] = server.status(method, path, **({} if body is None else {"json": body}))
    server.status("DELETE", f"{v2}/connections/a b")
    server.pause(story.dag, True)
    return found


def listing(observer: Any, case: Any) -> dict[str, Any]:
    """What filters and orders give."""
    story = Story(observer, case)
    server = story.server
    story.fresh()
    story.start("later", "2024-05-18T00:00:00+00:00", conf={"x": 1})
    story.start("undated", None, note="by hand")
    for run_id in ("later", "undated"):
        story.end(run_id)

    def runs(query: str) -> Any:
        answer = story.ask("GET", f"/dagRuns?{query}")
        return answer if isinstance(answer, int) else [r["dag_run_id"] for r in answer["dag_runs"]]

    def tasks(query: str) -> Any:
        answer = story.ask("GET", f"/dagRuns/conf/taskInstances?{query}")
        return answer if isinstance(answer, int) else [t["task_id"] for t in answer["task_instances"]]

    def dags(query: str) -> Any:
        try:
            answer = server.ask("GET", f"/api/v2/dags?{query}")
        except Refused as refused:
            return refused.status
        return [d["dag_id"] for d in answer["dags"]]

    found: dict[str, Any] = {"runs": {}, "tasks": {}, "dags": {}}
    for query in (
        "",
        "order_by=logical_date",
        "order_by=-logical_date",
        "order_by=-run_after",
        "order_by=dag_run_id",
        "order_by=run_id",
        "order_by=-conf",
        "order_by=-start_date&limit=1",
        "order_by=start_date&limit=1&offset=1",
        "logical_date_gte=2024-05-18T00:00:00Z",
        "logical_date_lt=2024-05-18T00:00:00Z",
        "logical_date_gt=2024-05-17T08:30:00Z&logical_date_lte=2024-05-18T00:00:00Z",
        "state=success",
        "state=failed&state=success&order_by=id",
        "run_type=manual&order_by=id",
        "run_type=scheduled",
        "run_id_pattern=lat&order_by=id",
        "triggering_user_name_pattern=adm&order_by=id",
        "dag_version=1&order_by=id",
        "conf_contains=x&order_by=id",
    ):
        found["runs"][query] = runs(query)
    for query in (
        "order_by=task_display_name",
        "order_by=-task_display_name",
        "state=failed",
        "state=none",
        "state=success&state=failed&order_by=start_date",
        "task_display_name_pattern=c",
        "pool=default_pool&order_by=id&limit=2",
        "queue=none_such",
        "try_number=1&order_by=id",
        "operator=EmptyOperator",
        "map_index=-1&order_by=id&limit=1",
        "executor=none",
        "order_by=duration",
        "order_by=colour",
        "task_id=a",
    ):
        found["tasks"][query] = tasks(query)
    for query in (
        "tags=story",
        "tags=story&tags=chain&tags_match_mode=all",
        "tags=story&tags=none_such&tags_match_mode=all",
        "tags=story&tags=none_such&tags_match_mode=any",
        "dag_id_pattern=story_c",
        "dag_id_pattern=%25ory_ch%25",
        "dag_display_name_pattern=story_ch",
        "dag_id_pattern=story_&order_by=-dag_id&limit=2",
        "dag_id_pattern=story_chain&paused=true",
        "dag_id_pattern=story_chain&paused=false",
        "dag_id_pattern=story_chain&owners=airflow",
        "dag_id_pattern=story_chain&owners=nobody",
        "dag_id_pattern=story_chain&last_dag_run_state=failed",
        "dag_id_pattern=story_chain&has_import_errors=false",
        "dag_id_pattern=story_&timetable_type=x",
        "order_by=colour",
    ):
        found["dags"][query] = dags(query)
    server.pause(story.dag, True)
    return found
