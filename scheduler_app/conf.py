"""Every knob of the scheduler: its default, its unit (in its name) and what it does.

``Conf`` is filled from ``settings.SCHEDULER``, a dict whose keys are the field names below. In the bundled project each
field can also be set by the environment variable ``SCHEDULER_<FIELD IN CAPITALS>`` (``settings.py`` does that), and
``docs/settings.md`` is written from this file. To add a knob, add one line.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

#: Variables of our environment that no user code may see; ``supervisor/`` takes them out of a child's environment.
SECRET_ENVIRONMENT = (
    "DATABASE_URL",
    "SCHEDULER_SECRET_KEY",
    "SCHEDULER_FERNET_KEYS",
    "SCHEDULER_ADMIN_PASSWORD",
    "SCHEDULER_CELERY_BROKER_URL",
    "SCHEDULER_METRICS_TOKEN",
    "SCHEDULER_EMAIL_URL",
    "PROMETHEUS_MULTIPROC_DIR",
    "SCHEDULER_TEST_DATABASE",
    "DJANGO_SETTINGS_MODULE",
)


def knob(default: Any, doc: str, *, least: float | None = None, secret: bool = False) -> Any:
    """A field of :class:`Conf`: its default, one sentence, the least value allowed, and whether it may be shown."""
    return dataclasses.field(default=default, repr=not secret, metadata={"doc": doc, "least": least})


#: Kinds of files that DAG files read beside their modules.
BUNDLE_SUFFIXES = (
    *(".py", ".sql", ".hql", ".sh", ".bash", ".txt", ".md", ".html", ".j2", ".jinja", ".jinja2"),
    *(".json", ".yaml", ".yml", ".toml", ".ini", ".cfg"),
)


@dataclass(frozen=True)
class Conf:
    # Places
    home: Path = knob(Path(".scheduler"), "Folder of everything that is kept on this machine.")
    dags_folder: Path = knob(Path(".scheduler/dags"), "Folder with the DAG files (default: dags in home).")
    log_folder: Path = knob(Path(".scheduler/logs"), "Folder of the logs of task attempts (default: logs in home).")
    load_examples: bool = knob(True, "Whether the example DAGs are loaded too.")
    database_alias: str = knob("default", "Key in DATABASES of the database that holds the scheduler's tables.")

    # Web server
    host: str = knob("127.0.0.1", "Address on which the web server of `bin/run` listens.")
    port: int = knob(8080, "Port on which the web server of `bin/run` listens.", least=1)
    web_threads: int = knob(8, "Threads of the web server of `bin/run`.", least=1)

    # Scheduler
    idle_poll_seconds: float = knob(1.0, "Longest sleep of an idle scheduler when no notification comes.", least=0.01)
    executor: str = knob(
        "LocalExecutor", "Executors of a scheduler, separated by commas; the first one runs tasks that name none."
    )
    full_pause_seconds: float = knob(
        0.02, "Longest wait of the loop, while every slot is taken, for a quarter of them to be freed.", least=0
    )
    parallelism: int = knob(32, "Task attempts that one local executor runs at once.", least=1)
    max_tis_per_query: int = knob(512, "Task instances that one tick considers for hand-out.", least=1)
    max_runs_per_tick: int = knob(512, "Runs that one tick looks at.", least=1)
    heartbeat_seconds: float = knob(5.0, "Time between two heartbeats of a scheduler, processor or runner.", least=0.1)
    lease_seconds: float = knob(30.0, "Time without a heartbeat after which a process counts as dead.", least=1)
    task_heartbeat_timeout_seconds: float = knob(
        60.0, "Time without a heartbeat after which a running task instance counts as lost.", least=1
    )
    queued_timeout_seconds: float = knob(600.0, "Time that a hand-out may wait to be started.", least=1)
    max_active_tasks_per: Literal["run", "dag"] = knob(
        "run", "What max_active_tasks of a DAG limits: each run by itself (run), or all its runs together (dag)."
    )
    timed_out_running_tasks: Literal["skipped", "failed"] = knob(
        "skipped", "What the running tasks of a run become that took longer than its dagrun_timeout: skipped or failed."
    )
    priority_ageing_seconds: float = knob(
        0.0, "Time of waiting for a slot that counts as one more of priority; 0: waiting changes nothing.", least=0
    )
    wide_task_wait_seconds: float = knob(
        60.0, "Time after which the free slots of a pool are kept for a task that needs several of them.", least=0
    )
    runs_follow_newest_version: bool = knob(
        True, "Whether a running run moves to the newest version of its DAG; else it ends with the one it began with."
    )
    use_job_schedule: bool = knob(True, "Whether runs are made by schedules; off: by people, assets and tasks alone.")
    check_slas: bool = knob(True, "Whether new runs get the SLAs of their tasks.")
    allow_future_logical_dates: bool = knob(False, "Whether a run with a logical date in the future may execute.")
    metrics_port: int = knob(
        0,
        "Port on which runscheduler, rundagprocessor or runtriggerer serves its own metrics; 0 is none. (`/metrics` of "
        "the web server shows the processes that `bin/run` started.)",
        least=0,
    )
    metrics_host: str = knob(
        "127.0.0.1", "Address of that port; another one than this machine's own needs the metrics token."
    )
    sweep_seconds: float = knob(300.0, "Time between two sweeps for work that no wake announced.", least=1)

    task_state_days: int = knob(
        30,
        "Days that a value in a task's state store is kept when the task does not say; 0 is for as long as its run.",
        least=0,
    )

    # Defaults of DAGs
    max_active_tasks_per_dag: int = knob(16, "Active tasks of a DAG's run when the file does not say.", least=1)
    max_active_runs_per_dag: int = knob(16, "Running runs of a DAG when the file does not say.", least=1)
    dags_are_paused_at_creation: bool = knob(True, "Whether a new DAG is paused until a person unpauses it.")
    default_timezone: str = knob("UTC", "Zone of DAGs that name none.")

    # DAG processor
    dag_dir_scan_seconds: float = knob(5.0, "Time between two looks at the files of the DAG folder.", least=0.1)
    parse_timeout_seconds: float = knob(50.0, "Time that the import of one DAG file may take.", least=0.1)
    parse_memory_mb: int = knob(2048, "Memory that the import of one DAG file may take; 0 is no limit.", least=0)
    parse_processes: int = knob(2, "DAG files that are parsed at once.", least=1)
    reparse_seconds: float = knob(
        300.0,
        "Age at which an unchanged DAG file is parsed again, for files that read other data; 0 is never. Stretched so "
        "that it takes at most a twentieth of one process.",
        least=0,
    )
    dag_ignore_file_syntax: str = knob("glob", "How .airflowignore is read: glob or regexp.")
    dag_discovery_safe_mode: bool = knob(
        True, "Whether only files that mention airflow, and dag or asset, are parsed as DAG files."
    )
    bundle_suffixes: tuple[str, ...] = knob(
        BUNDLE_SUFFIXES,
        "Files of the DAG folder that are kept with each of its versions, by the end of their names.",
    )

    # Callbacks
    callback_timeout_seconds: float = knob(300.0, "Time that one callback of a DAG or task may take.", least=0.1)
    callback_attempts: int = knob(3, "Times that a callback is tried before it is given up.", least=1)
    callback_retry_seconds: float = knob(10.0, "Wait before the second try of a callback; it doubles.", least=0)
    callbacks_on_mark: bool = knob(
        False, "Whether a task or run that a person marks asks for its callbacks, as one that ends by itself does."
    )
    callback_processes: int = knob(2, "Callbacks that one DAG processor runs at once.", least=1)

    # Mail
    mail_timeout_seconds: float = knob(20.0, "Time that the mail server may take to answer.", least=0.1)
    mail_attempts: int = knob(6, "Times that a mail is tried before it is given up.", least=1)
    mail_retry_seconds: float = knob(30.0, "Wait before the second try of a mail; it doubles.", least=0)
    base_url: str = knob("", "Address of the dashboard (https://host/path), for links in mails; empty: no links.")

    # Triggers
    triggerer_capacity: int = knob(1000, "Triggers that one triggerer holds at once.", least=1)

    # Attempts
    task_heartbeat_seconds: float = knob(5.0, "Time between two heartbeats of a runner for its attempts.", least=0.1)
    zygote_memory_mb: int = knob(512, "Memory for idle processes that keep a DAG file imported.", least=0)
    zygote_max_age_seconds: float = knob(
        300.0, "Age from which a DAG file is imported again before its next attempt: it may read other data.", least=0
    )
    kill_grace_seconds: float = knob(15.0, "Time from SIGTERM to SIGKILL for a task that must stop.", least=0)
    shutdown_grace_seconds: float = knob(
        10.0,
        "Time that running tasks get to end by themselves when the scheduler whose local executor runs them is told to "
        "stop (SIGTERM); what still runs then is interrupted.",
        least=0,
    )
    interrupted_tasks: Literal["with_retries", "all", "none"] = knob(
        "with_retries",
        "Which tasks begin again when a shutdown interrupted them, on a try that they get beyond their retries: those "
        "with retries, whose authors say by them that they may run twice, all, or none (it counts as a failed try).",
    )
    task_memory_mb: int = knob(
        0, "Memory that a task may take in each of its processes, beyond its imported DAG file; 0 is no limit.", least=0
    )
    task_cpu_seconds: int = knob(0, "CPU time that a task may take in each of its processes; 0 is no limit.", least=0)
    task_open_files: int = knob(0, "Files that each process of a task may have open; 0 is no limit.", least=0)
    max_message_mb: int = knob(64, "Largest message between a task and its supervisor.", least=1)
    task_django_settings_module: str = knob(
        "", "Settings module of your own Django project, set up for DAG files and tasks that use its models."
    )
    task_user: str = knob("", "System user that runs user code; empty is the scheduler's own user.")

    # Celery
    celery_worker_slots: int = knob(
        16, "Task attempts that one Celery worker runs at once when it has no --concurrency.", least=1
    )
    celery_shutdown_grace_seconds: float = knob(
        0.0,
        "Time that running tasks get to end by themselves when a Celery worker is told to stop (SIGTERM); what still "
        "runs then is interrupted. 0: as long as they take.",
        least=0,
    )
    celery_publish_timeout_seconds: float = knob(
        5.0, "Time that the broker may take to answer the scheduler; then the message is sent again.", least=0.1
    )
    celery_visibility_timeout_seconds: int = knob(
        3600,
        "Redis: time after which a message that no worker has acknowledged is delivered again. A message is "
        "acknowledged when its task starts, so a long task needs no longer one.",
        least=1,
    )
    worker_sources: Literal["database", "folder"] = knob(
        "database",
        "Where a Celery worker takes DAG files from: the database (it needs no shared folder), or the same path of the "
        "DAG folder as on the DAG processor's machine.",
    )

    # Logs
    log_store: str = knob(
        "",
        "Where logs of tasks are kept besides the machine that writes them: a URL of fsspec (s3://bucket/logs, "
        "gs://bucket/logs, file:///mnt/logs; its driver, s3fs or gcsfs, must be installed), or database. Empty: Celery "
        "workers use the database, others keep theirs.",
    )
    log_upload_seconds: float = knob(3.0, "Time between two pieces of a log that grows.", least=0.1)
    log_database_mb: int = knob(16, "Most of one log that is kept in the database.", least=1)
    log_days: int = knob(90, "Days that logs are kept, here and in the log store; 0 is for ever.", least=0)
    bundle_days: int = knob(
        30, "Days that a version of the DAG folder is kept which no DAG and no run refers to; 0 is for ever.", least=0
    )
    callback_days: int = knob(30, "Days that callbacks which have ended are kept; 0 is for ever.", least=0)
    job_days: int = knob(30, "Days that rows of processes which have ended are kept; 0 is for ever.", least=0)
    deadline_days: int = knob(90, "Days that missed deadlines and SLAs are kept; 0 is for ever.", least=0)
    asset_event_days: int = knob(
        0, "Days that asset events are kept which every DAG has taken that waits for them; 0 is for ever.", least=0
    )
    audit_days: int = knob(0, "Days that the audit is kept; 0 is for ever.", least=0)

    # Secrets
    fernet_keys: tuple[str, ...] = knob((), "Keys for stored secrets, newest first.", secret=True)
    metrics_token: str = knob(
        "", "Bearer token with which /metrics, and the metrics of single processes, may be read.", secret=True
    )
    celery_broker_url: str = knob(
        "", "Broker of the Celery executor: amqp://user:password@host:5672// or redis://host:6379/0.", secret=True
    )

    # API
    basic_auth: bool = knob(False, "Whether the API takes a user name and password with each request (HTTP Basic).")
    token_seconds: int = knob(86_400, "Life of a token of POST /auth/token.", least=1)
    cli_token_seconds: int = knob(3_600, "Life of a token of POST /auth/token/cli.", least=1)
    login_failures: int = knob(
        10, "Failed logins of one name from one address, within login_failure_seconds, until more are refused.", least=1
    )
    login_failure_seconds: int = knob(300, "Time over which failed logins are counted.", least=1)
    api_page_limit: int = knob(100, "Most rows of one page of an API list.", least=1)
    action_task_instances: int = knob(
        20_000, "Most task instances that one action of a person may clear, mark, note or delete.", least=1
    )
    dag_access: str = knob(
        "", "Dotted path of a function (actor, verb) -> Q or None over DAGs: who may see and change which."
    )

    # Standalone
    stop_seconds: float = knob(
        20.0,
        "Time that a component of `bin/run` gets to stop, beyond shutdown_grace_seconds, before it is killed.",
        least=1,
    )

    @property
    def executors(self) -> tuple[str, ...]:
        """The names in ``executor``, the default one first."""
        return tuple(name.strip() for name in self.executor.split(",") if name.strip()) or ("LocalExecutor",)


def from_mapping(values: Mapping[str, Any]) -> Conf:
    """The knobs of a ``settings.SCHEDULER`` dict. Raises ImproperlyConfigured for a key that does not exist."""
    specs = {spec.name: spec for spec in dataclasses.fields(Conf)}
    for name in values:
        if name not in specs:
            near = difflib.get_close_matches(name, specs, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ImproperlyConfigured(f"SCHEDULER has no setting {name!r}.{hint} docs/settings.md lists them.")
    filled = dict(values)
    home = Path(filled.setdefault("home", specs["home"].default))
    filled.setdefault("dags_folder", home / "dags")
    filled.setdefault("log_folder", home / "logs")
    for name in ("home", "dags_folder", "log_folder"):
        filled[name] = Path(filled[name])
    return Conf(**filled)


_cached: tuple[Any, Conf] | None = None


def conf() -> Conf:
    """The knobs in force. Follows ``override_settings(SCHEDULER={…})``."""
    global _cached
    source = getattr(settings, "SCHEDULER", None)
    if _cached is None or _cached[0] is not source:
        _cached = (source, from_mapping(source or {}))
    return _cached[1]
