"""The environment of user code: the user's own variables, none of our secrets.

This is hygiene, not a wall: a process of the same user can read ours. Another system user is the wall.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from scheduler_app.conf import SECRET_ENVIRONMENT

#: Everything that begins so is ours too: the settings of our Django project are nothing to a task.
#: The drivers of the log store take their credentials from FSSPEC_….
SECRET_PREFIXES = ("DJANGO_", "FSSPEC_")
_MORE_SECRETS = ("SCHEDULER_FERNET_KEY", "PGPASSWORD", "PGPASSFILE")


def inherited() -> dict[str, str]:
    """What this process was given; scrubbed, it is what user code gets."""
    return dict(os.environ)


def scrubbed(environ: Mapping[str, str]) -> dict[str, str]:
    """A copy without our secrets."""
    hidden = {*SECRET_ENVIRONMENT, *_MORE_SECRETS}
    return {
        name: value for name, value in environ.items() if name not in hidden and not name.startswith(SECRET_PREFIXES)
    }
