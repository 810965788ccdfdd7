"""Mail addresses as DAG files give them."""

from __future__ import annotations

import re
from collections.abc import Iterable


def addresses(given: str | Iterable[str] | None) -> list[str]:
    """One address, several in a text (separated by ``,`` or ``;``), or a list of either; each once, in their order."""
    texts = [given] if isinstance(given, str) else list(given or ())
    found = (part.strip() for text in texts for part in re.split("[,;]", str(text)))
    return list(dict.fromkeys(part for part in found if part))
