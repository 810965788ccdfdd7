"""BaseNotifier: a callback with templated fields."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any

from scheduler_app.sdk.templates import Templater


class BaseNotifier(Templater):
    """Override :meth:`notify`. Give an instance as ``on_failure_callback=…``."""

    template_fields: Collection[str] = ()
    template_ext: Sequence[str] = ()

    def __init__(self, context: Any = None) -> None:
        self.context = context or {}

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger(f"airflow.task.notifiers.{type(self).__name__}")

    def notify(self, context: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no notify(self, context): define it.")

    async def async_notify(self, context: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no async_notify(self, context): define it.")

    def render_template_fields(self, context: Any, jinja_env: Any = None) -> None:
        env = jinja_env or self.get_template_env(context.get("dag"))
        self._do_render_template_fields(self, self.template_fields, context, env, set())

    def __call__(self, *args: Any) -> None:
        """Called as a callback; arguments besides the context (of SLA misses) are given to ``notify`` by name."""
        context = dict(args[0]) if len(args) == 1 else {"sla_miss": args}
        try:
            self.render_template_fields(context)
        except Exception:
            self.log.exception("The fields of the notifier could not be rendered; nothing was sent.")
            raise
        self.notify(context)
