"""Connections: how to reach another system, by ``conn_id``; also written as a URI or as JSON."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from scheduler_app.sdk import backends
from scheduler_app.sdk.exceptions import AirflowNotFoundException
from scheduler_app.sdk.runtime import current_port, has_port
from scheduler_app.sdk.secret_names import secrets_in
from scheduler_app.sdk.xcom_arg import NOTSET, is_arg_set

#: names that differ between URIs and conn_type
_TYPES = {"postgresql": "postgres"}
_EXTRA_KEY = "__extra__"
_FIELDS = ("conn_id", "conn_type", "description", "host", "schema", "login", "password", "port", "extra")


class Connection:
    """Give the parts, or a ``uri``. ``extra`` is JSON text (a dict is turned into it)."""

    EXTRA_KEY = _EXTRA_KEY

    def __init__(
        self,
        conn_id: str | None = None,
        conn_type: str | None = None,
        description: str | None = None,
        host: str | None = None,
        login: str | None = None,
        password: str | None = None,
        schema: str | None = None,
        port: int | None = None,
        extra: Any = None,
        uri: str | None = None,
    ) -> None:
        if uri and any(value is not None for value in (conn_type, host, login, password, schema, port)):
            raise ValueError("A connection is made from a uri, or from its parts, not from both.")
        self.conn_id, self.description = conn_id, description
        self.conn_type, self.host, self.login, self.password = conn_type, host, login, password
        self.schema, self.port = schema, int(port) if port not in (None, "") else None
        self.extra: str | None = json.dumps(extra) if isinstance(extra, dict) else extra
        if uri:
            self._read_uri(uri)

    def __repr__(self) -> str:
        return f"<Connection {self.conn_id}: {self.conn_type}>"

    @classmethod
    def get(cls, conn_id: str) -> Connection:
        """Raises AirflowNotFoundException."""
        made: Connection | None = backends.secret_connection(conn_id)
        if made is None and (from_env := os.environ.get(f"AIRFLOW_CONN_{conn_id.upper()}")) is not None:
            made = cls.read(from_env, conn_id)
        if made is None:
            found = current_port().get_connection(conn_id)
            if found is None:
                raise AirflowNotFoundException(
                    f"The conn_id `{conn_id}` isn't defined: create the connection, or correct the id."
                )
            made = cls(**{name: found.get(name) for name in _FIELDS})
        if has_port():
            made._mask()
        return made

    @classmethod
    def read(cls, text: str, conn_id: str) -> Connection:
        """The connection of a URI or of a JSON object. Raises ValueError."""
        return cls.from_json(text, conn_id) if text.lstrip().startswith("{") else cls(conn_id=conn_id, uri=text)

    @classmethod
    def get_connection_from_secrets(cls, conn_id: str) -> Connection:
        return cls.get(conn_id)

    def _mask(self) -> None:
        port = current_port()
        if self.password:
            port.mask_secret(self.password)
        for secret in secrets_in(self.extra_dejson):
            port.mask_secret(secret)

    def _read_uri(self, uri: str) -> None:
        scheme, _, rest = uri.partition("://")
        parts = urlsplit(f"x://{rest}")
        conn_type = scheme.replace("-", "_").lower()
        self.conn_type = _TYPES.get(conn_type, conn_type)
        netloc = parts.netloc.rpartition("@")
        credentials, address = netloc[0], netloc[2]
        host, port = _split_address(address)
        self.host = unquote(host) if host else host
        self.port = int(port) if port else None
        login, has_password, password = credentials.partition(":")
        self.login = unquote(login) if login else None
        self.password = unquote(password) if has_password else None
        path = parts.path[1:]
        self.schema = unquote(path) if path else ""
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if _EXTRA_KEY in query:
            self.extra = query[_EXTRA_KEY]
        elif query:
            self.extra = json.dumps(query)

    def get_uri(self) -> str:
        """The connection as a URI; :meth:`__init__` reads it back."""
        uri = f"{(self.conn_type or '').lower().replace('_', '-')}://"
        if self.login is not None or self.password is not None:
            uri += quote(self.login or "", safe="")
            if self.password is not None:
                uri += ":" + quote(self.password, safe="")
            uri += "@"
        uri += quote(self.host, safe="") if self.host else ""
        uri += f":{self.port}" if self.port else ""
        uri += "/" + quote(self.schema, safe="") if self.schema else "/" if self.host or self.port or self.login else ""
        return uri + self._query()

    def _query(self) -> str:
        if not self.extra:
            return ""
        extra = self.extra_dejson
        if isinstance(extra, dict) and extra and all(isinstance(value, str) for value in extra.values()):
            query = urlencode(extra)
            if dict(parse_qsl(query, keep_blank_values=True)) == extra:
                return ("?" if self.schema or self.host else "/?") + query
        return "?" + urlencode({_EXTRA_KEY: self.extra})

    @property
    def extra_dejson(self) -> Any:
        """``extra`` as a dict; empty when it is no JSON."""
        return self.get_extra_dejson()

    def get_extra_dejson(self, nested: bool = False) -> Any:
        try:
            extra = json.loads(self.extra) if self.extra else {}
        except ValueError:
            return {}
        if nested and isinstance(extra, dict):
            return {key: _nested(value) for key, value in extra.items()}
        return extra

    def get_extra(self) -> str | None:
        return self.extra

    def set_extra(self, value: str | None) -> None:
        self.extra = value

    def get_password(self) -> str | None:
        return self.password

    def set_password(self, value: str | None) -> None:
        self.password = value

    def parse_from_uri(self, uri: str) -> None:
        self._read_uri(uri)

    def to_dict(self, *, prune_empty: bool = False, validate: bool = True) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in _FIELDS}
        values["extra"] = self.extra_dejson
        return {name: value for name, value in values.items() if value not in (None, "", {}) or not prune_empty}

    def as_json(self) -> str:
        values = self.to_dict(prune_empty=True)
        values.pop("conn_id", None)
        return json.dumps(values)

    @classmethod
    def from_json(cls, value: str, conn_id: str | None = None) -> Connection:
        """Raises ValueError for a port that is no number."""
        data = json.loads(value)
        data["conn_type"] = _TYPES.get(data.get("conn_type") or "", data.get("conn_type"))
        return cls(
            conn_id=conn_id, **{name: item for name, item in data.items() if name in _FIELDS and name != "conn_id"}
        )

    def get_hook(self, *, hook_params: dict[str, Any] | None = None) -> Any:
        """A hook of the installed provider package for this type. Raises AirflowException when there is none."""
        from scheduler_app.sdk.providers import hook_of

        return hook_of(self, hook_params)

    @property
    def is_extra_encrypted(self) -> bool:
        return False


def _split_address(address: str) -> tuple[str, str]:
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit():
        return host, port
    return address.rstrip(":"), ""


def _nested(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


class ConnectionAccessor:
    """``conn.my_id.host`` in templates; ``conn.get(id, default)`` too."""

    def __getattr__(self, conn_id: str) -> Connection:
        if conn_id.startswith("__"):
            raise AttributeError(conn_id)
        return Connection.get(conn_id)

    def __getitem__(self, conn_id: str) -> Connection:
        return Connection.get(conn_id)

    def __repr__(self) -> str:
        return "<connections>"

    def get(self, conn_id: str, default: Any = NOTSET) -> Any:
        try:
            return Connection.get(conn_id)
        except AirflowNotFoundException:
            return default if is_arg_set(default) else None


class BaseHook:
    """Base of hooks: ``BaseHook.get_connection(conn_id)``."""

    conn_name_attr = "conn_id"
    conn_type = ""
    hook_name = ""

    def __init__(self, logger_name: str | None = None) -> None:
        import logging

        self.log = logging.getLogger(logger_name or f"airflow.task.hooks.{type(self).__module__}.{type(self).__name__}")

    @classmethod
    def get_connection(cls, conn_id: str) -> Connection:
        """Raises AirflowNotFoundException."""
        return Connection.get(conn_id)

    @classmethod
    def get_connections(cls, conn_id: str) -> list[Connection]:
        return [Connection.get(conn_id)]

    @classmethod
    def get_hook(cls, conn_id: str, hook_params: dict[str, Any] | None = None) -> Any:
        return Connection.get(conn_id).get_hook(hook_params=hook_params)

    def get_conn(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no get_conn(): define it.")
