"""Waits on behalf of deferred tasks. ``process.run_triggerer`` is the entry."""
