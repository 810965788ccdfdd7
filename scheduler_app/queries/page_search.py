"""Find anything by a few letters of its name: DAGs and their tasks, and runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import Q, QuerySet

from scheduler_app.models import DagModel, DagRun, db

#: Rows of each kind, at most.
DAGS: Final = 6
TASKS: Final = 4
RUNS: Final = 5
#: Runs are looked for among so many of the newest: a name is looked for in what happened lately.
NEWEST: Final = 2_000


@dataclass(frozen=True, slots=True)
class DagHit:
    dag_id: str
    name: str
    is_paused: bool
    latest_run_id: str | None
    latest_state: str | None


@dataclass(frozen=True, slots=True)
class TaskHit:
    dag_id: str
    task_id: str
    #: the newest run, if it has the task
    run_id: str | None


@dataclass(frozen=True, slots=True)
class RunHit:
    dag_id: str
    run_id: str
    state: str


#: A name is found when it holds the letters in their order; the rank says how well: the name itself, its beginning,
#: the letters side by side, anywhere.
_RANK: Final = """CASE WHEN lower({name}) = asked.text THEN 0 WHEN starts_with(lower({name}), asked.text) THEN 1
    WHEN position(asked.text IN lower({name})) > 0 THEN 2 ELSE 3 END"""


def dags_and_tasks(visible: QuerySet[DagModel], text: str) -> tuple[list[DagHit], list[TaskHit]]:
    """The DAGs, and the tasks of their latest versions, that fit best. One query, for a text that is not empty."""
    sql, params = visible.filter(is_stale=False).order_by().values("dag_id").query.sql_with_params()
    records = db.fetch(
        f"""
        WITH visible AS ({sql}),
        asked(text, loose, close) AS (VALUES (%s, %s, %s)),
        hits AS MATERIALIZED (
            SELECT d.dag_id, coalesce(nullif(d.dag_display_name, ''), d.dag_id) AS name, d.is_paused,
                   least({_RANK.format(name="d.dag_id")}, {_RANK.format(name="d.dag_display_name")}) AS rank
            FROM scheduler_dag d CROSS JOIN asked
            WHERE d.dag_id IN (SELECT dag_id FROM visible)
              AND (d.dag_id ILIKE asked.loose OR d.dag_display_name ILIKE asked.loose)
            ORDER BY rank, length(d.dag_id), d.dag_id LIMIT {DAGS}
        ),
        tasks AS MATERIALIZED (
            SELECT d.dag_id, t.task ->> 'task_id' AS name, {_RANK.format(name="t.task ->> 'task_id'")} AS rank
            FROM scheduler_dag d CROSS JOIN asked
            JOIN scheduler_dag_version v ON v.id = d.latest_version_id
            CROSS JOIN LATERAL jsonb_array_elements(v.document -> 'tasks') t(task)
            WHERE d.dag_id IN (SELECT dag_id FROM visible) AND t.task ->> 'task_id' ILIKE asked.close
            ORDER BY rank, d.dag_id, name LIMIT {TASKS}
        )
        SELECT 'dag', h.dag_id, h.name, h.is_paused, r.run_id, r.state, h.rank
        FROM hits h LEFT JOIN LATERAL (
            SELECT run_id, state FROM scheduler_dag_run
            WHERE dag_id = h.dag_id ORDER BY run_after DESC, id DESC LIMIT 1
        ) r ON true
        UNION ALL
        SELECT 'task', t.dag_id, t.name, false, i.run_id, NULL, t.rank
        FROM tasks t LEFT JOIN LATERAL (
            SELECT newest.run_id FROM (
                SELECT id, run_id FROM scheduler_dag_run
                WHERE dag_id = t.dag_id ORDER BY run_after DESC, id DESC LIMIT 1
            ) newest
            WHERE EXISTS (SELECT 1 FROM scheduler_task_instance i WHERE i.dag_run_id = newest.id AND i.task_id = t.name)
        ) i ON true
        ORDER BY 1, 7, 2, 3
        """,
        [*params, *_patterns(text)],
    )
    dags = [DagHit(*record[1:6]) for record in records if record[0] == "dag"]
    return dags, [TaskHit(record[1], record[2], record[4]) for record in records if record[0] == "task"]


def runs(visible: QuerySet[DagRun], text: str) -> list[RunHit]:
    """The newest runs whose id, or "DAG and id", holds every word; without a text simply the newest. One query."""
    newest = visible.order_by("-id").values("id")[: NEWEST if text else RUNS]
    found = visible.filter(pk__in=newest).order_by("-id")
    for word in text.split():
        found = found.filter(Q(run_id__icontains=word) | Q(dag__dag_id__icontains=word))
    return [RunHit(*record) for record in found.values_list("dag_id", "run_id", "state")[:RUNS]]


def _patterns(text: str) -> tuple[str, str, str]:
    """The text itself, its letters with anything between them, its words with anything between them."""
    letters = "%".join(_escaped(letter) for letter in text if not letter.isspace())
    return text.lower(), f"%{letters}%", f"%{'%'.join(_escaped(word) for word in text.split())}%"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
