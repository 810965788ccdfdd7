"""``ilike``: PostgreSQL's ILIKE with the caller's own ``%`` and ``_``, which Django's ``icontains`` would escape."""

from __future__ import annotations

from typing import Any

from django.db.models import CharField, Lookup, TextField


@CharField.register_lookup
@TextField.register_lookup
class ILike(Lookup):  # type: ignore[type-arg]
    lookup_name = "ilike"

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        left, left_params = self.process_lhs(compiler, connection)
        right, right_params = self.process_rhs(compiler, connection)
        return f"{left} ILIKE {right}", [*left_params, *right_params]
