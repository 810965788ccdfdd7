"""Mails about failures, retries, SLAs and deadlines: rows written with the change, sent outside the loop (S-22)."""

from __future__ import annotations

import smtplib
import socket
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.mail import EmailMessage
from django.core.mail.backends.locmem import EmailBackend

from scheduler_app.conf import conf
from scheduler_app.dag_processor.mails import Mailer, compose, send
from scheduler_app.models import Callback, DagRun, TaskInstance, graphs
from scheduler_app.models.creation import NewRun, create_runs
from scheduler_app.runner import outcomes
from tests.scheduler.scene import Scene
from tests.shapes import shape

pytestmark = pytest.mark.django_db
ADDRESSED = {"email": ("ann@example.com", "bob@example.com"), "email_on_failure": True, "email_on_retry": True}


@pytest.fixture
def scene(db: None) -> Scene:
    return Scene()


def fail(scene: Scene, task: TaskInstance, message: str = "boom") -> None:
    scene.begin(task)
    scene.end(task, state="failed", error={"type": "ValueError", "message": message, "traceback": "line 7, in secret"})


def failed(scene: Scene, **fields: Any) -> DagRun:
    run = scene.run(scene.dag(shape("a >> b", "sales", tasks={"a": {**ADDRESSED, **fields}})))
    scene.tick()
    fail(scene, scene.task(run, "a"))
    return run


def mailer(scene: Scene, deliver: Any = None, **knobs: Any) -> Mailer:
    given = {"deliver": deliver} if deliver is not None else {}
    return Mailer(replace(conf(), **knobs), scene.job.pk, lambda: 0.0, threaded=False, **given)


def rows() -> list[tuple[str, str, int]]:
    return list(Callback.objects.order_by("pk").values_list("kind", "state", "attempts"))


def send_all(scene: Scene, sender: Mailer) -> None:
    while sender.start_due(scene.now):
        sender.step(scene.now)


def test_S_22_the_loop_sends_nothing_and_a_failure_leaves_a_row(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any, messages: Any) -> int:
        raise AssertionError("mail in the loop")

    with monkeypatch.context() as patched:
        patched.setattr(EmailBackend, "send_messages", refuse)
        run = failed(scene)
        scene.settle()
        lost = scene.run(scene.dag(shape("a", "lost", tasks={"a": ADDRESSED})))
        scene.tick()
        scene.begin(scene.task(lost, "a"))
        scene.die(scene.task(lost, "a"))
        scene.settle()
    assert scene.states(run) == {"a": "failed", "b": "upstream_failed"}
    assert rows() == [("mail_failure", "pending", 0)] * 2
    send_all(scene, mailer(scene))
    assert [message.subject for message in mail.outbox] == ["Task sales.a failed", "Task lost.a failed"]
    assert rows() == [("mail_failure", "success", 1)] * 2


def test_a_mail_says_what_failed_and_why_and_nothing_secret(scene: Scene) -> None:
    failed(scene)
    Callback.objects.update(payload=Callback.objects.get().payload | {"vars": {"password": "hunter2"}})
    send_all(scene, mailer(scene, base_url="https://example.com/scheduler/"))
    (message,) = mail.outbox
    assert message.to == ["ann@example.com", "bob@example.com"]
    for words in ("DAG:  sales", "Run:  run0", "Task: a", "Try:  1 of 1", "ValueError: boom"):
        assert words in message.body
    assert "https://example.com/scheduler/dags/sales/runs/run0/tasks/a/" in message.body
    assert "line 7" not in message.body
    assert "hunter2" not in message.body


def test_a_retry_and_the_failure_after_it_are_two_mails(scene: Scene) -> None:
    run = failed(scene, retries=1, retry_delay=1.0)
    scene.wait(2)
    scene.tick(2)
    fail(scene, scene.task(run, "a"))
    send_all(scene, mailer(scene))
    assert [message.subject for message in mail.outbox] == [
        "Task sales.a is tried again (try 1 of 2 failed)",
        "Task sales.a failed",
    ]


@pytest.mark.parametrize(
    "fields", [{"email": ()}, {"email_on_failure": False}, {"email_on_retry": False, "retries": 1}]
)
def test_who_did_not_ask_gets_no_mail(scene: Scene, fields: dict[str, Any]) -> None:
    failed(scene, **fields)
    assert rows() == []


def test_one_end_asks_for_one_mail_however_often_it_is_written(scene: Scene) -> None:
    run = failed(scene)
    report = outcomes.Report(scene.claims[scene.task(run, "a").pk], {"op": "outcome", "state": "failed"})
    outcomes.write([report], scene.now)
    assert rows() == [("mail_failure", "pending", 0)]


def test_a_mail_that_is_refused_is_tried_again_later_and_then_given_up(scene: Scene) -> None:
    def refuse(message: EmailMessage, timeout: float) -> None:
        raise smtplib.SMTPServerDisconnected("please come back")

    failed(scene)
    sender = mailer(scene, refuse, mail_attempts=3, mail_retry_seconds=30.0)
    waits = []
    for _ in range(3):
        send_all(scene, sender)
        row = Callback.objects.get()
        waits.append((row.state, row.error, (row.next_at - scene.now).total_seconds()))
        scene.wait(120)
    said = "SMTPServerDisconnected: please come back"
    assert waits[:2] == [("pending", said, 30.0), ("pending", said, 60.0)]
    assert waits[2][:2] == ("failed", said)
    send_all(scene, sender)
    assert rows() == [("mail_failure", "failed", 3)]


def test_no_mail_holds_up_another_and_no_database_is_used_on_its_thread(scene: Scene) -> None:
    failed(scene)
    seen = []

    def slow(message: EmailMessage, timeout: float) -> None:
        seen.append((threading.current_thread().name, timeout))
        stop.wait(10)

    stop = threading.Event()
    clock = [0.0]
    sender = Mailer(conf(), scene.job.pk, lambda: clock[0], slow)
    assert sender.start_due(scene.now) == 1
    assert sender.step(scene.now) == 0
    assert sender.busy
    clock[0] = conf().mail_timeout_seconds * 6 + 1
    assert sender.step(scene.now) == 1
    assert rows() == [("mail_failure", "pending", 1)]
    assert Callback.objects.get().error == "The mail server took longer than 120 s."
    stop.set()
    assert seen == [("mail", conf().mail_timeout_seconds)]


def test_a_mail_of_a_process_that_died_is_sent_again_under_the_same_id(scene: Scene) -> None:
    failed(scene)
    (row,) = Callback.objects.claim_mails(scene.job.pk, scene.now, 5)
    first = compose(row, "").extra_headers["Message-ID"]
    assert Callback.objects.claim_mails(scene.job.pk, scene.now, 5) == []
    scene.job.__class__.objects.update(state="failed")
    assert Callback.objects.give_back_orphans(scene.now, 30) == 1
    scene.job = scene.new_job()
    send_all(scene, mailer(scene))
    assert mail.outbox[0].extra_headers["Message-ID"] == first


def test_without_a_mail_server_the_row_says_what_to_set(scene: Scene, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    failed(scene)
    send_all(scene, mailer(scene))
    row = Callback.objects.get()
    assert (row.state, row.error) == (
        "failed",
        "No mail server is set up: set SCHEDULER_EMAIL_URL, or EMAIL_BACKEND in the settings of your project.",
    )


def test_a_child_is_never_asked_to_run_a_mail(scene: Scene) -> None:
    failed(scene)
    assert Callback.objects.claim_due(["dags"], scene.job.pk, scene.now, 5) == []


def test_a_missed_sla_is_told_to_the_addresses_of_its_tasks_in_one_mail(scene: Scene) -> None:
    tasks = {"a": {"sla": 60.0, **ADDRESSED}, "b": {"sla": 60.0, "email": ("cat@example.com",)}}
    dag = scene.dag(shape("a >> b", "sales", tasks=tasks, has_sla=True, timetable={"kind": "cron_trigger"}))
    run = late_run(scene, dag)
    scene.wait(61)
    scene.tick()
    send_all(scene, mailer(scene))
    (message,) = mail.outbox
    assert (message.subject, message.to) == (
        "SLA missed in sales",
        ["ann@example.com", "bob@example.com", "cat@example.com"],
    )
    assert "Not done in time: a, b." in message.body
    assert f"Run:  {run.run_id}" in message.body
    assert "- a (queued)" in message.body
    assert "- b (waiting)" in message.body


def late_run(scene: Scene, dag: Any) -> DagRun:
    when = dict.fromkeys(("logical_date", "data_interval_start", "data_interval_end"), scene.now)
    version = dag.latest_version_id
    new = NewRun(dag.dag_id, "scheduled__1", "scheduled", scene.now, version, graphs.graph_of(version), **when)
    (key,) = create_runs([new], scene.now)
    scene.tick()
    return DagRun.objects.get(pk=key)


def test_a_missed_deadline_is_told_to_the_address_of_the_dags_default_arguments(scene: Scene) -> None:
    deadline = {
        "reference": {"kind": "dagrun_queued_at"},
        "interval": 60.0,
        "name": "closing",
        "callback": {"path": "house.tell", "kwargs": {}, "sync": True},
    }
    dag = shape("a", "sales", deadline=(deadline,), default_args={"email": "ann@example.com; bob@example.com"})
    scene.run(scene.dag(dag))
    scene.tick()
    scene.now += timedelta(seconds=61)
    scene.tick()
    send_all(scene, mailer(scene))
    (message,) = mail.outbox
    assert message.to == ["ann@example.com", "bob@example.com"]
    assert message.subject.startswith("Deadline")
    assert "The run was not done by " in message.body


def test_a_line_break_in_a_name_is_no_header_of_its_own(scene: Scene) -> None:
    failed(scene)
    row = Callback.objects.get()
    row.kind, row.task_instance_id = "mail_deadline", None
    row.payload = {"to": ["ann@example.com"], "reason": "x", "late": {"name": "a\nBcc: eve@example.com"}}
    assert "\n" not in compose(row, "").subject


def test_a_mail_server_that_says_nothing_is_not_waited_for(settings: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = silent.getsockname()
        with pytest.raises(smtplib.SMTPServerDisconnected, match="timed out"):
            send(EmailMessage("s", "b", to=["ann@example.com"]), 0.1)
