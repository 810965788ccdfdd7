"""The Celery application of both sides: how messages look, which pool workers have, what a broker is asked for.

Imported before Django is set up, so no model is.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

from scheduler_app.conf import Conf
from scheduler_app.executors import celery_redis

TASK = "scheduler_app.hand_out"
STOP = "stop_hand_outs"
_WORKER = "scheduler_app.executors.celery_worker"
#: Messages know ten levels, however large priority weights are.
_LEVELS = 10


def make_app(values: Conf, *, publishing: bool = False) -> Celery:
    """The Celery application. A host project's own ``CELERY_*`` settings are read first.

    `publishing`: the scheduler's side, where no call may take longer than its time-out; a worker waits for ever.
    """
    app = Celery("scheduler_app")
    app.config_from_object("django.conf:settings", namespace="CELERY")
    app.conf.update(
        imports=(_WORKER,),
        worker_pool=f"{_WORKER}:RunnerPool",
        worker_concurrency=values.celery_worker_slots,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        task_ignore_result=True,
        task_acks_late=True,
        task_serializer="json",
        accept_content=["json"],
        task_default_queue="default",
        task_queue_max_priority=_LEVELS - 1,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=values.celery_publish_timeout_seconds,
    )
    if values.celery_broker_url:
        app.conf.broker_url = values.celery_broker_url
    # what a site has set for its own broker (a sentinel's master, a global prefix) is kept
    own = dict(app.conf.broker_transport_options or {})
    TRANSPORT_ALIASES.update(celery_redis.ALIASES)
    app.conf.broker_transport_options = own | transport_options(str(app.conf.broker_url or ""), values, publishing)
    return app


def transport_options(broker_url: str, values: Conf, publishing: bool) -> dict[str, Any]:
    """So that every call ends in time, and that a confirmed message is one that the broker has."""
    timeout_seconds = values.celery_publish_timeout_seconds
    if is_redis(broker_url):
        options: dict[str, Any] = {"socket_connect_timeout": timeout_seconds, "socket_keepalive": True}
        options["priority_steps"] = list(range(_LEVELS))
        options["visibility_timeout"] = values.celery_visibility_timeout_seconds
        return {**options, "socket_timeout": timeout_seconds} if publishing else options
    if publishing:
        return {"confirm_publish": True, "read_timeout": timeout_seconds, "write_timeout": timeout_seconds}
    return {}


def is_redis(broker_url: str) -> bool:
    return urlsplit(broker_url).scheme in ("redis", "rediss", "sentinel", "redis+socket")


def level(weight: int, broker_url: str) -> int:
    """The message priority of a priority weight: each level is twice the weight of the one below it."""
    raised = min(_LEVELS - 1, max(0, weight).bit_length())
    return _LEVELS - 1 - raised if is_redis(broker_url) else raised  # Redis takes 0 first
