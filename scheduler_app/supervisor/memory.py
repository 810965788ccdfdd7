"""Whether the kernel killed for lack of memory: a process that got SIGKILL cannot say it."""

from __future__ import annotations

from pathlib import Path

_MEGABYTE = 1024 * 1024


class OutOfMemory:
    """Counts the kernel's kills: those of our control group where it tells them, else those of the machine."""

    def __init__(self, proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> None:
        self._file, self._where = _counter(proc, groups)

    def kills(self) -> int:
        """How often it killed, ever; 0 where nobody counts."""
        try:
            lines = self._file.read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)

    def since(self, kills: int) -> str:
        """Where it killed since the count was `kills`; empty when it did not."""
        return self._where if self.kills() > kills else ""


def _counter(proc: Path, groups: Path) -> tuple[Path, str]:
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        number, kinds, path = line.split(":", 2)
        folder = groups / path.lstrip("/") if number == "0" else groups / "memory" / path.lstrip("/")
        file = folder / ("memory.events" if number == "0" else "memory.oom_control")
        if (number == "0" or kinds == "memory") and file.exists() and "oom_kill " in file.read_text():
            return file, f"in its control group {path}{_limit(folder)}"
    return proc / "vmstat", "on this machine"


def _limit(folder: Path) -> str:
    for name in ("memory.max", "memory.limit_in_bytes"):
        try:
            return f", whose limit is {int((folder / name).read_text()) // _MEGABYTE} MB"
        except (OSError, ValueError):
            continue
    return ""
