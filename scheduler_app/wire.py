"""Messages across the border between user code and ours: their frames and the encoding of their values.

``docs/borders.md`` §2 and §3 are the contract. A frame is a 4-byte big-endian length and that many bytes of
UTF-8 JSON. :func:`encode` turns a value into a JSON document and names the key and the type of what it cannot
take; :func:`decode` turns it back; :func:`plain` gives the JSON that pages and the API show.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import importlib
import json
import math
import os
import pathlib
import socket
import struct
import uuid
import zoneinfo
from collections.abc import Callable, Iterator
from typing import Any

Json = Any

DEFAULT_MAX_BYTES = 64 * 1024 * 1024
TYPE = "__type"
VALUE = "__value"

_LENGTH = struct.Struct(">I")


class _Encoder(json.JSONEncoder):
    """The standard one with its C part made once, not for each message: after a fork that copies pages."""

    def __init__(self) -> None:
        super().__init__(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        make = json.encoder.c_make_encoder  # type: ignore[attr-defined]
        text = json.encoder.encode_basestring
        #: no markers: what is sent is no object of a user, and refers to itself nowhere
        self._parts = make and make(None, self.default, text, None, ":", ",", False, False, False)

    def encode(self, o: Json) -> str:
        return "".join(self._parts(o, 0)) if self._parts else super().encode(o)


_ENCODER, _DECODER = _Encoder(), json.JSONDecoder()
_CHUNK = 256 * 1024
#: Python's own limit is a thousand frames; a document this deep is a mistake, and PostgreSQL refuses it later.
_MAX_DEPTH = 200
_ATOMS = frozenset({type(None), bool, int})


class WireError(Exception):
    """A frame or a document that breaks the contract."""


class EncodeError(WireError, TypeError):
    """A value that cannot cross. ``path`` is where it sits ("return_value.items[3]"), ``kind`` its dotted type."""

    def __init__(self, path: str, kind: str, why: str) -> None:
        super().__init__(f"{path} is of type {kind}: {why}")
        self.path, self.kind = path, kind


class FrameTooLarge(WireError):
    """A frame is larger than the limit (``max_message_mb``). ``size`` and ``limit`` are in bytes."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(
            f"{what} is {size / 1e6:.1f} MB, the limit is {limit / 1e6:.1f} MB. "
            "Store large values elsewhere and pass their address, or raise max_message_mb."
        )
        self.size, self.limit = size, limit

    def about(self, what: str) -> FrameTooLarge:
        """The same, said of what the user knows."""
        return FrameTooLarge(what, self.size, self.limit)


# ── values ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclasses.dataclass(frozen=True, slots=True)
class Extension:
    """How objects of one class cross: a name, what stands in their place, and the way back."""

    name: str
    to_value: Callable[[Any], Any]
    from_value: Callable[[Any], Any]


_extensions: dict[type, Extension] = {}
_extensions_by_name: dict[str, Extension] = {}


def extend(kind: type, name: str, to_value: Callable[[Any], Any], from_value: Callable[[Any], Any]) -> None:
    """Let instances of `kind` (and of its subclasses) cross under `name`; the SDK does so for assets."""
    extension = Extension(name, to_value, from_value)
    _extensions[kind] = extension
    _extensions_by_name[name] = extension


def encode(value: Any, key: str = "value") -> Json:
    """The JSON document of `value`; `key` names it in errors. Raises :class:`EncodeError`.

    A value that is plain JSON already comes back as it is, not copied.
    """
    return _encode(value, key, 0)


def _encode(value: Any, path: str, depth: int) -> Json:
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is str:
        return value if _storable(value) else _tagged("str", _escape(value))
    if kind is float:
        return value if math.isfinite(value) else _tagged("nan", _nan_name(value))
    if depth > _MAX_DEPTH:
        raise EncodeError(
            path[:120] + "…", _dotted(kind), f"it is nested deeper than {_MAX_DEPTH} levels (or holds itself)."
        )
    if kind is dict:
        return _encode_dict(value, path, depth)
    if kind is list:
        return _encode_list(value, path, depth)
    return _encode_object(value, path, depth)


def _encode_dict(value: dict[Any, Any], path: str, depth: int) -> Json:
    if TYPE in value or not all(type(key) is str and _storable(key) for key in value):
        pairs = [
            [_encode(key, f"a key of {path}", depth + 1), _encode(item, f"{path}[{key!r}]", depth + 1)]
            for key, item in value.items()
        ]
        return _tagged("dict", pairs)
    result: dict[str, Json] | None = None
    for key, item in value.items():
        if type(item) in _ATOMS:
            continue
        document = _encode(item, f"{path}.{key}", depth + 1)
        if document is not item:
            if result is None:
                result = dict(value)
            result[key] = document
    return value if result is None else result


def _encode_list(value: list[Any], path: str, depth: int) -> Json:
    result: list[Json] | None = None
    for index, item in enumerate(value):
        if type(item) in _ATOMS:
            continue
        document = _encode(item, f"{path}[{index}]", depth + 1)
        if document is not item:
            if result is None:
                result = list(value)
            result[index] = document
    return value if result is None else result


def _encode_object(value: Any, path: str, depth: int) -> Json:
    if isinstance(value, enum.Enum):
        # Before the bases: an enum that is also a text stays an enum.
        return _encode_class("enum", value, value.value, path, depth)
    for kind in type(value).__mro__:
        extension = _extensions.get(kind)
        if extension is not None:
            return _tagged(extension.name, _encode(extension.to_value(value), path, depth + 1))
        rule = _RULES.get(kind)
        if rule is not None:
            return rule(value, path, depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        data = {spec.name: getattr(value, spec.name) for spec in dataclasses.fields(value)}
        return _encode_class("dataclass", value, data, path, depth)
    if hasattr(type(value), "__attrs_attrs__"):
        data = {spec.name: getattr(value, spec.name) for spec in type(value).__attrs_attrs__}
        return _encode_class("attrs", value, data, path, depth)
    if hasattr(type(value), "model_fields") and hasattr(value, "model_dump"):
        return _encode_class("pydantic", value, value.model_dump(mode="python"), path, depth)
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return _encode(value.tolist(), path, depth + 1)
    raise EncodeError(
        path,
        _dotted(type(value)),
        "it cannot leave the task's process. Return JSON types, datetimes, decimals, tuples, sets, bytes, enums, "
        "dataclasses, attrs or pydantic objects; for anything larger store it elsewhere and return its address.",
    )


def _encode_class(name: str, value: Any, data: Any, path: str, depth: int) -> Json:
    return _tagged(name, {"class": _dotted(type(value)), "data": _encode(data, path, depth + 1)})


def _encode_timezone(value: dt.tzinfo) -> str:
    name = getattr(value, "key", None) or getattr(value, "name", None)
    if isinstance(name, str) and name:
        return name
    offset = value.utcoffset(None)
    return "UTC" if offset is not None and not offset else str(value)


def _encode_sequence(name: str) -> Callable[[Any, str, int], Json]:
    def rule(value: Any, path: str, depth: int) -> Json:
        return _tagged(name, [_encode(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)])

    return rule


def _encode_set(name: str) -> Callable[[Any, str, int], Json]:
    def rule(value: Any, path: str, depth: int) -> Json:
        items = [_encode(item, f"{path}{{…}}", depth + 1) for item in value]
        # A set has no order of its own; a stable one keeps equal values equal as documents.
        return _tagged(name, sorted(items, key=lambda item: json.dumps(item, sort_keys=True)))

    return rule


def _text_rule(name: str, text: Callable[[Any], Any]) -> Callable[[Any, str, int], Json]:
    def rule(value: Any, path: str, depth: int) -> Json:
        return _tagged(name, text(value))

    return rule


#: How each class, or the nearest of its bases, crosses.
_RULES: dict[type, Callable[[Any, str, int], Json]] = {
    bool: lambda value, path, depth: bool(value),
    int: lambda value, path, depth: int(value),
    float: lambda value, path, depth: _encode(float(value), path, depth),
    str: lambda value, path, depth: _encode(str.__str__(value), path, depth),
    dict: lambda value, path, depth: _encode_dict(dict(value), path, depth),
    list: lambda value, path, depth: _encode_list(list(value), path, depth),
    tuple: _encode_sequence("tuple"),
    set: _encode_set("set"),
    frozenset: _encode_set("frozenset"),
    dt.datetime: _text_rule("datetime", lambda value: value.isoformat()),
    dt.date: _text_rule("date", lambda value: value.isoformat()),
    dt.time: _text_rule("time", lambda value: value.isoformat()),
    dt.timedelta: _text_rule("timedelta", lambda value: value.total_seconds()),
    dt.tzinfo: _text_rule("timezone", _encode_timezone),
    decimal.Decimal: _text_rule("decimal", str),
    bytes: _text_rule("bytes", lambda value: base64.b64encode(value).decode("ascii")),
    bytearray: _text_rule("bytes", lambda value: base64.b64encode(value).decode("ascii")),
    uuid.UUID: _text_rule("uuid", str),
    pathlib.PurePath: _text_rule("path", str),
}


def _tagged(name: str, value: Json) -> Json:
    return {TYPE: name, VALUE: value}


def _dotted(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _storable(text: str) -> bool:
    """Whether UTF-8 and PostgreSQL's JSON take the text: no NUL, no lone surrogate."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _escape(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii")


def _nan_name(value: float) -> str:
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")


def decode(document: Json, *, classes: Callable[[str], type] | None = None) -> Any:
    """The value of a document. `classes` finds a class by its dotted name (a child passes :func:`import_class`);
    without it an object of a user's class raises :class:`WireError`: our side never rebuilds one."""
    if type(document) is list:
        return [decode(item, classes=classes) for item in document]
    if type(document) is not dict:
        return document
    if TYPE not in document:
        return {key: decode(item, classes=classes) for key, item in document.items()}
    name, value = document[TYPE], document[VALUE]
    if name in _DECODERS:
        return _DECODERS[name](value)
    if name in _CONTAINERS:
        return _CONTAINERS[name](decode(item, classes=classes) for item in value)
    if name in _extensions_by_name:
        return _extensions_by_name[name].from_value(decode(value, classes=classes))
    if name in _REBUILDERS:
        if classes is None:
            raise WireError(f"An object of class {value['class']} can be rebuilt only in the process of a task.")
        return _REBUILDERS[name](classes(value["class"]), decode(value["data"], classes=classes))
    raise WireError(f"The document has a value of unknown type {name!r}; it was written by a newer version.")


def import_class(dotted: str) -> type:
    """The class of a dotted name. Raises WireError when it is gone, or is no class of plain data."""
    parts = dotted.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            found = getattr(found, name, None)
        if isinstance(found, type) and _is_data_class(found):
            return found
        break
    raise WireError(f"Class {dotted} is not importable here (or is no enum, dataclass, attrs or pydantic class).")


def _is_data_class(kind: type) -> bool:
    return (
        issubclass(kind, enum.Enum)
        or dataclasses.is_dataclass(kind)
        or hasattr(kind, "__attrs_attrs__")
        or hasattr(kind, "model_validate")
    )


def _rebuild_dataclass(kind: Any, data: dict[str, Any]) -> Any:
    specs = dataclasses.fields(kind)
    value = kind(**{spec.name: data[spec.name] for spec in specs if spec.init and spec.name in data})
    for spec in specs:
        if not spec.init and spec.name in data:
            object.__setattr__(value, spec.name, data[spec.name])
    return value


def _rebuild_attrs(kind: Any, data: dict[str, Any]) -> Any:
    return kind(**{spec.alias: data[spec.name] for spec in kind.__attrs_attrs__ if spec.init and spec.name in data})


_REBUILDERS: dict[str, Callable[[Any, Any], Any]] = {
    "enum": lambda kind, data: kind(data),
    "dataclass": _rebuild_dataclass,
    "attrs": _rebuild_attrs,
    "pydantic": lambda kind, data: kind.model_validate(data),
}
_CONTAINERS: dict[str, Callable[[Iterator[Any]], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": dict,
}


def _decode_timezone(name: str) -> dt.tzinfo:
    if name == "UTC":
        return dt.UTC
    if name.startswith("UTC") and name[3:4] in "+-":
        offset = dt.datetime.fromisoformat(f"2000-01-01T00:00{name[3:]}").utcoffset()
        return dt.timezone(offset or dt.timedelta())
    if name[:1] in "+-":
        return _decode_timezone("UTC" + name)
    return zoneinfo.ZoneInfo(name)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "str": lambda value: value.encode("ascii").decode("unicode_escape"),
    "nan": float,
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timedelta": lambda value: dt.timedelta(seconds=value),
    "timezone": _decode_timezone,
    "decimal": decimal.Decimal,
    "bytes": base64.b64decode,
    "uuid": uuid.UUID,
    "path": pathlib.Path,
}


def plain(document: Json) -> Json:
    """The JSON that people see: tuples and sets as lists, dates and decimals as text, objects as their data."""
    if type(document) is list:
        return [plain(item) for item in document]
    if type(document) is not dict:
        return document
    if TYPE not in document:
        return {key: plain(item) for key, item in document.items()}
    name, value = document[TYPE], document[VALUE]
    if name == "dict":
        return {_plain_key(key): plain(item) for key, item in value}
    if name in _REBUILDERS:
        return plain(value["data"])
    return plain(value)


def _plain_key(document: Json) -> str:
    key = plain(document)
    return key if isinstance(key, str) else json.dumps(key, ensure_ascii=False)


# ── frames ──────────────────────────────────────────────────────────────────────────────────────────────────


def pack(message: Json, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """The frame of a message. Raises :class:`FrameTooLarge`."""
    body = _ENCODER.encode(message).encode("utf-8", "surrogatepass")
    if len(body) > max_bytes:
        raise FrameTooLarge(f"The message {_op(message)}", len(body), max_bytes)
    return _LENGTH.pack(len(body)) + body


def _op(message: Json) -> str:
    return repr(message.get("op", "answer")) if isinstance(message, dict) else "?"


class Frames:
    """Collects bytes as they come and gives the messages that are complete."""

    __slots__ = ("_buffer", "_max_bytes")

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._buffer = bytearray()
        self._max_bytes = max_bytes

    def feed(self, data: bytes) -> list[Json]:
        """The messages that `data` completes, in order. Raises FrameTooLarge, or WireError for what is no JSON."""
        buffer = self._buffer
        buffer += data
        messages: list[Json] = []
        start = 0
        while len(buffer) - start >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(buffer, start)
            if size > self._max_bytes:
                raise FrameTooLarge("A message that came in", size, self._max_bytes)
            end = start + _LENGTH.size + size
            if len(buffer) < end:
                break
            messages.append(_parse(bytes(buffer[start + _LENGTH.size : end])))
            start = end
        del buffer[:start]
        return messages

    @property
    def partial(self) -> bool:
        """Whether the beginning of a frame waits for its rest."""
        return bool(self._buffer)


def _parse(body: bytes) -> Json:
    try:
        return _DECODER.decode(body.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise WireError(f"A frame is not UTF-8 JSON: {error}") from error


class Channel:
    """A socket that sends and receives messages and never blocks: for a selector loop.

    File descriptors come along with the bytes that they were sent with and are collected in ``fds``.
    """

    def __init__(self, sock: socket.socket, max_bytes: int = DEFAULT_MAX_BYTES, *, max_fds: int = 0) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.closed = False
        self.fds: list[int] = []
        self._max_bytes, self._max_fds = max_bytes, max_fds
        self._frames = Frames(max_bytes)
        self._out: list[tuple[bytes, tuple[int, ...], bool]] = []

    def fileno(self) -> int:
        return self.sock.fileno()

    @property
    def wants_write(self) -> bool:
        return bool(self._out) and not self.closed

    def send(self, message: Json, fds: tuple[int, ...] = (), *, close_fds: bool = False) -> None:
        """Send as much as the socket takes now, keep the rest for :meth:`flush`. A broken peer only sets ``closed``.

        `close_fds`: close our copies of `fds` as soon as they are on their way.
        """
        self._out.append((pack(message, self._max_bytes), fds, close_fds))
        self.flush()

    def flush(self) -> None:
        while self._out and not self.closed:
            data, fds, close_fds = self._out[0]
            try:
                sent = socket.send_fds(self.sock, [data], list(fds)) if fds else self.sock.send(data)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.closed = True
                break
            if close_fds:
                _close_all(fds)
            if sent == len(data):
                del self._out[0]
            else:
                self._out[0] = (data[sent:], (), False)
        if self.closed:
            for _, fds, close_fds in self._out:
                if close_fds:
                    _close_all(fds)
            self._out.clear()

    def receive(self) -> list[Json]:
        """The messages that have come. Sets ``closed`` at the end of the stream."""
        messages: list[Json] = []
        while not self.closed:
            try:
                if self._max_fds:
                    data, fds, _, _ = socket.recv_fds(self.sock, _CHUNK, self._max_fds)
                    self.fds += fds
                else:
                    data = self.sock.recv(_CHUNK)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                data = b""
            if not data:
                self.closed = True
                break
            messages += self._frames.feed(data)
            # With descriptors a part of a burst is all that comes at once; a selector calls again for the rest.
            if len(data) < _CHUNK:
                break
        return messages

    def take_fds(self, count: int) -> list[int]:
        """The next `count` file descriptors that came along; they now belong to the caller."""
        taken, self.fds = self.fds[:count], self.fds[count:]
        return taken

    def close(self) -> None:
        self.closed = True
        _close_all(tuple(self.fds))
        self.fds = []
        self.flush()
        self.sock.close()


def _close_all(fds: tuple[int, ...]) -> None:
    for fd in fds:
        os.close(fd)


class BlockingChannel:
    """The child's end: sends and waits. One message at a time; the caller serialises threads."""

    def __init__(self, sock: socket.socket, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        sock.setblocking(True)
        self.sock = sock
        self._max_bytes = max_bytes
        self._frames = Frames(max_bytes)
        self._ready: list[Json] = []

    def send(self, message: Json) -> None:
        """Raises OSError when the other side is gone, FrameTooLarge before a byte is sent."""
        self.sock.sendall(pack(message, self._max_bytes))

    def receive(self) -> Json:
        """The next message; raises EOFError when the other side is gone."""
        while not self._ready:
            data = self.sock.recv(_CHUNK)
            if not data:
                raise EOFError("The supervisor closed the connection.")
            self._ready = self._frames.feed(data)
        return self._ready.pop(0)
