"""What a task finds in its process: nothing of ours, everything of the user's."""

from __future__ import annotations

import logging
import os
import signal
import sys
import warnings
from typing import Any

import pytest

from border.conftest import Stage
from scheduler_app import process_tree
from scheduler_app.sdk import scope
from scheduler_app.sdk.runtime import has_port
from scheduler_app.usercode import rehearsal

pytestmark = pytest.mark.processes


@pytest.fixture
def environ() -> dict[str, str]:
    secrets = (
        "DATABASE_URL",
        "SCHEDULER_SECRET_KEY",
        "SCHEDULER_FERNET_KEYS",
        "SCHEDULER_ADMIN_PASSWORD",
        "SCHEDULER_CELERY_BROKER_URL",
        "DJANGO_SETTINGS_MODULE",
        "DJANGO_SECRET",
        "PGPASSWORD",
    )
    return {**os.environ, **dict.fromkeys(secrets, "our secret"), "MY_OWN": "the user's"}


def test_neither_our_modules_nor_our_secrets_are_there_but_the_users_variables_are(stage: Stage) -> None:
    stage.write(
        """
        @task
        def look():
            with open("/proc/self/environ") as file:
                before = file.read()
            found = {name.partition(".")[0] for name in sys.modules}
            return {
                "modules": sorted(found & {"django", "psycopg2", "celery", "rest_framework"}),
                "secret": [name for name, value in os.environ.items() if value == "our secret"],
                "in the kernel's copy": before.count("our secret"),
                "own": os.environ["MY_OWN"],
                "stdin": sys.stdin.read(),
                "threads": threading.active_count(),
            }
        look()
        """
    )
    assert stage.perform("look").result == {
        "modules": [],
        "secret": [],
        "in the kernel's copy": 0,
        "own": "the user's",
        "stdin": "",
        "threads": 1,
    }


def test_an_attempt_holds_no_file_of_its_zygote(stage: Stage) -> None:
    stage.write(
        """
        @task
        def look():
            links = []
            for fd in os.listdir("/proc/self/fd"):
                try:
                    links.append(os.readlink(f"/proc/self/fd/{fd}").partition(":")[0])
                except OSError:
                    pass
            return sorted(os.path.basename(link) for link in links)
        look()
        """
    )
    # standard input, two pipes, the log and the wire; the directory that is being listed is gone again
    assert stage.perform("look").result == ["look.log", "null", "pipe", "pipe", "socket"]


def test_an_attempt_leads_a_session_of_its_own(stage: Stage) -> None:
    stage.write(
        """
        @task
        def look():
            return [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()]
        look()
        """
    )
    assert stage.perform("look").result == [True, True]


def test_siblings_draw_different_random_numbers(stage: Stage) -> None:
    stage.write(
        """
        random.seed(1)
        @task
        def draw():
            return random.random()
        draw()
        """
    )
    assert stage.perform("draw").result != stage.perform("draw").result


def test_every_way_to_print_reaches_the_log_with_its_level(stage: Stage) -> None:
    stage.write(
        """
        @task
        def talk():
            print("printed")
            print("to stderr", file=sys.stderr)
            logging.getLogger("mine").warning("logged %s", 1)
            sys.stdout.buffer.write(b"as bytes\\n")
            sys.stdout.buffer.flush()
            subprocess.run("echo from a child; echo its error >&2", shell=True, check=True)
            os.write(1, b"to the descriptor")
            print("without an end", end="")
        talk()
        """
    )
    stage.perform("talk")
    found = {(line["level"], line["logger"], line["event"]) for line in stage.log("talk")}
    assert found >= {
        ("info", "task.stdout", "printed"),
        ("error", "task.stderr", "to stderr"),
        ("warning", "mine", "logged 1"),
        ("info", "task.stdout", "as bytes"),
        ("info", "task.stdout", "from a child"),
        ("error", "task.stderr", "its error"),
        ("info", "task.stdout", "to the descriptor"),
        ("info", "task.stdout", "without an end"),
    }


def test_masked_secrets_reach_the_log_by_no_way(stage: Stage) -> None:
    stage.write(
        """
        from airflow.sdk.log import mask_secret
        @task
        def leak():
            mask_secret("hunter2")
            print("printed hunter2")
            logging.getLogger("mine").info("logged %s", "hunter2")
            subprocess.run("echo child hunter2", shell=True, check=True)
            raise RuntimeError("raised hunter2")
        leak()
        """
    )
    seen = stage.perform("leak")
    assert seen.outcome["error"]["message"] == "raised ***"
    assert "hunter2" not in str([message for message in seen.messages if message["op"] != "mask_secret"])
    text = (stage.folder / "leak.log").read_text()
    assert "hunter2" not in text
    assert all(f"{way} ***" in text for way in ("printed", "logged", "child", "raised"))


def test_a_log_can_be_read_while_its_task_runs(stage: Stage) -> None:
    stage.write(
        """
        @task
        def slow():
            print("half way")
            time.sleep(60)
        slow()
        """
    )
    child, seen = stage.begin("slow")
    stage.pass_until(lambda: any(line["event"] == "half way" for line in stage.log("slow")))
    assert seen.exit is None
    child.stop(stage.clocks.monotonic(), 0.5)
    stage.pass_until(lambda: seen.exit is not None)


def test_a_process_that_the_task_forks_cannot_talk_to_us_and_is_told_so(stage: Stage) -> None:
    stage.write(
        """
        from airflow.sdk import Variable
        @task
        def fork():
            read, write = os.pipe()
            if os.fork() == 0:
                try:
                    Variable.get("x")
                except Exception as error:
                    os.write(write, str(error).encode())
                os._exit(0)
            os.wait()
            return os.read(read, 1000).decode()
        fork()
        """
    )
    assert "only the task's own process may talk to the scheduler" in stage.perform("fork").result


def test_a_value_that_cannot_cross_fails_the_task_and_names_the_key_and_the_type(stage: Stage) -> None:
    stage.write(
        """
        @task
        def push():
            return {"handle": [threading.Lock()]}
        push()
        """
    )
    outcome = stage.perform("push").outcome
    assert outcome["state"] == "failed"
    assert "return_value.handle[0] is of type _thread.lock" in outcome["error"]["message"]


def test_what_a_task_leaves_running_ends_with_it(stage: Stage) -> None:
    stage.write(
        """
        @task
        def leave():
            quick = subprocess.Popen(["setsid", "sleep", "1001"])
            return quick.pid
        leave()
        """
    )
    pid = stage.perform("leave").result
    stage.pass_until(lambda: not process_tree.is_alive(pid), seconds=2)


def test_a_rehearsal_ends_well_and_leaves_output_logging_and_signals_as_they_were() -> None:
    def state() -> tuple[Any, ...]:
        root = logging.getLogger()
        streams = sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__
        return streams, root.handlers[:], root.level, warnings.showwarning, signal.getsignal(signal.SIGTERM)

    before = state()
    outcomes = rehearsal.rehearse()
    assert [outcome["state"] for outcome in outcomes] == ["success"] * len(outcomes)
    assert len(outcomes) >= 8
    assert state() == before
    assert not has_port()
    assert not scope.registered
