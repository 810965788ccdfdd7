"""What of variables and connections is not shown: values whose name sounds like a secret become ``***``."""

from __future__ import annotations

import json
from typing import Any

MASK = "***"
#: A name that holds one of these is a secret's.
WORDS = (
    "access_key",
    "access_token",
    "api_key",
    "apikey",
    "authorization",
    "keyfile_dict",
    "passphrase",
    "passwd",
    "password",
    "private_key",
    "proxies",
    "proxy",
    "secret",
    "service_account",
    "token",
)


def sensitive(name: str) -> bool:
    lowered = name.strip().lower()
    return any(word in lowered for word in WORDS)


def is_mask(value: Any) -> bool:
    return value == MASK


def variable(key: str, value: str) -> str:
    """A variable's value as it may be shown: masked whole, or inside when it is a JSON object with secret keys."""
    return MASK if sensitive(key) else _inside(value)


def extra(value: str | None) -> str | None:
    """A connection's extra: masked inside when it is JSON, whole when it is not."""
    if not value:
        return value
    try:
        document = json.loads(value)
    except ValueError:
        return MASK
    return json.dumps(redacted(document))


def redacted(value: Any) -> Any:
    """A JSON value with every value under a secret's name masked."""
    if isinstance(value, dict):
        return {key: MASK if sensitive(str(key)) and item else redacted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [redacted(item) for item in value]
    return value


def unmasked(new: Any, old: Any) -> Any:
    """A JSON value that came back from a client, with each mask replaced by what it stood for."""
    if is_mask(new):
        return old
    if isinstance(new, dict) and isinstance(old, dict):
        return {key: unmasked(item, old.get(key)) for key, item in new.items()}
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [unmasked(item, before) for item, before in zip(new, old, strict=True)]
    return new


def _inside(value: str) -> str:
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return value
    if not isinstance(document, dict | list):
        return value
    shown = redacted(document)
    return value if shown == document else json.dumps(shown)
