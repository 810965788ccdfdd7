from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import CommandError, call_command

from scheduler_app.standalone import bootstrap, start
from scheduler_app.standalone.components import COMPONENTS
from scheduler_app.standalone.prepare import NotPossible, prepare, require_port


@pytest.fixture
def home(tmp_path: Path, settings) -> Path:
    """A home folder on a free port, with a database that is not ours to start."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings.SCHEDULER = {"home": tmp_path / "home", "port": port}
    settings.ADMIN_PASSWORD_FILE = tmp_path / "home/admin_password"
    settings.ADMIN_PASSWORD = ""
    settings.EMBEDDED_DATABASE = False
    return tmp_path / "home"


def test_folders_and_keys_are_made_once_and_only_for_their_owner(home: Path) -> None:
    prepare()
    kept = {name: (home / name).read_text() for name in ("secret_key", "fernet_key", "admin_password")}
    assert {stat.S_IMODE((home / name).stat().st_mode) for name in kept} == {0o600}
    assert (home / "dags").is_dir()
    assert (home / "logs").is_dir()
    prepare()
    assert {name: (home / name).read_text() for name in kept} == kept


def test_a_given_admin_password_is_the_one_that_is_kept(home: Path, settings) -> None:
    settings.ADMIN_PASSWORD = "chosen by a person"
    prepare()
    assert (home / "admin_password").read_text() == "chosen by a person\n"


def test_a_taken_port_is_named_before_anything_is_made(home: Path, settings) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", settings.SCHEDULER["port"]))
        taken.listen()
        with pytest.raises(NotPossible, match=r"cannot listen on 127\.0\.0\.1, port \d+: .* Nothing was started"):
            prepare()
    assert not (home / "secret_key").exists()


def test_an_address_that_is_not_ours_is_named() -> None:
    with pytest.raises(NotPossible, match=r"cannot listen on 192\.0\.2\.1"):
        require_port("192.0.2.1", 8080)


def test_a_home_that_cannot_be_made_is_named(home: Path, settings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings.SCHEDULER = {"home": tmp_path / "file" / "home"}
    with pytest.raises(NotPossible, match="cannot be made: Not a directory"):
        prepare()


def test_standalone_without_bin_run_says_so(home: Path, settings) -> None:
    settings.EMBEDDED_DATABASE = True
    with pytest.raises(CommandError, match=r"is not prepared\. Start bin/run"):
        call_command("standalone", skip_checks=True)


def test_every_component_of_the_table_can_be_loaded() -> None:
    assert [component.name for component in COMPONENTS if not callable(component.load())] == []
    assert start.DATABASE.load().__name__ == "Server"


@pytest.mark.django_db
def test_the_admin_user_is_made_once_and_keeps_a_password_that_a_person_changed(home: Path) -> None:
    prepare()
    password = bootstrap.ensure_admin()
    assert password == (home / "admin_password").read_text().strip()
    admin = authenticate(username="admin", password=password)
    assert admin is not None
    assert admin.is_superuser
    admin.set_password("changed by a person")
    admin.save()
    assert bootstrap.ensure_admin() is None
    assert authenticate(username="admin", password="changed by a person") is not None
    assert get_user_model().objects.count() == 1


@pytest.mark.django_db
def test_a_password_of_the_environment_holds_at_each_start(home: Path, settings) -> None:
    prepare()
    bootstrap.ensure_admin()
    settings.ADMIN_PASSWORD = "from the environment"
    assert bootstrap.ensure_admin() is None
    assert authenticate(username="admin", password="from the environment") is not None


@pytest.mark.django_db
def test_a_schema_that_is_up_to_date_is_left_alone(home: Path) -> None:
    assert bootstrap.migrate() is False
