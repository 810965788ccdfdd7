"""The ledger: a line when a hand-out reaches user code and one when it ends well, with the time."""

import os
import time


def note(what, ti):
    name = ti.task_id if ti.map_index < 0 else f"{ti.task_id}[{ti.map_index}]"
    line = f"{what} {name} {ti.try_number} {time.monotonic():.6f}\n"
    handle = os.open(os.environ["LEDGER_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, line.encode())
    os.close(handle)
