"""A port: what one thread publishes to a ring and takes from it with.

Codes of the kernels become exceptions here and nowhere else.  The paths that are taken for every
message look at the sign of one number only.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from struct import iter_unpack
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import DAMAGED, EMPTY, FULL, REVOKED, TOO_SMALL
from shmbroker.core.layout import COPIED_BYTES, GATE_FLEETING, GATE_LASTING
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc._quick import lib as quick
from shmbroker.ipc.base.errors import Error, error_for
from shmbroker.ipc.message.loan import Loan
from shmbroker.ipc.message.message import PortMessage, Uncopied
from shmbroker.ipc.ring.cursor import Cursor

if TYPE_CHECKING:
    from shmbroker.ipc.queue.queue import Queue
    from shmbroker.ipc.ring.ring import Ring

SPINS = 2000
"""How often a call looks before it says that there is nothing: some 50 us."""

BATCH = 256
BUFFER_BYTES = 1 << 16

LOOKS = 64
"""So often we look before we let other threads run (binding.py)."""

_publish = quick.sb_port_publish
_take = quick.sb_port_take_next
_receive = quick.sb_port_receive_next
_buffer = ffi.buffer


class Port:
    """Belongs to one thread at a time."""

    __slots__ = (
        "__weakref__",
        "_arena",
        "_bytes",
        "_capacity",
        "_ends",
        "_is_closed",
        "_messages",
        "_port",
        "_room",
        "_spare",
        "ring",
    )

    def __init__(self, ring: Ring | Queue, port: Any) -> None:
        self.ring = ring
        self._port = port
        self._is_closed = False
        self._messages = ffi.new("sb_message[]", BATCH)
        # one buffer over all bodies: cutting from it is faster than making one for each
        self._arena = _buffer(lib.sb_port_arena_data(port), lib.sb_port_arena_data_bytes(port))
        self._spare: list[Any] = []
        self._ends = array("q", bytes(8 * (BATCH + 1)))
        self._make_room(BUFFER_BYTES)

    def _make_room(self, capacity: int) -> None:
        self._room = ffi.new("char[]", capacity)
        self._bytes = _buffer(self._room)
        self._capacity = capacity
        lib.sb_port_room(self._port, self._room, capacity)

    @property
    def address(self) -> int:
        """For compiled code: the first argument of the functions in shmbroker.kernels."""
        return int(ffi.cast("intptr_t", self._port))

    def _error(self, code: int, doing: str) -> Error:
        return error_for(code, f"{doing} ring {self.ring.name!r}", ffi.errno)

    # --- publishing ---------------------------------------------------------------------------

    def publish(self, body: bytes, spins: int = SPINS) -> int:
        """Publish a copy of bytes: the message's position.  QueueFull if there is no room."""
        position: int = _publish(self._port, body, len(body))
        if position < 0:
            return self._publish_rarely(position, body, len(body), spins)
        return position

    def _publish_rarely(self, code: int, body: Any, length: int, spins: int) -> int:
        if code == FULL and spins > 0:
            code = lib.sb_port_publish_wait(self._port, body, length, spins)
        if code < 0:
            raise self._error(code, "publishing to")
        return code

    def publish_buffer(self, body: bytearray | memoryview | bytes, spins: int = SPINS) -> int:
        """publish for anything with the buffer protocol: a bytearray, an array, a view."""
        held = ffi.from_buffer(body)
        position: int = _publish(self._port, held, len(held))
        if position < 0:
            return self._publish_rarely(position, held, len(held), spins)
        return position

    def publish_many(self, bodies: Sequence[bytes]) -> int:
        """Publish several messages at once: how many there was room for, from the first on."""
        lengths = array("q", map(len, bodies))
        done: int = lib.sb_port_publish_many(
            self._port, b"".join(bodies), ffi.from_buffer("int64_t[]", lengths), len(lengths)
        )
        if done < 0:
            if done == FULL:
                return 0
            raise self._error(done, "publishing to")
        return done

    def loan(self, length: int) -> Loan:
        """Memory in the arena to fill and publish in place."""
        chunk: int = lib.sb_port_loan(self._port, length)
        if chunk < 0:
            raise self._error(chunk, "a loan from")
        return Loan(self, self._port, chunk, length)

    # --- taking -------------------------------------------------------------------------------

    def take(self, spins: int = SPINS) -> PortMessage:
        """Take the oldest message; Empty if there is none."""
        message = self.try_take(spins)
        if message is None:
            raise self._error(EMPTY, "taking from")
        return message

    def try_take(self, spins: int = SPINS) -> PortMessage | None:
        """Take the oldest message; None if there is none."""
        spare = self._spare
        message = spare.pop() if spare else ffi.new("sb_message *")
        code: int = _take(self._port, message, LOOKS)
        if code == EMPTY and spins > LOOKS:
            code = lib.sb_port_take_next(self._port, message, spins)
        if code < 0:
            spare.append(message)
            if code == EMPTY:
                return None
            raise self._error(code, "taking from")
        if code > COPIED_BYTES:
            return Uncopied(self._port, message, self._arena, spare)
        return PortMessage(self._port, message, self._arena, spare, self._bytes[:code])

    def receive(self, spins: int = SPINS) -> bytes | None:
        """Take, copy and acknowledge the oldest message; None if there is none."""
        length: int = _receive(self._port, LOOKS)
        if length == EMPTY and spins > LOOKS:
            length = lib.sb_port_receive_next(self._port, spins)
        if length < 0:
            return self._receive_rarely(length, lib.sb_port_received(self._port))
        body: bytes = self._bytes[:length]
        return body

    def _receive_rarely(self, code: int, message: Any) -> bytes | None:
        if code == EMPTY:
            return None
        if code != TOO_SMALL:
            raise self._error(code, "receiving from")
        # the message is ours: copy it from where it is
        body: bytes = _buffer(message.body, message.length)[:]
        if lib.sb_port_ack(self._port, message) == REVOKED:
            raise self._error(REVOKED, "receiving from")
        return body

    def receive_many(self, count: int = BATCH, spins: int = SPINS) -> list[bytes]:
        """receive for up to count messages at once; an empty list if there is none."""
        ends = self._ends
        count = min(count, BATCH)
        taken: int = lib.sb_port_receive_many_wait(
            self._port,
            self._messages,
            count,
            self._room,
            self._capacity,
            ffi.from_buffer("int64_t[]", ends),
            spins,
        )
        if taken < 0:
            one = self._receive_rarely(taken, self._messages + 0)
            return [] if one is None else [one]
        whole = self._bytes[: ends[taken - 1]]
        if ends[count] > 0:
            return [body for (body,) in iter_unpack(f"{ends[count]}s", whole)]
        return [whole[start:end] for start, end in pairwise((0, *ends[:taken]))]

    # --- watching -----------------------------------------------------------------------------

    def subscribe(self, *, from_now: bool = True, lasting: bool = False) -> Cursor:
        """A gating cursor: sees every message, and holds the ring back while it is slow."""
        cursor = ffi.new("sb_cursor *")
        kind = GATE_LASTING if lasting else GATE_FLEETING
        code: int = lib.sb_cursor_open(cursor, self._port, kind, from_now)
        if code < 0:
            raise self._error(code, "subscribing to")
        return Cursor(self, cursor)

    def subscribe_lossy(self, *, from_now: bool = True) -> Cursor:
        """A cursor that holds nobody back and may miss messages."""
        cursor = ffi.new("sb_cursor *")
        code: int = lib.sb_cursor_open_lossy(cursor, self._port, from_now)
        if code < 0:
            raise self._error(code, "subscribing to")
        return Cursor(self, cursor)

    def peek(self, position: int) -> bytes | None:
        """A copy of the message at a position, None if it is not published; MessageGone if past."""
        room, capacity = self._room, self._capacity
        length: int = lib.sb_port_peek(self._port, position, self._messages, room, capacity)
        if length == TOO_SMALL:
            self._make_room(self._messages[0].length)
            return self.peek(position)
        if length < 0:
            if length == EMPTY:
                return None
            raise self._error(length, f"looking at position {position} of")
        body: bytes = self._bytes[:length]
        return body

    # --- repair -------------------------------------------------------------------------------

    def number(self, identity: int) -> int:
        """Number what we publish, as the producer with this identity: the last number it used."""
        last: int = lib.sb_port_number(self._port, identity)
        if last < 0:
            raise self._error(last, f"producer {identity} of")
        return last

    def repair(self, alive: Sequence[int], now_ms: int = 0, grace_ms: int = 0) -> int:
        """Repair what those have left who are not in `alive`: how many repairs."""
        bitmap = array("Q", bytes(4096 // 8))
        for owner in alive:
            bitmap[owner >> 6] |= 1 << (owner & 63)
        repaired: int = lib.sb_port_repair(
            self._port, ffi.from_buffer("uint64_t[]", bitmap), now_ms, grace_ms
        )
        if repaired == DAMAGED:
            raise self._error(repaired, "repairing")
        return repaired

    def drop_oldest(self) -> bool:
        """Make room by dropping the oldest message; False if somebody has it."""
        freed: int = lib.sb_port_drop_oldest(self._port)
        return freed > 0

    @property
    def tail(self) -> int:
        """The position that the next message will have."""
        tail: int = lib.sb_port_true_tail(self._port)
        if tail < 0:
            raise self._error(tail, "looking at")
        return tail

    def trim(self) -> int:
        """Return memory that we hold and do not use."""
        trimmed: int = lib.sb_port_trim(self._port)
        return trimmed

    def disconnect(self) -> None:
        """Do nothing any more: the connection that we are of is closed."""
        if not self._is_closed:
            self._is_closed = True
            self._port = ffi.new("sb_port *")
            lib.sb_port_end(self._port)
            self._make_room(0)

    def close(self) -> None:
        """Return all memory that we hold; messages that we have taken stay taken.

        Whatever is called afterwards raises ConnectionClosed, and compiled loops that go on with
        the address are answered CLOSED.
        """
        if not self._is_closed:
            port = self._port
            self.disconnect()
            self.ring._port_close(port)
