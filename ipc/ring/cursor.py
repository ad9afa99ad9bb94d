"""A cursor: a subscriber that sees messages without taking them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import EMPTY, GONE, OK, TOO_SMALL
from shmbroker.ipc._native import ffi, lib

if TYPE_CHECKING:
    from shmbroker.ipc.ring.port import Port

RELEASE_EVERY = 32
"""A gate is moved once for so many messages: it is one more cache line that producers read."""


class Cursor:
    """Gating: sees every message.  Lossy: counts in `missed` what it was too late for."""

    def __init__(self, port: Port, cursor: Any) -> None:
        self._owner = port
        self._cursor = cursor
        self._message = ffi.new("sb_message *")
        self._unreleased = 0
        self._room = ffi.new("char[]", 1 << 16)

    @property
    def is_lossy(self) -> bool:
        lossy: bool = self._cursor.gate < 0
        return lossy

    @property
    def missed(self) -> int:
        missed: int = self._cursor.missed
        return missed

    @property
    def position(self) -> int:
        """The position of the next message."""
        position: int = self._cursor.position
        return position

    def next(self, spins: int = 2000) -> bytes | None:
        """A copy of the next message's body, None if there is none yet."""
        if self.is_lossy:
            return self._next_lossy(spins)
        code: int = lib.sb_cursor_next_wait(self._cursor, self._message, spins)
        if code == OK:
            body: bytes = ffi.buffer(self._message.body, self._message.length)[:]
            self._unreleased += 1
            if self._unreleased >= RELEASE_EVERY:
                self.release()
            return body
        self.release()
        if code == EMPTY:
            return None
        raise self._owner._error(code, "reading")

    def _next_lossy(self, spins: int) -> bytes | None:
        while True:
            room, cursor = self._room, self._cursor
            length: int = lib.sb_cursor_copy_wait(cursor, self._message, room, len(room), spins)
            if length >= 0:
                body: bytes = ffi.buffer(room, length)[:]
                return body
            if length == EMPTY:
                return None
            if length == TOO_SMALL:
                self._room = ffi.new("char[]", self._message.length)
            elif length != GONE:
                raise self._owner._error(length, "reading")

    def release(self) -> None:
        """All messages that `next` has returned are dealt with: the ring may use them again."""
        if self._unreleased and not self.is_lossy:
            self._unreleased = 0
            code: int = lib.sb_cursor_release(self._cursor)
            if code < 0:
                raise self._owner._error(code, "the gate of a cursor of")

    def close(self) -> None:
        """Give up our gate."""
        lib.sb_cursor_close(self._cursor)
