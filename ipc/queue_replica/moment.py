"""The file with the moment that is being shown: what belongs to it is there in all replicas, or in
none, also after a death.

What is to be done is written into a file of the vhost's home first; then it is done
(core/moment.py); then the file says that nothing is.  Whoever comes after somebody who was killed
in between does the rest: all of it again, which changes nothing where it was done.  The file is in
memory, as the rings are, and goes with them.

The next moment of durable replicas is shown when the frame with this one is confirmed.  Then the
journal's gates have passed all that is there, so whatever is done with is free at once, and
positions that never came are passed over (`replica_begin`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.codes import INTERRUPTED, SYSTEM, TEXTS
from shmbroker.core.layout import (
    REPLICA_BITS,
    REPLICA_BYTES,
    REPLICA_CODE,
    REPLICA_COMPARED,
    REPLICA_COUNT,
    REPLICA_END,
    REPLICA_HEAD,
    REPLICA_LENGTH,
    REPLICA_PORT,
    REPLICA_STAGED,
    RING_CLOSED_AT,
    STAGED_BYTES,
    TRANSACTIONS_ARENA_AT,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import checked
from shmbroker.ipc.base.errors import NotFound, error_for
from shmbroker.ipc.ring.look import WORD, address_of, looking, port_to, ring_word, word_at

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.queue.queue import Queue

WHAT: Final = "a moment of replicas"
KEPT_BYTES: Final = 4096
"""Of a file that was made just now."""
KEPT_BYTES_MAX: Final = 1 << 20
"""It is not left longer than this."""
HEAD: Final = Struct("<qq")
"""The file begins so: how many bytes follow, 0: nothing is being shown; and the identity of the
vhost's arena: made again, it has another."""
KEPT: Final = Struct("<qqqqq")
"""Then, of each replica: its reference, head and end of the original, how many bytes of bits
follow, and how many messages are staged: where these are comes behind the bits."""


class Torn(Exception):
    """What is in the file contradicts itself."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is written down of one replica."""

    reference: int
    head: int
    end: int
    bits: bytes
    staged: bytes

    def __bytes__(self) -> bytes:
        count = len(self.staged) // STAGED_BYTES
        head = KEPT.pack(self.reference, self.head, self.end, len(self.bits), count)
        return b"".join((head, self.bits, self.staged))


def kept_in(content: bytes) -> Iterator[Kept]:
    at = 0
    while at < len(content):
        if len(content) - at < KEPT.size:
            raise Torn("a moment of replicas is cut off")
        reference, head, end, length, count = KEPT.unpack_from(content, at)
        at += KEPT.size
        staged_at = at + length
        following = staged_at + count * STAGED_BYTES
        if length < 0 or length % WORD or count < 0 or following > len(content):
            raise Torn("a moment of replicas contradicts itself")
        yield Kept(reference, head, end, content[at:staged_at], content[staged_at:following])
        at = following


class Moment(Closable):
    """The file, while it is open."""

    def __init__(self, broker: Broker, *, makes: bool = True) -> None:
        self._broker = broker
        self._transactions = lib.sb_transactions(broker._connection)
        opened = ffi.new("int64_t *")
        code = INTERRUPTED
        while code == INTERRUPTED:  # memory of a file is not taken through signals
            code = lib.sb_moment_open(broker._connection, makes, opened)
        checked(code, WHAT)
        self._file = int(opened[0])
        """-1: there is none, and it is not made."""

    # --- showing ------------------------------------------------------------------------------

    def show(self, kept: Sequence[Kept], replicas: Sequence[Any], *, is_durable: bool) -> int:
        """Bring these to where their originals were (REPLICA_*): the number of the moment."""
        content = b"".join(map(bytes, kept))
        self._write(content, HEAD.size)
        self._write(HEAD.pack(len(content), self._arena), 0)  # with it all of the rest is there
        if is_durable:
            lib.sb_commit_gate_wait(self._broker._connection)
        number = self._shown(replicas, is_durable=is_durable)
        self._forget()
        return number

    def _shown(self, replicas: Sequence[Any], *, is_durable: bool) -> int:
        addresses = ffi.new("int64_t[]", [address_of(each) for each in replicas])
        count = len(replicas)
        return int(lib.sb_moment_show(self._transactions, addresses, count, is_durable))

    @property
    def _arena(self) -> int:
        return word_at(address_of(self._transactions) + TRANSACTIONS_ARENA_AT)

    def _write(self, content: bytes, at: int) -> None:
        left = memoryview(content)
        try:
            while left:
                done = os.pwrite(self._file, left, at)
                left, at = left[done:], at + done
        except OSError as error:
            raise error_for(SYSTEM, f"memory for {WHAT}", error.errno or 0) from error

    def _forget(self) -> None:
        self._write(HEAD.pack(0, 0), 0)
        if os.fstat(self._file).st_size > KEPT_BYTES_MAX:
            os.ftruncate(self._file, KEPT_BYTES)

    # --- after a death ------------------------------------------------------------------------

    def finish(self) -> None:
        """Show the rest of it, if somebody was killed in it."""
        if self._file < 0:
            return
        length, arena = HEAD.unpack(os.pread(self._file, HEAD.size, 0))
        if length > 0 and arena == self._arena:
            try:
                self._finish(list(kept_in(self._content(length))))
            except Torn as error:
                self._note(f"replicas: {error}")
        if length:
            self._forget()
        lib.sb_commit_shown(self._transactions)

    def _content(self, length: int) -> bytes:
        content = os.pread(self._file, length, HEAD.size)
        if len(content) < length:
            raise Torn("a moment of replicas is cut off")
        return content

    def _finish(self, kept: Sequence[Kept]) -> None:
        names = {each.reference: each.name for each in self._broker._catalog.all_queues()}
        halves: list[Half] = []
        with ExitStack() as looked:
            for each in kept:
                if each.reference not in names:
                    continue  # it was deleted, or is another one by now
                with suppress(NotFound):
                    queue = self._broker.queue(names[each.reference])
                    looked.enter_context(looking(queue))
                    halves.append(Half(queue, each))
            halves = [each for each in halves if each.is_closed]
            self._shown([each.memory for each in halves], is_durable=True)
        for half in halves:
            if half.code < 0:
                why = f"{TEXTS[half.code]}: it shows a moment in half"
                self._note(f"replica '{half.queue.name}': {why}")

    def _note(self, text: str) -> None:
        lib.sb_note(self._broker._connection, text.encode())

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Half:
    """A replica of which somebody may have shown a part of the moment; while it is looked at."""

    def __init__(self, queue: Queue, kept: Kept) -> None:
        self.queue = queue
        self._port, self._kept = port_to(queue), kept
        self._bits, self._staged = ffi.from_buffer(kept.bits), ffi.from_buffer(kept.staged)
        self.memory = memory = ffi.new("int64_t[]", REPLICA_BYTES // WORD)
        memory[REPLICA_PORT // WORD] = address_of(self._port)
        memory[REPLICA_HEAD // WORD], memory[REPLICA_END // WORD] = kept.head, kept.end
        memory[REPLICA_BITS // WORD] = address_of(self._bits)
        memory[REPLICA_LENGTH // WORD] = len(kept.bits)
        memory[REPLICA_STAGED // WORD] = address_of(self._staged)
        memory[REPLICA_COUNT // WORD] = len(kept.staged) // STAGED_BYTES
        memory[REPLICA_COMPARED // WORD] = 1

    @property
    def is_closed(self) -> bool:
        """It follows still."""
        return ring_word(self._port, RING_CLOSED_AT) != 0

    @property
    def code(self) -> int:
        return int(self.memory[REPLICA_CODE // WORD])


def finish(broker: Broker) -> None:
    """A moment that somebody was killed in is shown as a whole: before the journal of the vhost is
    written again."""
    with Moment(broker, makes=False) as moment:
        moment.finish()
