from __future__ import annotations

import stat

import pytest
from cryptography.fernet import Fernet

from scheduler_app.secrets import SecretError, decrypt, encrypt, read_or_create


def test_a_secret_comes_back_and_is_not_stored_in_the_clear(settings) -> None:
    settings.SCHEDULER = {"fernet_keys": (Fernet.generate_key().decode(),)}
    token = encrypt("päss")
    assert "päss" not in token
    assert decrypt(token) == "päss"


def test_an_old_key_still_reads_and_the_newest_writes(settings) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.SCHEDULER = {"fernet_keys": (old,)}
    token = encrypt("kept")
    settings.SCHEDULER = {"fernet_keys": (new, old)}
    assert decrypt(token) == "kept"
    written = encrypt("fresh")
    settings.SCHEDULER = {"fernet_keys": (new,)}
    assert decrypt(written) == "fresh"
    with pytest.raises(SecretError, match="Add that key to the end of SCHEDULER_FERNET_KEYS"):
        decrypt(token)


def test_without_a_key_the_message_says_what_to_set(settings) -> None:
    settings.SCHEDULER = {}
    with pytest.raises(SecretError, match="Set SCHEDULER_FERNET_KEYS"):
        encrypt("x")


def test_something_that_is_no_key_is_named(settings) -> None:
    settings.SCHEDULER = {"fernet_keys": ("short",)}
    with pytest.raises(SecretError, match="is no Fernet key"):
        encrypt("x")


def test_a_key_file_is_made_once_and_only_for_its_owner(tmp_path) -> None:
    path = tmp_path / "secret_key"
    assert read_or_create(path, lambda: "first") == ("first", True)
    assert read_or_create(path, lambda: "second") == ("first", False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [item.name for item in tmp_path.iterdir()] == ["secret_key"]


def test_two_starts_at_once_end_with_the_same_secret(tmp_path) -> None:
    path = tmp_path / "secret_key"

    def slow() -> str:
        path.write_text("quick\n")  # while this start makes its secret, another one has finished
        return "slow"

    assert read_or_create(path, slow) == ("quick", False)
    assert path.read_text() == "quick\n"
