"""Triggers: what a deferred task waits for; one file a family, with ``base`` for authors."""
