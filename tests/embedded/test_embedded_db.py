from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import environ
import psutil
import psycopg2
import pytest

from scheduler_app import embedded_db
from scheduler_app.embedded_db import EmbeddedError, Server, binaries, locked, prepare, read_cluster, remove

pytestmark = pytest.mark.processes
ROOT = Path(__file__).resolve().parents[2]
AS_ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """A home folder with a cluster that was made once for this module; its tests leave it stopped."""
    home = Path(tempfile.mkdtemp(prefix="h-"))
    with locked(home):
        prepare(home)
    yield home
    remove(home)
    shutil.rmtree(home)


@pytest.fixture
def server(template: Path) -> Iterator[Server]:
    server = Server(template, durable=False)
    server.start()
    yield server
    server.stop()


def query(home: Path, sql: str) -> list[tuple[object, ...]]:
    settings = embedded_db.django_database(home)
    connection = psycopg2.connect(
        host=settings["HOST"],
        port=settings["PORT"],
        user=settings["USER"],
        password=settings["PASSWORD"],
        dbname=settings["NAME"],
    )
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def test_the_database_of_the_settings_answers(server: Server) -> None:
    assert query(server.home, "SELECT current_database(), current_user") == [("scheduler", "scheduler")]


def test_it_listens_on_a_socket_only_and_wants_the_password(server: Server) -> None:
    assert query(server.home, "SHOW listen_addresses") == [("",)]
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(
            host=server.cluster.socket, port=embedded_db.PORT, user="scheduler", password="guess", dbname="scheduler"
        )


def test_what_is_written_is_durable_unless_the_server_is_a_temporary_one(template: Path) -> None:
    server = Server(template)
    server.start()
    try:
        assert query(template, "SELECT current_setting('fsync'), current_setting('synchronous_commit')") == [
            ("on", "on")
        ]
    finally:
        server.stop()


def test_its_url_is_understood_by_django_and_by_libpq(server: Server) -> None:
    url = embedded_db.url(server.home)
    connection = psycopg2.connect(url)
    assert connection.info.dbname == "scheduler"
    connection.close()
    options = environ.Env.db_url_config(url)
    assert (options["NAME"], options["USER"], options["OPTIONS"]["host"]) == (
        "scheduler",
        "scheduler",
        server.cluster.socket,
    )


def test_data_outlive_a_stop(template: Path) -> None:
    for step in ("CREATE TABLE kept AS SELECT 42 AS answer", "SELECT answer FROM kept", "DROP TABLE kept"):
        server = Server(template, durable=False)
        server.start()
        rows = query(template, step)
        server.stop()
        assert server.process.returncode == 0
        if step.startswith("SELECT a"):
            assert rows == [(42,)]


def test_the_password_is_for_the_owner_only(template: Path) -> None:
    assert stat.S_IMODE((template / "pg/server.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(read_cluster(template).data).stat().st_mode) == 0o700


def test_a_second_start_is_told_who_holds_the_database(template: Path) -> None:
    with locked(template), pytest.raises(EmbeddedError, match=f"Process {os.getpid()} already runs the database"):
        locked(template).__enter__()


def test_the_lock_goes_with_its_holder(template: Path) -> None:
    with locked(template):
        pass
    with locked(template):
        assert (template / "pg/lock").read_text() == str(os.getpid())


def test_a_stale_pid_file_is_no_obstacle_even_if_its_number_lives(template: Path) -> None:
    """As after the restart of a container: the number belongs to another program now."""
    data = Path(read_cluster(template).data)
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        pid_file = data / "postmaster.pid"
        pid_file.write_text(f"{bystander.pid}\n{data}\n0\n5432\n\n\n0 0\nready\n")
        os.chown(pid_file, data.stat().st_uid, data.stat().st_gid)
        server = Server(template, durable=False)
        server.start()
        assert query(template, "SELECT 1") == [(1,)]
        server.stop()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_after_a_crash_the_next_start_recovers_what_was_committed(template: Path) -> None:
    first = Server(template)
    first.start()
    query(template, "CREATE TABLE survivors AS SELECT 7 AS n")
    family = psutil.Process(first.process.pid).children()
    first.process.kill()
    first.process.wait()
    second = Server(template, durable=False)
    second.start()
    assert query(template, "SELECT n FROM survivors") == [(7,)]
    query(template, "DROP TABLE survivors")
    assert psutil.wait_procs(family, timeout=5)[1] == []
    second.stop()


def test_a_server_that_an_earlier_start_left_running_is_ended_first(template: Path) -> None:
    first = Server(template, durable=False)
    first.start()
    second = Server(template, durable=False)
    second.start()
    assert first.process.wait(10) == 0
    assert query(template, "SELECT 1") == [(1,)]
    second.stop()


def test_the_server_ends_by_itself_when_its_starter_is_killed(template: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from scheduler_app.embedded_db import Server\n"
        "server = Server(Path(sys.argv[1]), durable=False); server.start()\n"
        "print(server.process.pid, flush=True); sys.stdin.read()"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", code, str(template)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    postmaster = psutil.Process(int(starter.stdout.readline()))
    starter.kill()
    starter.communicate()
    assert psutil.wait_procs([postmaster], timeout=10)[1] == []


def test_a_cluster_of_another_major_version_is_refused_by_name(template: Path, tmp_path: Path) -> None:
    cluster = read_cluster(template)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/PG_VERSION").write_text("9\n")
    (tmp_path / "pg").mkdir()
    document = {"data": str(tmp_path / "data"), "socket": cluster.socket, "password": "x", "user": cluster.user}
    (tmp_path / "pg/server.json").write_text(json.dumps(document))
    with pytest.raises(EmbeddedError, match=r"was made by PostgreSQL 9, the installed server is \d+\. Install"):
        Server(tmp_path).launch()


def test_a_full_disk_is_named_before_anything_is_written(template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_db, "LEAST_FREE_MB", 2**40)
    with pytest.raises(EmbeddedError, match=r"Only \d+ MB are free at .*; PostgreSQL needs"):
        Server(template).launch()


def test_the_reason_of_a_failed_start_is_what_the_server_said(template: Path) -> None:
    server = Server(template, durable=False)
    server.options = {**server.options, "shared_buffers": "nonsense"}
    with pytest.raises(EmbeddedError, match=r'FATAL: .*invalid value for parameter "shared_buffers"'):
        server.start()


def test_an_interrupted_first_start_is_taken_up_again(tmp_path: Path) -> None:
    cluster = embedded_db._new_cluster(tmp_path)
    draft = Path(cluster.data).with_name("data.new")
    (draft / "base").mkdir()
    try:
        assert prepare(tmp_path) == cluster
        assert Path(cluster.data, "PG_VERSION").exists()
        assert not draft.exists()
    finally:
        remove(tmp_path)


def test_a_lost_server_file_does_not_begin_an_empty_database(tmp_path: Path) -> None:
    (tmp_path / "pg/data").mkdir(parents=True)
    with pytest.raises(EmbeddedError, match=r"server\.json is gone or damaged"):
        prepare(tmp_path)


def test_a_lost_cluster_does_not_begin_an_empty_database(tmp_path: Path) -> None:
    (tmp_path / "pg").mkdir()
    document = {"data": str(tmp_path / "gone"), "socket": "s", "password": "x"}
    (tmp_path / "pg/server.json").write_text(json.dumps(document))
    with pytest.raises(EmbeddedError, match="which is gone"):
        prepare(tmp_path)


def test_a_socket_path_that_is_too_long_goes_to_the_temporary_folder() -> None:
    assert embedded_db._socket_folder(Path("/srv")) == Path("/srv/socket")
    long = embedded_db._socket_folder(Path("/srv", "x" * 100))
    assert long.parent == Path("/tmp")
    assert len(os.fsencode(long)) <= embedded_db.SOCKET_FOLDER_BYTES


@pytest.mark.skipif(not AS_ROOT, reason="only root runs the server as somebody else")
def test_as_root_below_a_closed_folder_nothing_is_opened(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    home = closed / "a home"
    home.mkdir(parents=True)
    closed.chmod(0o700)
    before = [(folder, stat.S_IMODE(folder.stat().st_mode)) for folder in (home, *home.parents)]
    server = Server(home, durable=False)
    try:
        server.start()
        assert Path(server.cluster.data).is_relative_to(embedded_db.ROOTS_PLACE)
        assert psutil.Process(server.process.pid).username() in ("postgres", "nobody")
        assert [(folder, stat.S_IMODE(folder.stat().st_mode)) for folder, _ in before] == before
    finally:
        server.stop()
        remove(home)
    assert not Path(server.cluster.data).parent.exists()


@pytest.mark.skipif(not AS_ROOT, reason="only root needs the copy")
def test_binaries_that_the_user_cannot_reach_are_copied_for_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(embedded_db, "_reachable", lambda path: False)
    user = pwd.getpwnam("nobody")
    folder = binaries(embedded_db.Cluster(data=str(tmp_path / "none"), socket="", password="", user="nobody"))
    assert folder.is_relative_to(embedded_db.ROOTS_PLACE)
    for program in ("postgres", "initdb"):
        said = subprocess.run(
            [folder / program, "--version"], user=user.pw_uid, group=user.pw_gid, extra_groups=[], capture_output=True
        )
        assert said.stdout.startswith(f"{program} (PostgreSQL)".encode()), said.stderr


def outside() -> dict[str, str]:
    """The environment of a command that is not run with a temporary server, as these tests themselves may be."""
    return {key: value for key, value in os.environ.items() if key != embedded_db.NESTED}


def test_a_temporary_server_within_another_is_refused() -> None:
    """A command that starts itself again with a server, since it sees no DATABASE_URL, would never end."""
    command = [sys.executable, "-m", "scheduler_app.embedded_db"]
    done = subprocess.run([*command, *command, "true"], cwd=ROOT, env=outside(), capture_output=True, text=True)
    assert done.returncode == 2
    assert "A temporary server is running already" in done.stderr


def test_a_command_runs_with_a_temporary_server_that_is_gone_after_it() -> None:
    code = (
        "import os, sys; from pathlib import Path; from scheduler_app import embedded_db\n"
        "print(os.environ['SCHEDULER_HOME'], embedded_db.read_cluster(Path(os.environ['SCHEDULER_HOME'])).data)\n"
        "sys.exit(7)"
    )
    command = [sys.executable, "-m", "scheduler_app.embedded_db", sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=outside(), capture_output=True, text=True)
    assert done.returncode == 7, done.stderr
    home, data = done.stdout.split()
    assert not Path(home).exists()
    assert not Path(data).exists()


def test_a_terminated_command_takes_the_temporary_server_with_it() -> None:
    code = "import os; print(os.environ['SCHEDULER_HOME'], flush=True); input()"
    command = [sys.executable, "-m", "scheduler_app.embedded_db", sys.executable, "-c", code]
    process = subprocess.Popen(
        command, cwd=ROOT, env=outside(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    home = Path(process.stdout.readline().strip())
    family = psutil.Process(process.pid).children(recursive=True)
    assert "postgres" in {one.name() for one in family}
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 143
    assert psutil.wait_procs(family, timeout=5)[1] == []
    assert not home.exists()
