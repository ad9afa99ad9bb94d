"""A vhost from a journal: what was appended to rings gets its names, and is there for others.

Messages are appended by C, all that a journal has at once or frame by frame (applier.c), and what
is of a single queue as well.  Here is what comes once for all of them: exchanges and bindings, what
transactions had still to publish, and in which order things become visible.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from typing import Any, Final

from shmbroker.core.codes import JOURNAL_DAMAGED, UNDECIDED
from shmbroker.core.layout import (
    QUEUE_INBOX,
    QUEUE_SCHEDULE,
    REPLICATE_CONFIGURATION,
    REPLICATE_NONE,
    RING_GATES_AT,
    RING_SETTINGS_AT,
    TRANSACTION_OPERATIONS,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import checked
from shmbroker.ipc.base.errors import error_for
from shmbroker.ipc.broker import declared
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.replay import Replay

Progress = Callable[[int, int], object]
"""Told of the bytes that were read, and of how many."""

TELL_BYTES: Final = 16 << 20
DECLARATION: Final = struct.Struct("=9q")
"""Of a queue: its identity (two words), slots, flags, when it was created, one moment by both
clocks, and the lengths of its name and its settings, which follow."""
NUMBER_MASK: Final = (1 << 63) - 1
"""Of the lower half of an identity: the queue's number in the journal."""


class Restoring(Closable):
    """For one thread; `what` it does, for errors."""

    def __init__(self, broker: Broker, applier: Any, what: str) -> None:
        self._broker, self.applier, self._what = broker, applier, what
        self.standing = b""
        """The newest that was met."""
        self._catalog: list[bytes] = []
        self._unpublished: dict[int, tuple[int, bytes]] = {}
        """Of committed transactions, and not published by the end: by the id of its records, the
        number of its queue, and its chunk."""
        self.record = ffi.new("sb_journal_record *")

    def close(self) -> None:
        """What has no name is removed."""
        if self.applier != ffi.NULL:
            lib.sb_applier_close(self.applier)
            self.applier = ffi.NULL

    # --- what it reads ------------------------------------------------------------------------

    def apply(self, frame: Any) -> int:
        return self._rest(lib.sb_applier_apply(self.applier, frame, self.record))

    def goes_on(self, code: int) -> bool:
        """With what has said that.  Whether something was noted."""
        checked(self._rest(code), self._what)
        return code == UNDECIDED

    def _rest(self, code: int) -> int:
        while code == UNDECIDED:
            self._note()
            code = lib.sb_applier_more(self.applier, self.record)
        return code

    def replay(self, replay: Replay, progress: Progress | None = None) -> None:
        """All that a journal has."""
        told = 0
        for batch in replay.batches():
            code = self._rest(lib.sb_applier_records(self.applier, batch, self.record))
            checked(code, self._what)
            done, of = replay.progress()
            if progress is not None and done >= told:
                progress(done, of)
                told = done + TELL_BYTES

    def _note(self) -> None:
        """What the record at hand says."""
        record = self.record
        kind, position = record.kind, record.position
        body: bytes = ffi.buffer(record.body, record.length)[:]
        if kind == records.QUEUES:
            self._unpublished.clear()  # what is left of them follows
        elif kind == records.STANDING:
            self.standing = body
        elif kind == records.CATALOG and position == 0:
            self._catalog.clear()
        elif kind == records.CATALOG:
            self._catalog.append(body)
        elif body:  # a segment says it again before the frame that it begins with
            self._unpublished.setdefault(position, (record.queue, body))
        else:
            self._unpublished.pop(position, None)

    # --- and what becomes of it ---------------------------------------------------------------

    def finish(self, *, takes_over: bool = False, counts: bool = False) -> int:
        """The vhost is there for others: with so many messages, if somebody `counts` them.

        `takes_over`: from another member, so without what is not replicated.  Frames are copied as
        they are, so a journal has all of that.  It is left out before anything has its name, and no
        program ever sees it here.  The first frame of the new live lists the queues that exist:
        whoever reads or copies it drops the others.  Before that frame nothing has changed, and the
        next member that takes over does the same; after it all is done.  So a death in between
        leaves nothing half.
        """
        try:
            checked(lib.sb_applier_lock(self.applier), self._what)
            if takes_over:
                self._leave_out()
            self._join()
            messages = checked(lib.sb_applier_put(self.applier, counts), self._what)
        finally:
            lib.sb_applier_unlock(self.applier)
        catalog = [declared.read(each) for each in self._catalog]
        declared.declare_all(
            self._broker, declared.replicated(catalog) if takes_over else catalog
        )
        lib.sb_applier_show(self.applier)
        self._publish()
        return messages

    def _queues(self) -> Any:
        count = lib.sb_applier_queues(self.applier, ffi.NULL, 0)
        told = ffi.new("sb_restored[]", count)
        lib.sb_applier_queues(self.applier, told, count)
        return told

    def _leave_out(self) -> None:
        """Queues that are not replicated, and of some all but their configuration.  A schedule and
        an inbox have what their queue has said, and go with it."""
        for each in self._queues():
            is_beside = each.flags & (QUEUE_SCHEDULE | QUEUE_INBOX)
            if each.replicate == REPLICATE_CONFIGURATION and not is_beside:
                self._make_anew(each)
            elif each.replicate in (REPLICATE_CONFIGURATION, REPLICATE_NONE):
                lib.sb_applier_forget(self.applier, each.number)

    def _make_anew(self, queue: Any) -> None:
        """Empty, and of an identity that no segment knows: what is known of the messages that are
        gone (their ids, what is scheduled, how far streams are) goes with them."""
        name = ffi.string(queue.name)
        page = ffi.cast("char *", queue.ring) + RING_SETTINGS_AT
        settings = ffi.buffer(page, RING_GATES_AT - RING_SETTINGS_AT)[:]
        high, low = struct.unpack("=2q", os.urandom(16))
        head = DECLARATION.pack(
            high, low, queue.slots, queue.flags, queue.created,
            lib.sb_system_clock(), time.time_ns(), len(name), len(settings),
        )  # fmt: skip
        body = head + name + settings
        # the row of the former one is free then: there may be no other
        lib.sb_applier_forget(self.applier, queue.number)
        code = lib.sb_applier_declare(self.applier, low & NUMBER_MASK, body, len(body))
        checked(code, self._what)

    def _join(self) -> None:
        """Tell schedules and inboxes whose they are; without a queue, they are gone with it."""
        queues = self._queues()
        names = {
            each.number: ffi.string(each.name).decode(errors="replace")
            for each in queues
            if not each.flags & QUEUE_SCHEDULE
        }
        having: set[int] = set()
        gone = []
        for each in queues:
            is_schedule = each.flags & QUEUE_SCHEDULE
            if not each.flags & (QUEUE_SCHEDULE | QUEUE_INBOX):
                continue
            if each.of not in names:
                gone.append(each.number)
            elif is_schedule and each.of in having:
                why = f"queue '{names[each.of]}' has two schedules in the journal"
                raise error_for(JOURNAL_DAMAGED, self._what, 0, why)
            else:
                lib.sb_applier_beside(self.applier, each.number, each.of)
                having |= {each.of} if is_schedule else set()
        for number in gone:
            lib.sb_applier_forget(self.applier, number)

    def _publish(self) -> None:
        """What transactions had still to publish when the journal ended (unplaced.c), as
        transactions of somebody who has committed them and is gone.  So what finds no room even now
        waits for it like any other, and whoever repairs goes on with it.

        Nobody writes the journal of the vhost yet.  The frame that its journaler writes first has
        all of it again, with places or without.
        """
        left = list(self._unpublished.values())
        for at in range(0, len(left), TRANSACTION_OPERATIONS):
            some = left[at : at + TRANSACTION_OPERATIONS]
            several = ffi.new("sb_unpublished[]", len(some))
            kept = [ffi.from_buffer(chunk) for _, chunk in some]
            for each, (number, chunk), memory in zip(several, some, kept, strict=True):
                each.queue, each.chunk, each.length = number, memory, len(chunk)
            checked(lib.sb_applier_commit(self.applier, several, len(some)), self._what)
