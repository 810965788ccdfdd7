"""What a process asks of the kernel about itself: to die with its parent, to adopt orphans, to be named.

No Django and nothing of ours is imported here, so that every process of either world can use it. Elsewhere than on
Linux the three prctl calls do nothing: a killed parent then leaves its children to their lifeline pipes.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36

# Loaded at import, not at the call: the calls happen between fork and exec, where loading a library may deadlock.
_PRCTL: Any = None
_PRCTL_TEXT: Any = None
if sys.platform == "linux":
    _LIBRARY = ctypes.CDLL(None, use_errno=True)
    _PRCTL, _PRCTL_TEXT = _LIBRARY["prctl"], _LIBRARY["prctl"]
    _PRCTL.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong)
    _PRCTL_TEXT.argtypes = (ctypes.c_int, ctypes.c_char_p)

#: What signal.signal calls. That also looks for the enum member of the handler before, which after a fork copies thirty
#: pages for nothing.
_HANDLE = importlib.import_module("_signal").signal


def handle_signal(number: int, handler: Any) -> Any:
    """As signal.signal; the handler before may come back as the number of SIG_DFL or SIG_IGN."""
    return _HANDLE(int(number), int(handler) if isinstance(handler, int) else handler)


def die_with_parent(parent_pid: int, with_signal: int = signal.SIGKILL) -> None:
    """Lets the kernel send ``with_signal`` to this process when the *thread* that forked it ends.

    ``parent_pid`` is what the parent's ``os.getpid()`` gave before the fork: a parent that was gone before this call
    is noticed by it, also when a subreaper has adopted us. The setting is cleared in children of this process, and
    by a change of user: call it after both.
    """
    _prctl(_PR_SET_PDEATHSIG, int(with_signal))
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), with_signal)


def outlive_parent() -> None:
    """Takes :func:`die_with_parent` back, for a process that notices by itself and has last words to write."""
    _prctl(_PR_SET_PDEATHSIG, 0)


def become_subreaper() -> None:
    """Makes orphaned descendants children of this process, which must then reap them."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_name(name: str) -> None:
    """The name of the calling thread in ``ps -o comm`` and ``top``; the kernel keeps 15 bytes."""
    if _PRCTL_TEXT is not None:
        _PRCTL_TEXT(_PR_SET_NAME, name.encode()[:15])


def signal_group(pgid: int, number: int) -> bool:
    """Sends a signal to a process group; False when it has no process any more."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pgid, number)
        return True
    return False


def keep_what_is_loaded() -> None:
    """The collector never looks again at what exists now: modules, models, routes, templates of a process that is up.

    A full collection walks all of that, and stops a request or a pass for as long; and where the process forks, it
    would write to pages that are shared.
    """
    gc.collect()
    gc.freeze()


def _prctl(option: int, value: int) -> None:
    if _PRCTL is not None and _PRCTL(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
