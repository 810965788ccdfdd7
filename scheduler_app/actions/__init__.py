"""Every write that a person, a task or a backfill can ask for: one transaction each, audited, through ``transitions``.

Each takes an ``access.Actor`` and ``now``, checks what the actor may, and raises an error of :mod:`.errors`.
"""
