"""The "did you mean …" of every error about a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """A sentence with a leading blank that names the closest known name, or nothing when none is close."""
    import difflib  # only when something is wrong already

    close = difflib.get_close_matches(wrong, list(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""
