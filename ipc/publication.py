"""A publication: one message on its way through an exchange to all queues that are to have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import FULL, INTERRUPTED
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.detail import detail_of
from shmbroker.ipc.errors import Error, Unroutable, error_for
from shmbroker.ipc.outgoing import id_bytes, outgoing, parts
from shmbroker.ipc.scheduled import When, schedule
from shmbroker.ipc.timeout import Deadline

if TYPE_CHECKING:
    from shmbroker.ipc.exchange import Exchange

_publish = lib.sb_exchange_publish_with


class Publication:
    """Remembers which queues have the message, so that it can go on where one had no room."""

    __slots__ = ("_done", "_exchange", "_kept", "_mandatory", "_message", "_scheduled")

    def __init__(
        self,
        exchange: Exchange,
        body: Any,
        key: str,
        properties: Mapping[str, Any] | None,
        ttl: float | None,
        priority: int | None,
        message_id: str | bytes | None,
        mandatory: bool,
        deliver_after: float | None = None,
        deliver_at: When | None = None,
    ) -> None:
        self._exchange = exchange
        self._mandatory = mandatory
        self._message = (*parts(body, key, properties, ttl, priority), *id_bytes(message_id))
        self._scheduled: Any = None
        if deliver_after is not None or deliver_at is not None:
            self._scheduled, *self._kept = outgoing(
                body, key, properties, ttl, priority, message_id
            )
            schedule(self._scheduled, deliver_after, deliver_at)
        self._done = ffi.new("int64_t *")

    def go_on(self, timeout_ns: int) -> int:
        """Publish to those that are left: how many have it, all told; QueueFull if one is full."""
        done = self._done
        code = self._publish(timeout_ns)
        if code == INTERRUPTED:
            deadline = Deadline(timeout_ns)
            while code == INTERRUPTED:
                code = self._publish(deadline.left())
        if code < 0:
            had = f" ({done[0]} queues have the message)" if done[0] else ""
            raise self._error(code, had)
        if code == 0 and self._mandatory:
            raise Unroutable(
                f"exchange {self._exchange.name!r}: no binding takes a message with key "
                f"{self._message[2].decode()!r}, and it is mandatory: bind a queue, or declare an "
                "alternate exchange"
            )
        return code

    def _publish(self, timeout_ns: int) -> int:
        exchange, done = self._exchange._exchange, self._done
        if self._scheduled is not None:
            code: int = lib.sb_exchange_publish(exchange, self._scheduled, timeout_ns, done)
        else:
            code = _publish(exchange, *self._message, timeout_ns, done)
        return code

    def full_queue(self) -> Any:
        """After QueueFull: the queue, as C knows it, that had no room."""
        queue = ffi.new("sb_queue **")
        code = lib.sb_exchange_full(
            self._exchange._exchange, *self._message[2:6], self._done[0], queue
        )
        if code < 0:
            raise self._error(code, "")
        if queue[0] == ffi.NULL:
            raise self._error(FULL, ", whose bindings have changed meanwhile")
        return queue[0]

    def _error(self, code: int, had: str) -> Error:
        detail = detail_of(code)
        what = f"publishing to exchange {self._exchange.name!r}{had}"
        return error_for(code, what, ffi.errno, detail)
