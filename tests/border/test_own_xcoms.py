"""What a task pushed it may read at once, although it is stored later."""

from __future__ import annotations

from typing import Any

from scheduler_app.attempt_log import Masks
from scheduler_app.usercode.port import WirePort

OWN = {"dag_id": "d", "run_id": "r", "task_id": "t"}


class Stored:
    """A supervisor whose database holds what other tasks pushed."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows, self.asked = rows, ""

    def send(self, message: dict[str, Any]) -> None:
        self.asked = message["op"]

    def receive(self) -> dict[str, Any]:
        if self.asked == "get_xcoms":
            return {"ok": self.rows}
        return {"ok": {"found": bool(self.rows), "value": self.rows[0][1] if self.rows else None}}


def port(rows: list[Any], map_index: int = -1) -> WirePort:
    made = WirePort(Stored(rows), Masks())  # type: ignore[arg-type]
    made.own = ("d", "r", "t", map_index)
    return made


def test_an_own_value_is_read_back_and_is_gone_when_it_is_deleted() -> None:
    own = port([])
    own.set_xcom("k", (1, 2))
    assert own.get_xcom(**OWN, map_index=-1, key="k") == (True, (1, 2))
    assert own.get_xcoms(**OWN, key="k") == [(-1, (1, 2))]
    assert own.get_xcom(**OWN, map_index=-1, key="other") == (False, None)
    own.delete_xcom("k")
    assert own.get_xcoms(**OWN, key="k") == []


def test_an_own_value_stands_among_those_of_the_other_indexes() -> None:
    own = port([[0, "a"], [2, "c"]], map_index=1)
    own.set_xcom("k", "b")
    assert own.get_xcoms(**OWN, key="k") == [(0, "a"), (1, "b"), (2, "c")]
    assert own.get_xcoms(**OWN, key="k", map_indexes=[0, 2]) == [(0, "a"), (2, "c")]


def test_values_of_other_runs_and_tasks_are_the_stored_ones() -> None:
    own = port([[-1, "stored"]])
    own.set_xcom("k", "own")
    assert own.get_xcom(**{**OWN, "run_id": "before"}, map_index=-1, key="k") == (True, "stored")
    assert own.get_xcoms(**{**OWN, "task_id": "u"}, key="k") == [(-1, "stored")]
