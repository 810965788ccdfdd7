"""first minutes: state file only"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def django_database(home: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "scheduler",
        "USER": "scheduler",
        "PASSWORD": "",
        "HOST": str(home / "pg" / "socket"),
        "PORT": "5432",
    }
