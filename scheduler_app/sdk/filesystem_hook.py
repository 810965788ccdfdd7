"""FSHook: a folder, named by a connection of type ``fs`` (``extra`` → ``{"path": …}``)."""

from __future__ import annotations

from typing import Any

from scheduler_app.sdk.connection import BaseHook


class FSHook(BaseHook):
    """``get_path()`` is the folder; without such a connection it is the root."""

    conn_name_attr = "fs_conn_id"
    default_conn_name = "fs_default"
    conn_type = "fs"
    hook_name = "File (path)"

    def __init__(self, fs_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        connection = self.get_connection(fs_conn_id)
        self.basepath = str(connection.extra_dejson.get("path", "") or "")
        self.conn = connection

    def get_conn(self) -> None:
        """There is nothing to connect to."""

    def get_path(self) -> str:
        return self.basepath
