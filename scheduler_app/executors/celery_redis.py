"""Kombu's transport for Redis, mended: a worker must outlive its broker.

When Redis goes away, Celery closes the connection and then lets the channel put back what was not acknowledged. By then
the channel no longer knows its connection's address, and fails with an AttributeError, which Celery does not take for a
lost connection: the worker ends, with all attempts that it runs (kombu 5.7.0). Here the channel remembers the address:
it puts the messages back when Redis is there again, and else fails as a lost connection does.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import redis


class _Remembers:
    def __init__(self, connection: Any, *args: Any, **options: Any) -> None:
        self._address = connection.client
        super().__init__(connection, *args, **options)

    def _connparams(self, *args: Any, **options: Any) -> Any:
        transport = self.connection  # type: ignore[attr-defined]
        if transport.client is not None:
            return super()._connparams(*args, **options)  # type: ignore[misc]
        transport.client = self._address
        try:
            return super()._connparams(*args, **options)  # type: ignore[misc]
        finally:
            transport.client = None


class Channel(_Remembers, redis.Channel):  # type: ignore[misc]
    pass


class SentinelChannel(_Remembers, redis.SentinelChannel):  # type: ignore[misc]
    pass


class Transport(redis.Transport):  # type: ignore[misc]
    Channel = Channel


class SentinelTransport(redis.SentinelTransport):  # type: ignore[misc]
    Channel = SentinelChannel


#: scheme of a URL → its transport, in place of kombu's own
ALIASES = {
    "redis": f"{__name__}:Transport",
    "rediss": f"{__name__}:Transport",
    "sentinel": f"{__name__}:SentinelTransport",
}
