"""Requests: a message that asks for a reply, and the reply (native/request.c, native/reply.c)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.codes import INTERRUPTED, OK
from shmbroker.ipc import properties as maps
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc._quick import lib as quick
from shmbroker.ipc.errors import InvalidArgument
from shmbroker.ipc.outgoing import parts
from shmbroker.ipc.timeout import Deadline, nanoseconds

if TYPE_CHECKING:
    from shmbroker.ipc.queue import Queue

REPLY_TO: Final = "JMSReplyTo"
CORRELATION: Final = "JMSCorrelationID"


class Reply:
    """What came back; it is copied and acknowledged."""

    __slots__ = ("_properties", "body")

    def __init__(self, body: bytes, packed: bytes) -> None:
        self.body = body
        self._properties = packed

    @property
    def properties(self) -> dict[str, Any]:
        """What the replier has given with it."""
        given = maps.unpack(self._properties)
        given.pop(CORRELATION, None)
        return given

    def __repr__(self) -> str:
        return f"<Reply {self.body[:32]!r}>"


def check_properties(properties: Mapping[str, Any] | None) -> None:
    for name in (REPLY_TO, CORRELATION):
        if properties is not None and name in properties:
            raise InvalidArgument(f"property {name} is what a request itself sets: leave it out")


def request(
    queue: Queue,
    body: Any,
    key: str | None,
    properties: Mapping[str, Any] | None,
    timeout: float | None,
) -> Reply:
    if properties is not None:
        check_properties(properties)
    message = parts(body, key, properties, None, None)
    timeout_ns = nanoseconds(timeout)
    asked = ffi.new("sb_asked *")
    try:
        code: int = lib.sb_request_with(queue._queue, *message, asked, timeout_ns)
        if code == INTERRUPTED:
            deadline = Deadline(timeout_ns)
            while code == INTERRUPTED and not asked.requester:
                code = lib.sb_request_with(queue._queue, *message, asked, deadline.left())
            while code == INTERRUPTED:
                code = lib.sb_await_reply(asked, deadline.left())
        if code != OK:
            raise queue._error(code, "a request to")
        reply = asked.reply
        length = ffi.new("int64_t *")
        packed = lib.sb_message_properties(ffi.addressof(reply), length)
        copied = ffi.buffer(packed, length[0])[:]
        return Reply(ffi.buffer(ffi.cast("char *", reply.body), reply.length)[:], copied)
    finally:
        quick.sb_asked_end(asked)
