"""An end of a journal beside the disk: reads frames as they are written, and answers for them.

A thin handle over ipc/journal/end.c.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Protocol

from shmbroker.core.codes import EMPTY, INTERRUPTED, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import ConnectionClosed, error_for
from shmbroker.ipc.base.timeout import nanoseconds

BYTES_MAX = 16 << 20


@dataclass(frozen=True, slots=True)
class Frame:
    """What one commit has written."""

    number: int
    after: int
    """The number of the frame before; 0: the first of this writer.  What else was written between
    the two, nobody has."""
    epoch: int
    records: memoryview
    """As in the file, without a copy: the memory stays as long as this view."""
    seal: int = 0
    """The CRC of its segment's header."""


@dataclass(frozen=True, slots=True)
class EndState:
    """How far an end is."""

    counts: bool
    done: int
    told: int
    frames: int
    bytes: int


class Writer(Protocol):
    """A Journal or a Journaler."""

    def _attach(self, options: Any, made: Any) -> int: ...


class End(Closable):
    """For one thread, which is not the writer's.  Close it before the writer."""

    def __init__(
        self,
        writer: Writer,
        name: str,
        *,
        timeout: float,
        bytes_max: int = BYTES_MAX,
        counts: bool = True,
        after: int = 0,
    ) -> None:
        """Dropped without progress for `timeout` seconds; `bytes_max` bytes are in flight at most.
        `after`: the last frame that it has; 0: from the next one on."""
        self.name = name
        self._name = ffi.new("char[]", os.fsencode(name))
        options = ffi.new("sb_end_options *")
        options.name, options.timeout_ns = self._name, nanoseconds(timeout)
        options.bytes_max, options.counts, options.after = bytes_max, counts, after
        made = ffi.new("sb_end **")
        self._end: Any = ffi.NULL
        self._check(writer._attach(options, made))
        self._end = made[0]
        self._told = ffi.new("sb_end_frame *")

    def _check(self, code: int) -> int:
        if code < 0:
            raise error_for(code, f"end {self.name!r}", ffi.errno, detail_of(code))
        return code

    def _attached(self) -> Any:
        if self._end == ffi.NULL:
            raise ConnectionClosed(f"end {self.name!r} was detached")
        return self._end

    def read(self, timeout: float | None = 0) -> Frame | None:
        """The next frame, which may not be on the disk yet; None: none came in time.

        ConnectionClosed: it was dropped, or the writer has ended.
        """
        code: int = lib.sb_end_next(self._attached(), self._told)
        if code == EMPTY and timeout != 0:
            ready = lib.sb_end_wait(self._attached(), nanoseconds(timeout))
            if ready not in (OK, EMPTY, INTERRUPTED):
                self._check(ready)
            code = lib.sb_end_next(self._attached(), self._told)
        if code == EMPTY:
            return None
        self._check(code)
        told = self._told
        memory = ffi.gc(ffi.cast("char *", told.memory), lib.sb_end_frame_free, told.bytes)
        begin = ffi.cast("char *", told.records) - memory
        records = memoryview(ffi.buffer(memory, begin + told.bytes))[begin:]
        return Frame(told.number, told.after, told.epoch, records, told.seal)

    def fileno(self) -> int:
        """Readable as long as `read` has something to say: for poll, not to be read."""
        return int(lib.sb_end_descriptor(self._attached()))

    def done(self, number: int) -> None:
        """All frames up to this one are done with."""
        code: int = lib.sb_end_done(self._end or self._attached(), number)
        if code < 0:
            self._check(code)

    def count(self) -> int:
        """It is in sync: from now on a replica, which has a gate of its name in each durable queue.

        The number of the last frame before.
        """
        return self._check(lib.sb_end_count(self._attached()))

    def state(self) -> EndState:
        told = ffi.new("sb_end_state *")
        lib.sb_end_state_of(self._attached(), told)
        return EndState(bool(told.counts), told.done, told.told, told.frames, told.bytes)

    def close(self) -> None:
        """Detach: nothing waits for it any more."""
        if self._end != ffi.NULL:
            lib.sb_end_detach(self._end)
            self._end = ffi.NULL
