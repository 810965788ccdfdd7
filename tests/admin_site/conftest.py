"""The same clients and clock as the pages have."""

from __future__ import annotations

from tests.ui.conftest import _clock, admin

__all__ = ["_clock", "admin"]
