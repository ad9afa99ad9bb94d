"""Reading queues that others follow, without gates (core/original.py)."""

from __future__ import annotations

from dataclasses import dataclass
from mmap import mmap
from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.codes import DAMAGED, EMPTY, NOT_FOUND, OK, TOO_SMALL
from shmbroker.core.layout import (
    CURSOR_CONFIRMED,
    CURSOR_GATE,
    CURSOR_POSITION,
    ORIGINAL_BITS,
    ORIGINAL_BYTES,
    ORIGINAL_CURSOR,
    ORIGINAL_NUMBER,
    ORIGINAL_TOLD_BITS,
    ORIGINAL_TOLD_END,
    ORIGINALS_AT,
    ORIGINALS_COMMITTED,
    ORIGINALS_COUNT,
    ORIGINALS_TRANSACTIONS,
    READING_AT,
    READING_BYTES,
    READING_DAMAGED,
    READING_LATE,
    READING_LEFT,
    READING_MESSAGES,
    READING_NEEDED,
    READING_POSITION,
    READING_RECORDS,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import checked
from shmbroker.ipc.base.errors import error_for
from shmbroker.ipc.queue.inherited import identity_of
from shmbroker.ipc.ring.look import WORD, address_of, head_of, looking, port_to

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.queue.queue import Queue

WHAT: Final = "queues that others follow"
ROOM: Final = 1 << 20
BITS: Final = 64
"""In a word."""


@dataclass(frozen=True, slots=True)
class Read:
    memory: memoryview
    """The records, until the next read."""
    messages: int
    whole: bool
    """With it the reader has all that stood in the queues at one moment."""
    more: bool
    """There was no room for all of it."""


@dataclass(frozen=True, slots=True)
class Stands:
    identity: bytes
    """Of the queue: made again, it has another."""
    head: int
    tail: int
    slots: int
    next: int
    """What is read next."""


class Original:
    """One queue, from this position on; while it is looked at."""

    def __init__(self, queue: Queue, number: int, position: int) -> None:
        self.queue = queue
        self.is_durable = bool(lib.sb_is_durable(queue._queue))
        self.port = port_to(queue)
        words = lib.sb_queue_slots(queue._queue) // BITS + 1
        self._bits, self._told = (ffi.new("int64_t[]", words) for _ in range(2))
        self.memory = memory = ffi.new("int64_t[]", ORIGINAL_BYTES // WORD)
        cursor = ffi.cast("sb_cursor *", memory + ORIGINAL_CURSOR // WORD)
        checked(lib.sb_cursor_open_lossy(cursor, self.port, 0), WHAT)
        memory[(ORIGINAL_CURSOR + CURSOR_GATE) // WORD] = CURSOR_CONFIRMED
        memory[ORIGINAL_NUMBER // WORD] = number
        memory[ORIGINAL_BITS // WORD] = address_of(self._bits)
        memory[ORIGINAL_TOLD_BITS // WORD] = address_of(self._told)
        memory[ORIGINAL_TOLD_END // WORD] = -1
        at = (ORIGINAL_CURSOR + CURSOR_POSITION) // WORD
        memory[at] = max(memory[at], position)

    @property
    def next(self) -> int:
        return int(self.memory[(ORIGINAL_CURSOR + CURSOR_POSITION) // WORD])


class Originals(Closable):
    """Of one thread at a time.  Close it before its broker."""

    def __init__(self, broker: Broker, *, room: int = ROOM) -> None:
        broker._check_open()
        self._broker = broker
        self._transactions = lib.sb_transactions(broker._connection)
        # a mapping: memory that was not used before, of which only what is written takes room
        self._room = ffi.from_buffer("int64_t[]", mmap(-1, room))
        self._reading = ffi.new("int64_t[]", READING_BYTES // WORD)
        self._see = ffi.cast("int64_t (*)(void *)", ffi.addressof(lib, "sb_originals_see"))
        self._members: dict[int, Original] = {}
        self._all = self._listed()
        self._in_moment = False
        """One was seen, and not all of it is read."""
        self.is_held = False
        """Nothing was read because a transaction stands half way."""

    def _listed(self, committed: int = 0) -> Any:
        """All of them, as the kernels want them."""
        made = ffi.new("int64_t[]", ORIGINALS_AT // WORD + len(self._members))
        made[ORIGINALS_TRANSACTIONS // WORD] = address_of(self._transactions)
        made[ORIGINALS_COMMITTED // WORD] = committed
        made[ORIGINALS_COUNT // WORD] = len(self._members)
        for index, each in enumerate(self._members.values()):
            made[ORIGINALS_AT // WORD + index] = address_of(each.memory)
        return made

    def add(self, queue: Queue, number: int, position: int) -> None:
        """Under this number, from this position on."""
        self.drop(number)
        with looking(queue):
            if self._broker.participant:
                lib.sb_queue_serve(queue._queue)  # it keeps nobody from deleting it
            self._members[number] = Original(queue, number, position)
        self._all = self._listed()
        self._in_moment = False  # the newcomer belongs to the next one

    def drop(self, number: int) -> None:
        if self._members.pop(number, None) is not None:
            self._all = self._listed(self._all[ORIGINALS_COMMITTED // WORD])

    def stands(self, number: int) -> Stands:
        """NotFound: it was deleted."""
        one = self._members.get(number)
        if one is None:
            raise error_for(NOT_FOUND, WHAT, detail="no queue with this number is read")
        with looking(one.queue):
            tail = checked(lib.sb_port_original_end(one.port), WHAT)
            slots = lib.sb_queue_slots(one.queue._queue)
            return Stands(identity_of(one.queue), head_of(one.port), tail, slots, one.next)

    def read(self) -> Read | None:
        """What has changed since, or None."""
        return self._read(self._room, len(self._room) * WORD)

    def _read(self, buffer: Any, room: int) -> Read | None:
        reading, begun = self._reading, address_of(buffer)
        reading[READING_AT // WORD], reading[READING_LEFT // WORD] = begun, room
        reading[READING_RECORDS // WORD] = reading[READING_MESSAGES // WORD] = 0
        self.is_held = False
        looked_at = self._look()
        try:
            code = self._see_and_write()
        finally:
            for each in looked_at:
                lib.sb_queue_looked(each.queue._queue)
        if code == TOO_SMALL and reading[READING_RECORDS // WORD] == 0:
            needed = int(reading[READING_NEEDED // WORD]) + 4096
            return self._read(ffi.new("int64_t[]", needed // WORD), needed & -WORD)
        if code not in (EMPTY, TOO_SMALL):
            checked(code, WHAT)
        if reading[READING_RECORDS // WORD] == 0:
            return None
        memory = memoryview(ffi.buffer(buffer, reading[READING_AT // WORD] - begun))
        messages = int(reading[READING_MESSAGES // WORD])
        is_whole = code == OK and self._is_whole
        return Read(memory, messages, is_whole, code == TOO_SMALL)

    def _look(self) -> list[Original]:
        """Those whose ring is gone are left out: who reads is told by `stands`."""
        looked_at, gone = [], []
        for number, each in self._members.items():
            if lib.sb_queue_look(each.queue._queue) == OK:
                looked_at.append(each)
            else:
                gone.append(number)
        for number in gone:
            self.drop(number)
        return looked_at

    def _see_and_write(self) -> int:
        """OK: the moment is read to its end.  EMPTY: there is none.  TOO_SMALL: there is more."""
        if not self._in_moment:
            code = int(
                lib.sb_commit_any_moment(
                    self._broker._connection,
                    any(each.is_durable for each in self._members.values()),
                    self._see,
                    self._all,
                )
            )
            if code != OK:
                self.is_held = code == EMPTY
                return code
            self._in_moment = True
            self._reading[READING_LATE // WORD] = 0
        code = int(lib.sb_originals_write(self._all, self._reading))
        while code == DAMAGED:
            number, position = (
                int(self._reading[at // WORD]) for at in (READING_DAMAGED, READING_POSITION)
            )
            name = self._members[number].queue.name
            note = f"queue '{name}': message {position} is damaged, and not in replicas"
            lib.sb_note(self._broker._connection, note.encode())
            code = int(lib.sb_originals_write(self._all, self._reading))
        self._in_moment = code == TOO_SMALL
        return code

    @property
    def _is_whole(self) -> bool:
        """No transaction that was committed meanwhile can be seen in half."""
        if not self._reading[READING_LATE // WORD]:
            return True
        counted = lib.sb_commit_counted(self._transactions)
        return bool(counted == self._all[ORIGINALS_COMMITTED // WORD])

    def close(self) -> None:
        self._members.clear()
        self._all = self._listed()


def copied(queue: Queue, below: int) -> None:
    """Confirms of what is published to this queue wait for replicas that have all below this
    position; -1: for none."""
    with looking(queue):
        checked(lib.sb_port_copied_below(port_to(queue), below), WHAT)
