"""Why an action was not done. Each message is a sentence for the person who asked."""

from __future__ import annotations


class ActionError(Exception):
    """An action that cannot be done; nothing was changed."""


class Missing(ActionError):
    """What the action is about does not exist, or the actor may not see it."""


class Forbidden(ActionError):
    """The actor may not do this."""


class Conflict(ActionError):
    """It collides with what is there: a duplicate, a running task, a selection that changed meanwhile."""


class Unlisted(Conflict):
    """Which slots it would run is known to a child alone, which is asked once it is made."""


class Refused(ActionError):
    """The request makes no sense for this object (a bad run id, params that break their schema)."""


class Invalid(ActionError):
    """A field has an impossible value; ``field`` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
