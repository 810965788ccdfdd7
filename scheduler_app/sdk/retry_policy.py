"""Retry policies: the exception decides whether, and when, a failed task is tried again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from scheduler_app.sdk.states import _Text


class RetryAction(_Text):
    """What to do with a failure."""

    RETRY = "retry"
    FAIL = "fail"
    DEFAULT = "default"


class RetryDecision:
    """An action with its delay and its reason."""

    def __init__(
        self,
        action: RetryAction = RetryAction.DEFAULT,
        retry_delay: dt.timedelta | None = None,
        reason: str | None = None,
    ) -> None:
        self.action, self.retry_delay, self.reason = RetryAction(action), retry_delay, reason

    def to_outcome(self) -> dict[str, Any]:
        """The keys of an outcome that the decision changes."""
        if self.action is RetryAction.FAIL:
            return {"retry": False}
        if self.action is RetryAction.RETRY and self.retry_delay is not None:
            return {"retry_delay": self.retry_delay.total_seconds()}
        return {}


class RetryPolicy:
    """Override :meth:`evaluate`."""

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        raise NotImplementedError(f"{type(self).__name__} has no evaluate(): define it.")


class RetryRule:
    """``exception`` (a class, or its dotted name) → what to do. Subclasses of the exception count too."""

    def __init__(
        self,
        exception: type[BaseException] | str,
        action: RetryAction = RetryAction.RETRY,
        retry_delay: dt.timedelta | None = None,
        reason: str | None = None,
    ) -> None:
        self.exception, self.action, self.retry_delay, self.reason = exception, RetryAction(action), retry_delay, reason

    def matches(self, error: BaseException) -> bool:
        if isinstance(self.exception, type):
            return isinstance(error, self.exception)
        names = {
            name
            for kind in type(error).__mro__
            for name in (kind.__qualname__, f"{kind.__module__}.{kind.__qualname__}")
        }
        return self.exception in names


class ExceptionRetryPolicy(RetryPolicy):
    """The first rule that matches decides; ``default`` when none does."""

    def __init__(self, rules: Iterable[RetryRule], default: RetryAction = RetryAction.DEFAULT) -> None:
        self.rules, self.default = list(rules), RetryAction(default)

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        for rule in self.rules:
            if rule.matches(exception):
                return RetryDecision(rule.action, rule.retry_delay, rule.reason)
        return RetryDecision(self.default)
