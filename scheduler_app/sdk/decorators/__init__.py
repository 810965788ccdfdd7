"""TaskFlow: ``@task`` and its variants, ``@task_group``, ``@setup``, ``@teardown``."""

from __future__ import annotations

from scheduler_app.sdk.dag import dag
from scheduler_app.sdk.decorators.group import task_group
from scheduler_app.sdk.decorators.setups import setup, teardown
from scheduler_app.sdk.decorators.task import TaskDecorator, TaskDecoratorCollection, task

__all__ = ["TaskDecorator", "TaskDecoratorCollection", "dag", "setup", "task", "task_group", "teardown"]
