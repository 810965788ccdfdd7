"""What an operator sees of a single process: its metrics on a port, and its answer to SIGUSR2."""

from __future__ import annotations

import os
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from scheduler_app import inspection
from scheduler_app.management.commands import rundagprocessor, runscheduler, runtriggerer


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def read(port: int, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=headers)) as got:
            return got.status, got.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_process_serves_its_own_numbers_and_stops_with_its_work(port: int) -> None:
    with inspection.metrics_served("127.0.0.1", port, ""):
        status, text = read(port)
        assert status == 200
        assert "scheduler_loop_duration_seconds" in text
        assert "python_gc_objects_collected_total" in text
    with pytest.raises(OSError, match="refused"):
        read(port)


def test_with_a_token_nobody_else_is_answered(port: int) -> None:
    with inspection.metrics_served("127.0.0.1", port, "right"):
        assert [read(port, token)[0] for token in ("", "wrong", "right")] == [401, 401, 200]
        assert "scheduler" not in read(port)[1].lower().replace("scheduler_metrics_token", "")


def test_an_address_that_others_reach_needs_a_token_and_a_taken_port_is_named(port: int) -> None:
    with (
        pytest.raises(inspection.InspectionError, match="set SCHEDULER_METRICS_TOKEN"),
        inspection.metrics_served("0.0.0.0", port, ""),
    ):
        pass
    with (
        inspection.metrics_served("127.0.0.1", port, ""),
        pytest.raises(inspection.InspectionError, match="give each process of this machine a port of its own"),
        inspection.metrics_served("127.0.0.1", port, ""),
    ):
        pass


@pytest.mark.parametrize(
    ("module", "function"),
    [
        (runscheduler, "run_scheduler"),
        (rundagprocessor, "run_dag_processor"),
        (runtriggerer, "run_triggerer"),
    ],
)
def test_F_26_each_command_serves_metrics_while_its_process_works(
    module: Any, function: str, port: int, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = module.__name__.rpartition(".")[2]
    extra = ["--no-dag-processor"] if command == "runscheduler" else []
    seen: list[int] = []
    monkeypatch.setattr(module, function, lambda *_, **__: seen.append(read(port)[0]))
    call_command(command, "--metrics-port", str(port), *extra)
    settings.SCHEDULER = {**settings.SCHEDULER, "metrics_port": port}
    call_command(command, *extra)
    assert seen == [200, 200]
    settings.SCHEDULER = {**settings.SCHEDULER, "metrics_host": "0.0.0.0"}
    with pytest.raises(CommandError, match="could be read by everybody"):
        call_command(command, *extra)


@pytest.fixture
def _own_handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGUSR2)
    yield
    signal.signal(signal.SIGUSR2, before)


@pytest.mark.usefixtures("_own_handler")
def test_F_03_sigusr2_is_answered_with_words_and_stacks(capfd: pytest.CaptureFixture[str]) -> None:
    inspection.answer_signal(lambda: ["it sleeps"])
    os.kill(os.getpid(), signal.SIGUSR2)
    said = capfd.readouterr().err
    assert f"(pid {os.getpid()}) was asked what it does\nit sleeps\n" in said
    assert "── thread MainThread" in said
    assert "test_F_03_sigusr2_is_answered_with_words_and_stacks" in said


@pytest.mark.usefixtures("_own_handler")
def test_F_03_a_process_that_cannot_describe_itself_lives_on(capfd: pytest.CaptureFixture[str]) -> None:
    inspection.answer_signal(lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    os.kill(os.getpid(), signal.SIGUSR2)
    said = capfd.readouterr().err
    assert "It cannot say:" in said
    assert "ZeroDivisionError" in said
