"""``get_parsing_context``: which DAG is wanted when a file that makes many DAGs is read for one task."""

from __future__ import annotations

from typing import NamedTuple


class ParsingContext(NamedTuple):
    """None: all DAGs are wanted."""

    dag_id: str | None = None
    task_id: str | None = None


_current = ParsingContext()


def get_parsing_context() -> ParsingContext:
    return _current


AirflowParsingContext = ParsingContext
