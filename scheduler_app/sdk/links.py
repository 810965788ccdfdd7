"""Links that operators show beside their task instances."""

from __future__ import annotations

from typing import Any


class BaseOperatorLink:
    """Override :attr:`name` and :meth:`get_link`."""

    operators: list[Any] = []

    @property
    def name(self) -> str:
        raise NotImplementedError(f"{type(self).__name__} has no name: define it.")

    @property
    def xcom_key(self) -> str:
        """Where the address is kept once the task ran."""
        return f"_link_{type(self).__name__}"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        raise NotImplementedError(f"{type(self).__name__} has no get_link(): define it.")
