"""A page of a long list, without counting the list."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import Model, QuerySet

_Row = TypeVar("_Row", bound=Model)


def page_slice(rows: QuerySet[_Row], page: int, size: int) -> tuple[list[_Row], bool]:
    """The rows of a page, counted from 1, and whether there are more after them. One query."""
    start = (page - 1) * size
    found = list(rows[start : start + size + 1])
    return found[:size], len(found) > size
