"""A message that was taken and is not acknowledged yet."""

from __future__ import annotations

from collections.abc import Mapping
from struct import unpack_from
from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.codes import FULL, INTERRUPTED, INVALID, REVOKED
from shmbroker.core.layout import CHUNK_EXPIRY_AT
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc._quick import lib as quick
from shmbroker.ipc._taken import Taken
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import AlreadyDealtWith, DeliveryRevoked, error_for
from shmbroker.ipc.base.pickled import refuse_pickle
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.message import properties
from shmbroker.ipc.message.copied import deliveries_of, has_expiry, priority_of, time_of
from shmbroker.ipc.message.group import group_of
from shmbroker.ipc.message.outgoing import as_buffer
from shmbroker.ipc.message.properties import check_reply_to, message_id_in, pack
from shmbroker.ipc.message.serializer import value_of

if TYPE_CHECKING:
    from datetime import datetime
    from types import TracebackType


_ADDRESS = ffi.typeof("sb_message *")
DEALT: Final = ("acknowledged", "given back", "rejected")


def expiry_of(message: Any) -> int:
    """When a message in hand expires, in monotonic nanoseconds of this boot; 0 is never."""
    if not has_expiry(message.mark):
        return 0
    at = ffi.cast("const char *", message.chunk) + CHUNK_EXPIRY_AT
    (expiry,) = unpack_from("<q", ffi.buffer(at, 8))
    return int(expiry)


class InHand:
    """What was taken, and what is known of it until it is dealt with.

    Acknowledged on a clean exit of `with`, given back on an exception.
    """

    __slots__ = ()

    _message: Any
    """The structure of C; None once it was dealt with."""
    _arena: Any
    _dealt: int
    """Which of DEALT, if it is none of the first: acknowledging must be fast."""

    def ack(self) -> None:
        raise NotImplementedError

    def give_back(self) -> None:
        raise NotImplementedError

    def reject(self) -> None:
        raise NotImplementedError

    @property
    def view(self) -> memoryview:
        """The body where it lies: valid until the message is acknowledged or given back."""
        message = self._message or self._dealt_with()
        start = message.offset
        return memoryview(self._arena)[start : start + message.length].toreadonly()

    @property
    def key(self) -> str | None:
        """The key that it was published with."""
        length = ffi.new("int64_t *")
        key = lib.sb_message_key(self._message or self._dealt_with(), length)
        return ffi.buffer(key, length[0])[:].decode(errors="replace") if length[0] else None

    @property
    def _packed(self) -> bytes:
        """Its properties as they came."""
        length = ffi.new("int64_t *")
        packed = lib.sb_message_properties(self._message or self._dealt_with(), length)
        return bytes(ffi.buffer(packed, length[0]))

    @property
    def properties(self) -> dict[str, Any]:
        """The properties that it was published with."""
        return properties.unpack(self._packed)

    @property
    def message_id(self) -> str | bytes | None:
        """The id that it was published with."""
        return message_id_in(self.properties)

    @property
    def position(self) -> int:
        position: int = (self._message or self._dealt_with()).position
        return position

    @property
    def deliveries(self) -> int:
        """How often it was delivered before."""
        message = self._message or self._dealt_with()
        return deliveries_of(message.word, message.mark)

    @property
    def redelivered(self) -> bool:
        """It was delivered before."""
        return self.deliveries > 0

    @property
    def priority(self) -> int | None:
        """The priority that it was published with, 0 to 9; None: without one."""
        return priority_of((self._message or self._dealt_with()).mark)

    @property
    def expires_at(self) -> datetime | None:
        """When it expires, in UTC by the clock of now; None: never."""
        return time_of(expiry_of(self._message or self._dealt_with()))

    @property
    def published_at(self) -> int:
        """Nanoseconds since the epoch, 0 if unknown."""
        published: int = lib.sb_message_published_at(self._message or self._dealt_with())
        return published

    @property
    def is_in_hand(self) -> bool:
        """False once it was acknowledged, given back or rejected."""
        return self._message is not None

    def nack(self, *, requeue: bool = True) -> None:
        """give_back, or without `requeue` reject."""
        if requeue:
            self.give_back()
        else:
            self.reject()

    def _detail(self, code: int) -> str:
        return ""

    def _dealt_with(self) -> Any:
        raise AlreadyDealtWith(
            f"this message was already {self._how()}: read what you need of it before that"
        )

    def _how(self) -> str:
        return DEALT[getattr(self, "_dealt", 0)]

    def _error(self, code: int, position: int) -> Exception:
        if code != REVOKED:
            return error_for(code, f"message {position}", detail=self._detail(code))
        return DeliveryRevoked(
            f"message {position}: the delivery was revoked; somebody else may have it"
        )

    __reduce__ = refuse_pickle

    def __repr__(self) -> str:
        message = self._message
        if message is None:
            return f"<{self._called()}, {self._how()}>"
        return f"<{self._called()}, position {message.position}, {message.length} bytes>"

    def _called(self) -> str:
        return "Message"

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self.is_in_hand:
            return  # dealt with inside
        if kind is None:
            self.ack()
        else:
            self.give_back()


class PortMessage(InHand):
    """A message of a port.

    What C knows of it lies in a structure that comes from spare ones and returns there when the
    message is dealt with: making one anew costs more than taking a message.
    """

    __slots__ = ("_arena", "_dealt", "_message", "_source", "_spare", "body")

    body: bytes
    """A copy of the body.  Of a large one it is made when it is asked for: do so before ack()."""

    def __init__(self, source: Any, message: Any, arena: Any, spare: Any, copied: bytes) -> None:
        self._source = source
        self._message = message
        self._arena = arena
        self._spare = spare
        self.body = copied

    def ack(self) -> None:
        """The message is dealt with; raises DeliveryRevoked if it is no longer ours."""
        message = self._message or self._dealt_with()
        self._message = None
        code = quick.sb_port_ack(self._source, message)
        self._spare.append(message)
        if code < 0:
            raise self._error(code, message.position)

    def give_back(self) -> None:
        """Let somebody else have it; raises DeliveryRevoked if it is no longer ours."""
        self._deal_with(1, quick.sb_port_give_back)

    def reject(self) -> None:
        """It is of no use to anybody: it is dropped and counted; DeliveryRevoked if not ours."""
        self._deal_with(2, quick.sb_port_reject)

    def _deal_with(self, dealt: int, call: Any) -> None:
        message = self._message or self._dealt_with()
        self._message = None
        self._dealt = dealt
        code = call(self._source, message)
        self._spare.append(message)
        if code < 0:
            raise self._error(code, message.position)


class Message(Taken, InHand):
    """A message of a queue.

    One that is dropped without being dealt with is given back: an exception at any moment, such
    as Ctrl-C between taking it and entering `with`, leaves it to others.
    """

    __slots__ = ()

    @property
    def _message(self) -> Any:
        address = self._in_hand
        return ffi.cast(_ADDRESS, address) if address else None

    @property
    def is_in_hand(self) -> bool:
        """False once it was acknowledged, given back or rejected."""
        return self._in_hand != 0

    @property
    def _source(self) -> Any:
        return self._kept.queue

    @property
    def _arena(self) -> Any:
        return self._kept.arena

    def give_back(self) -> None:
        """Let somebody else have it; raises DeliveryRevoked if it is no longer ours."""
        self._deal_with(1, quick.sb_give_back)

    def _untake(self) -> None:
        """Let somebody else have it, as if it had not been taken."""
        self._deal_with(1, lib.sb_untake)

    def reject(self) -> None:
        """It is of no use to anybody: it goes to the dead-letter queue, or is dropped and counted.

        DeliveryRevoked if it is not ours; QueueFull if there is no room, then it is given back.
        """
        self._deal_with(2, quick.sb_reject)

    def _deal_with(self, dealt: int, call: Any) -> None:
        message = self._message or self._dealt_with()
        self._in_hand = 0
        self._dealt = dealt
        code = call(self._source, message)
        if code < 0:
            raise self._error(code, message.position)

    def _refused(self, code: int, position: int) -> None:
        """What ack() raises."""
        raise self._error(code, position)

    def _detail(self, code: int) -> str:
        return detail_of(code)

    def _called(self) -> str:
        return f"Message of queue {self.queue!r}"

    @property
    def queue(self) -> str:
        """The name of the queue that it is from, also when it was dealt with."""
        name: bytes = ffi.string(lib.sb_queue_name(self._source))
        return name.decode()

    @property
    def value(self) -> Any:
        """The body as the serializer of the queue's handle reads it (docs/handles.md)."""
        return value_of(self.body, self._kept.codec)

    @property
    def reply_to(self) -> str | None:
        """The queue that a reply goes to; None if none is asked for."""
        return self.properties.get("JMSReplyTo")

    @property
    def group(self) -> str | None:
        """The group that it was published with."""
        return group_of(self.properties)

    @property
    def correlation_id(self) -> str | None:
        """What tells whoever asked to which request a reply belongs."""
        return self.properties.get("JMSCorrelationID")

    def reply(
        self,
        body: Any,
        *,
        properties: Mapping[str, Any] | None = None,
        timeout: Seconds | None = 1.0,
    ) -> None:
        """Answer a request, before it is acknowledged; RequesterLeft if nobody waits for it.

        A requester's own queue always has room; if JMSReplyTo names another one: QueueFull if it
        has none within the timeout.
        """
        message = self._message or self._dealt_with()
        if (codec := self._kept.codec) is not None:
            body = codec.dumps(body)
        held = body if type(body) is bytes else as_buffer(body)
        packed = pack(properties) if properties else b""
        answer = (self._source, message, held, len(held), packed, len(packed))
        code = quick.sb_reply_with(*answer, 0)
        if code == FULL and timeout != 0:
            deadline = Deadline(nanoseconds(timeout))
            code = lib.sb_reply_with(*answer, deadline.left())
            while code == INTERRUPTED:
                code = lib.sb_reply_with(*answer, deadline.left())
        if code < 0:
            what = f"replying to message {message.position}"
            error = error_for(code, what, ffi.errno, detail_of(code))
            if code == INVALID:
                check_reply_to(self.reply_to)
            raise error

    async def __aenter__(self) -> Message:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


class Uncopied(PortMessage):
    """The body is copied when it is asked for: it is large."""

    __slots__ = ()

    def __init__(self, source: Any, message: Any, arena: Any, spare: Any) -> None:
        self._source = source
        self._message = message
        self._arena = arena
        self._spare = spare

    @property
    def body(self) -> bytes:  # type: ignore[override]  # what reads it sees no difference
        message = self._message or self._dealt_with()
        start = message.offset
        copied: bytes = self._arena[start : start + message.length]
        return copied
