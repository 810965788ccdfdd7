"""Measurements: whole runs against a database of their own, one JSON line a shape. Never part of the tests."""
