"""Another machine, as far as one machine can be two: a network of its own, and a disk on which our folders are not."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Runs its arguments where the folder is empty, but for one that is ours to work in.
_EMPTY = 'mount -t tmpfs none "$0" && mkdir -p "$1" && cd "$1" && shift && exec "$@"'


class NotHere(Exception):
    """This machine cannot make another one; the text says what it lacks."""


@dataclass(frozen=True)
class Machine:
    #: address of this machine as the other one sees it: only what listens there can be reached
    here: str
    namespace: str

    def prefix(self, hidden: Path, home: Path) -> list[str]:
        """Starts a command there: `hidden` is empty, and `home` below it is where the command begins."""
        place = ["ip", "netns", "exec", self.namespace, "unshare", "--mount", "--propagation", "private"]
        return [*place, "sh", "-c", _EMPTY, str(hidden), str(home)]


@contextlib.contextmanager
def machine() -> Iterator[Machine]:
    """A network namespace with one cable to this one, taken down afterwards. Raises NotHere."""
    if os.geteuid() != 0:
        raise NotHere("only root may make a network namespace")
    for program in ("ip", "unshare"):
        if shutil.which(program) is None:
            raise NotHere(f"the program {program} is not installed (iproute2, util-linux)")
    name = uuid.uuid4().hex[:6]
    namespace, near, far = f"machine-{name}", f"near{name}", f"far{name}"
    number = int(name, 16) % 16000  # of a /30 in 10.213.0.0/16
    network = f"10.213.{number >> 6}.{(number & 63) << 2}"
    here, there = (f"{network.rpartition('.')[0]}.{int(network.rpartition('.')[2]) + step}" for step in (1, 2))
    try:
        _ip("netns", "add", namespace)
        _ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", namespace)
        _ip("address", "add", f"{here}/30", "dev", near)
        _ip("link", "set", near, "up")
        _ip("-n", namespace, "address", "add", f"{there}/30", "dev", far)
        _ip("-n", namespace, "link", "set", far, "up")
        _ip("-n", namespace, "link", "set", "lo", "up")
        yield Machine(here, namespace)
    finally:
        # the cable goes with its end in the namespace
        subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", near], capture_output=True, check=False)


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotHere(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
