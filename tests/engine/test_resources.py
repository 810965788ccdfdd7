"""Limits of an attempt's processes: what a task may write, and what becomes of nonsense."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_app.engine import resources
from scheduler_app.engine.resources import Resources


def test_a_tasks_own_limits_take_the_place_of_the_settings_one_by_one() -> None:
    default = Resources(memory_mb=100, cpu_seconds=5)
    own = {"limits": {"memory_mb": 0, "open_files": 64}, "pod_override": object()}
    assert resources.of(own, default) == Resources(memory_mb=0, cpu_seconds=5, open_files=64)
    assert resources.of({}, default) is default
    assert resources.of(None, default) is default


@pytest.mark.parametrize(
    ("own", "text"),
    [
        (512, "is a dict of memory_mb, cpu_seconds, open_files, not 512"),
        ({"memory": 5}, "has no 'memory': it takes memory_mb, cpu_seconds, open_files. Did you mean 'memory_mb'?"),
        ({"memory_mb": "5"}, "['memory_mb'] is a number, 0 for no limit, not '5'"),
        ({"cpu_seconds": -1}, "['cpu_seconds'] is a number, 0 for no limit, not -1"),
        ({"memory_mb": True}, "is a number, 0 for no limit, not True"),
        ({"open_files": 3}, "['open_files'] is a whole number, 32 or more (0 for no limit), not 3"),
        ({"open_files": 40.5}, "is a whole number, 32 or more (0 for no limit), not 40.5"),
        ({"cpu_seconds": float("nan")}, "is a number, 0 for no limit, not nan"),
    ],
)
def test_nonsense_is_refused_with_what_to_write_instead(own: Any, text: str) -> None:
    with pytest.raises(ValueError, match="executor_config") as refused:
        resources.of({"limits": own}, Resources())
    assert text in str(refused.value)
