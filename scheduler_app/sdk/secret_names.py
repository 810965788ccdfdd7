"""Which names promise a secret: the values of such variables and connection extras are hidden in the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

SENSITIVE: tuple[str, ...] = (
    "access_token",
    "api_key",
    "apikey",
    "authorization",
    "keyfile_dict",
    "passphrase",
    "passwd",
    "password",
    "private_key",
    "secret",
    "service_account",
    "token",
)


def is_sensitive(name: str) -> bool:
    lowered = name.strip().lower()
    return any(word in lowered for word in SENSITIVE)


def secrets_in(value: Any, name: str = "") -> Iterator[str]:
    """The texts in a JSON value whose own name, or that of something around them, is sensitive."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from secrets_in(item, str(key) if not is_sensitive(name) else name)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from secrets_in(item, name)
    elif isinstance(value, str) and value and is_sensitive(name):
        yield value
