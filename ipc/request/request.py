"""Requests and their replies (request.c, reply.c)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.codes import INTERRUPTED, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc._quick import lib as quick
from shmbroker.ipc.base.errors import Error, InvalidArgument, NoReply
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.message import properties as maps
from shmbroker.ipc.message.outgoing import Parts, parts
from shmbroker.ipc.message.serializer import Codec, value_of
from shmbroker.ipc.selector.selection import Selection

if TYPE_CHECKING:
    from shmbroker.ipc.queue.opened import OpenedQueue

REPLY_TO: Final = "JMSReplyTo"
CORRELATION: Final = "JMSCorrelationID"
CORRELATION_DIGITS: Final = 16
BARE: Final = 3 + 1 + len(CORRELATION) + 1 + CORRELATION_DIGITS
"""So long are the properties of a reply to which none were given (ipc/request/request.c)."""

_request = lib.sb_request_with


class Reply:
    """What came back; it is copied and acknowledged."""

    __slots__ = ("_codec", "_properties", "body")

    _codec: Codec | None
    """That of the queue's handle, if it has one."""

    def __init__(self, body: bytes, packed: bytes) -> None:
        self.body = body
        self._properties = packed

    @property
    def properties(self) -> dict[str, Any]:
        """What the replier has given with it."""
        given = maps.unpack(self._properties)
        given.pop(CORRELATION, None)
        return given

    @property
    def value(self) -> Any:
        """The body as the serializer of the queue's handle reads it (docs/handles.md)."""
        return value_of(self.body, getattr(self, "_codec", None))

    def __repr__(self) -> str:
        return f"<Reply {self.body[:32]!r}>"


def check_properties(properties: Mapping[str, Any] | None) -> None:
    for name in (REPLY_TO, CORRELATION):
        if properties is not None and name in properties:
            raise InvalidArgument(f"property {name} is what a request itself sets: leave it out")


def request(
    queue: OpenedQueue,
    body: Any,
    key: str | None,
    properties: Mapping[str, Any] | None,
    timeout: Seconds | None,
) -> Reply:
    if properties is not None:
        check_properties(properties)
    message = parts(body, key, properties, None, None)
    timeout_ns = -1 if timeout is None else nanoseconds(timeout)
    deadline = Deadline(timeout_ns)
    spare = queue._broker._asked
    try:
        asked = spare.pop()
    except IndexError:
        asked = ffi.new("sb_asked *")
    try:
        code: int = _request(queue._queue, *message, asked, timeout_ns)
        if code == INTERRUPTED:
            code = _go_on(queue, message, asked, deadline)
        if code != OK:
            raise _failed(queue, code, asked)
        reply = asked.reply
        start, length = reply.offset, asked.properties_length
        packed = ffi.buffer(asked.properties, length)[:] if length > BARE else b""
        return Reply(queue._arena[start : start + reply.length], packed)
    finally:
        quick.sb_asked_end(asked)
        spare.append(asked)


def _failed(queue: OpenedQueue, code: int, asked: Any) -> Error:
    error = queue._error(code, "a request to")
    if isinstance(error, NoReply):
        replies = ffi.string(lib.sb_queue_name(asked.replies)).decode()
        error.ask_back = partial(take_back, queue, replies, asked.number)
    return error


def take_back(queue: OpenedQueue, replies: str, number: int) -> bool:
    """Take the request with this number, if it is there and nobody has it.

    Not as a consumer does: the queue may be paused, and its groups stay whose they are.
    """
    text = f"{REPLY_TO} = '{replies}' AND {CORRELATION} = '{number:0{CORRELATION_DIGITS}x}'"
    selection = Selection(text)
    message = ffi.new("sb_message *")
    position: int = lib.sb_find_selected(queue._queue, selection.selection)
    if position < 0 or lib.sb_take_at(queue._queue, position, message) != OK:
        return False
    return bool(lib.sb_ack(queue._queue, message) == OK)


def _go_on(queue: OpenedQueue, message: Parts, asked: Any, deadline: Deadline) -> int:
    """A signal came, while we waited for room or for the reply."""
    code = INTERRUPTED
    while code == INTERRUPTED and not asked.requester:
        code = _request(queue._queue, *message, asked, deadline.left())
    while code == INTERRUPTED:
        code = lib.sb_await_reply(asked, deadline.left())
    return code
