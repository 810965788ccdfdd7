"""Secrets at rest: the key files of the home folder, and the encryption of what the database keeps."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from .conf import conf

log = logging.getLogger(__name__)


class SecretError(Exception):
    """A stored secret cannot be written or read; the message says what to set."""


def encrypt(text: str) -> str:
    """The Fernet token of a text, under the newest key. Raises SecretError when no key is set."""
    return _fernet(conf().fernet_keys).encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """The text of a token. Raises SecretError when none of the keys made it."""
    try:
        return _fernet(conf().fernet_keys).decrypt(token.encode()).decode()
    except InvalidToken as error:
        raise SecretError(
            "A stored secret was encrypted with another key. Add that key to the end of SCHEDULER_FERNET_KEYS."
        ) from error


def readable(token: str) -> str | None:
    """As :func:`decrypt`, for lists: None, and a line in the log, for a token that none of the keys made."""
    try:
        return decrypt(token)
    except SecretError as error:
        log.warning("%s", error)
        return None


@lru_cache(maxsize=4)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    if not keys:
        raise SecretError("No Fernet key is set. Set SCHEDULER_FERNET_KEYS, or start bin/run, which makes one.")
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError as error:
        raise SecretError("A key in SCHEDULER_FERNET_KEYS is no Fernet key (32 bytes, URL-safe base64).") from error


def read_or_create(path: Path, create: Callable[[], str]) -> tuple[str, bool]:
    """The secret kept in a file (mode 0600), and whether it was made just now.

    Two starts at once end with the same secret: the file appears whole, under its name, or not at all.
    """
    try:
        return path.read_text().strip(), False
    except FileNotFoundError:
        pass
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(create() + "\n")
        try:
            os.link(draft, path)
        except FileExistsError:
            return path.read_text().strip(), False
        return path.read_text().strip(), True
    finally:
        draft.unlink()
