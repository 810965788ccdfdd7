"""Operators that ask a person: they wait in the triggerer until somebody answered."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from scheduler_app.sdk import timezone
from scheduler_app.sdk.exceptions import AirflowException, AirflowFailException
from scheduler_app.sdk.operator import BaseOperator
from scheduler_app.sdk.operators.branch import SkipMixin
from scheduler_app.sdk.params import ParamsDict
from scheduler_app.sdk.runtime import current_port
from scheduler_app.sdk.triggers.hitl import RESPONSE_KEY, HITLTrigger

#: key under which the question lies in the state store of the task instance
QUESTION_KEY = "hitl_question"


class HITLTriggerEventError(AirflowException):
    """The wait ended with an error."""


class HITLTimeoutError(HITLTriggerEventError):
    """Nobody answered in time."""


class HITLRejectException(AirflowException):
    """The answer was no, and ``fail_on_reject`` is set."""


class HITLOperator(BaseOperator):
    """Asks to choose among ``options``; with ``multiple`` several. At ``response_timeout`` the defaults are taken."""

    template_fields: Collection[str] = ("subject", "body")

    def __init__(
        self,
        *,
        subject: str,
        options: list[str],
        body: str | None = None,
        defaults: str | list[str] | None = None,
        multiple: bool = False,
        params: Any = None,
        notifiers: Sequence[Callable[..., Any]] | Callable[..., Any] | None = None,
        assigned_users: Any = None,
        response_timeout: dt.timedelta | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.subject, self.body, self.options = subject, body, options
        self.defaults = [defaults] if isinstance(defaults, str) else defaults
        self.multiple = multiple
        self.params = ParamsDict(params)
        self.notifiers = list(notifiers) if isinstance(notifiers, (list, tuple)) else [notifiers] if notifiers else []
        self.assigned_users = (
            list(assigned_users)
            if isinstance(assigned_users, (list, tuple))
            else [assigned_users]
            if assigned_users
            else []
        )
        self.response_timeout = response_timeout
        self._validate()

    def _validate(self) -> None:
        if not self.options:
            raise ValueError(f"Task {self.task_id!r} needs options to choose from.")
        if len(set(self.options)) < len(self.options):
            raise ValueError(f"Task {self.task_id!r} has an option twice.")
        unknown = [item for item in self.defaults or () if item not in self.options]
        if unknown:
            raise ValueError(f"Task {self.task_id!r}: the defaults {unknown} are no options.")
        if not self.multiple and self.defaults is not None and len(self.defaults) > 1:
            raise ValueError(f"Task {self.task_id!r}: several defaults need multiple=True.")

    def _scope(self, context: Any) -> dict[str, Any]:
        ti = context["ti"]
        return {"task": {"dag_id": ti.dag_id, "run_id": ti.run_id, "task_id": ti.task_id, "map_index": ti.map_index}}

    def execute(self, context: Any) -> Any:
        scope = self._scope(context)
        question = {
            "subject": self.subject,
            "body": self.body,
            "options": self.options,
            "defaults": self.defaults,
            "multiple": self.multiple,
            "params": self.params.dump(),
            "assigned_users": self.assigned_users,
        }
        # a new try asks anew: an answer to the try before is none to this one
        current_port().delete_state(scope=scope, key=RESPONSE_KEY)
        current_port().set_state(scope=scope, key=QUESTION_KEY, value=question, expires_after=float("inf"))
        for notifier in self.notifiers:
            notifier(context)
        deadline = timezone.utcnow() + self.response_timeout if self.response_timeout is not None else None
        trigger = HITLTrigger(
            scope=scope,
            options=self.options,
            params=self.params.dump(),
            defaults=self.defaults,
            multiple=self.multiple,
            timeout_datetime=deadline,
        )
        self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        if "error" in event:
            kind = HITLTimeoutError if event.get("error_type") == "timeout" else HITLTriggerEventError
            raise kind(event["error"])
        chosen = list(event.get("chosen_options") or ())
        wrong = [item for item in chosen if item not in self.options]
        if wrong:
            raise ValueError(f"The answer {wrong} is none of the options {self.options}.")
        return {
            "chosen_options": chosen,
            "params_input": event.get("params_input") or {},
            "responded_at": event.get("responded_at"),
            "responded_by_user": event.get("responded_by_user"),
        }

    def generate_link_to_ui(self, *, task_instance: Any, base_url: str | None = None, **_: Any) -> str:
        """The page on which the question is answered."""
        ti = task_instance
        return f"{(base_url or '').rstrip('/')}/dags/{ti.dag_id}/runs/{ti.run_id}/tasks/{ti.task_id}/required_actions"

    @staticmethod
    def generate_link_to_ui_from_context(*, context: Any, base_url: str | None = None, **_: Any) -> str:
        return context["task"].generate_link_to_ui(task_instance=context["ti"], base_url=base_url)


class ApprovalOperator(HITLOperator, SkipMixin):
    """Approve or Reject. A rejection skips what comes after, or fails the task with ``fail_on_reject``."""

    inherits_from_skipmixin = True
    APPROVE, REJECT = "Approve", "Reject"

    def __init__(
        self, *, ignore_downstream_trigger_rules: bool = False, fail_on_reject: bool = False, **kwargs: Any
    ) -> None:
        for name in ("options", "multiple"):
            if name in kwargs:
                raise ValueError(f"ApprovalOperator does not take {name!r}: its options are Approve and Reject.")
        super().__init__(options=[self.APPROVE, self.REJECT], multiple=False, **kwargs)
        self.ignore_downstream_trigger_rules, self.fail_on_reject = ignore_downstream_trigger_rules, fail_on_reject

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        answer = super().execute_complete(context, event)
        if answer["chosen_options"][:1] == [self.APPROVE]:
            return answer
        if self.fail_on_reject:
            raise HITLRejectException("The request was rejected.")
        context["ti"].xcom_push(key="return_value", value=answer)
        below = (
            self.get_flat_relatives(upstream=False) if self.ignore_downstream_trigger_rules else self.downstream_list
        )
        self.skip(context["ti"], below)
        return answer


class HITLEntryOperator(HITLOperator):
    """Asks for the values of params; the one option is OK."""

    OK = "OK"

    def __init__(self, **kwargs: Any) -> None:
        if "options" not in kwargs:
            kwargs["options"] = [self.OK]
            kwargs.setdefault("defaults", [self.OK] if kwargs.get("response_timeout") else None)
        super().__init__(**kwargs)


class HITLBranchOperator(HITLOperator, SkipMixin):
    """The chosen options name the tasks to follow, themselves or through ``options_mapping``."""

    inherits_from_skipmixin = True

    def __init__(self, *, options_mapping: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.options_mapping = dict(options_mapping or {})
        unknown = sorted(set(self.options_mapping) - set(self.options))
        if unknown:
            raise ValueError(f"Task {self.task_id!r}: options_mapping names {unknown}, which are no options.")

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        answer = super().execute_complete(context, event)
        chosen = [self.options_mapping.get(option, option) for option in answer["chosen_options"]]
        if not chosen:
            raise AirflowFailException("No branch was chosen.")
        context["ti"].xcom_push(key="return_value", value=answer)
        self.skip_all_except(context["ti"], chosen)
        return answer
