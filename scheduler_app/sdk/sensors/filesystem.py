"""FileSensor: waits for a file or a filled folder."""

from __future__ import annotations

import os
from typing import Any

from scheduler_app.sdk.exceptions import AirflowException, AirflowNotFoundException
from scheduler_app.sdk.filesystem_hook import FSHook
from scheduler_app.sdk.sensor_base import BaseSensorOperator
from scheduler_app.sdk.triggers.file import FileTrigger, find, modified

DEFAULT_CONNECTION = "fs_default"


class FileSensor(BaseSensorOperator):
    """``filepath``: a path or glob pattern, below the folder of the connection ``fs_conn_id``.

    The default connection need not exist; paths then begin at the root.
    """

    template_fields = ("filepath", "fs_conn_id")
    ui_color = "#91818a"

    def __init__(
        self,
        *,
        filepath: Any,
        fs_conn_id: str = DEFAULT_CONNECTION,
        recursive: bool = False,
        deferrable: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.filepath, self.fs_conn_id = filepath, fs_conn_id
        self.recursive, self.deferrable = recursive, deferrable

    @property
    def path(self) -> str:
        """The full path or pattern."""
        try:
            base = FSHook(self.fs_conn_id).get_path()
        except AirflowNotFoundException:
            if self.fs_conn_id != DEFAULT_CONNECTION:
                raise
            base = ""
        return os.path.join(base, os.fspath(self.filepath))

    def poke(self, context: Any) -> bool:
        path = self.path
        found = find(path, self.recursive)
        if found is None:
            self.log.info("Waiting for %s", path)
            return False
        self.log.info("Found %s, last written at %s", found, modified(found))
        return True

    def execute(self, context: Any) -> Any:
        if not self.deferrable:
            return super().execute(context)
        if self.poke(context):
            return None
        trigger = FileTrigger(filepath=self.path, recursive=self.recursive, poke_interval=self.poke_interval)
        self.defer(trigger=trigger, method_name="execute_complete", timeout=self.timeout)

    def execute_complete(self, context: Any, event: Any = None) -> None:
        if not event:
            raise AirflowException("The trigger ended without having found the file.")
        self.log.info("Found %s", self.filepath)
