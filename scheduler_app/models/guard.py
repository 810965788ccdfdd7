"""A database trigger for tests and CI: no state changes but by a legal move of the writer (design decision 4).

Each move writes its verb into ``moved_by``. The trigger refuses a change of ``state`` whose verb, source and target are
not in the table of ``engine.states``: a stray ``UPDATE … SET state`` leaves the old verb behind and is found out.
"""

from __future__ import annotations

from scheduler_app.engine import states

from . import db

_INSTALL = """
CREATE TABLE IF NOT EXISTS scheduler_legal_move (
    kind text, verb text, source text, target text, PRIMARY KEY (kind, verb, source, target)
);
CREATE OR REPLACE FUNCTION scheduler_guard_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM scheduler_legal_move
        WHERE kind = TG_ARGV[0] AND verb = NEW.moved_by
          AND source = coalesce(OLD.state, 'none') AND target = coalesce(NEW.state, 'none')
    ) THEN
        RAISE EXCEPTION 'illegal move of % %: % -> % by %', TG_ARGV[0], OLD.id,
            coalesce(OLD.state, 'none'), coalesce(NEW.state, 'none'), NEW.moved_by;
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER scheduler_guard BEFORE UPDATE OF state ON scheduler_task_instance
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION scheduler_guard_state('task');
CREATE OR REPLACE TRIGGER scheduler_guard BEFORE UPDATE OF state ON scheduler_dag_run
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION scheduler_guard_state('run');
"""


def install() -> None:
    """Creates the triggers and fills their table from ``engine.states``."""
    moves = [
        (kind, verb, source or "none", target or "none")
        for kind, tables in (
            ("task", (states.TASK_VERBS, states.TASK_ACTIONS)),
            ("run", (states.RUN_VERBS, states.RUN_ACTIONS)),
        )
        for table in tables
        for verb, (sources, target) in table.items()  # type: ignore[attr-defined]
        for source in sources
    ]
    db.execute(_INSTALL)
    db.execute("DELETE FROM scheduler_legal_move")
    db.execute(
        "INSERT INTO scheduler_legal_move SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])",
        [list(column) for column in zip(*moves, strict=True)],
    )
