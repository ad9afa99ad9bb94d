"""One queue that pages: out of its inbox, into its files, and from there into its ring; how order
is kept, and what a death in each step leaves, is told in pager.py.

Nothing here touches a single message: batches are moved by kernels (moving.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.codes import (
    DAMAGED,
    DISK_FULL,
    EMPTY,
    FULL,
    JOURNAL_DAMAGED,
    OK,
    STALE,
    TOO_SMALL,
    UNDECIDED,
)
from shmbroker.core.layout import (
    COUNTER_MISSING_AT,
    COUNTER_PURGED_AT,
    POSITION_MASK,
    RING_PAGED_BYTES_AT,
    RING_PAGED_NEXT_AT,
    RING_PAGES_CODE_AT,
    RING_PURGE_AT,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc._quick import lib as quick
from shmbroker.ipc.journal.stored import HEAD
from shmbroker.ipc.paging.page_file import Head
from shmbroker.ipc.paging.page_reader import Safety
from shmbroker.ipc.paging.page_store import PageStore
from shmbroker.ipc.paging.refused import Refused, allowed
from shmbroker.ipc.paging.sealing import QUICK_BYTES
from shmbroker.ipc.ring.look import address_of, word_at

if TYPE_CHECKING:
    from shmbroker.ipc.paging.pager import Pager

ROOM_NS: Final = 10**9
"""A disk that was full has room when it took all so long."""
GATHER_MESSAGES: Final = 4096
"""Of one queue, before it is another's turn."""
REFILL_MESSAGES: Final = 1 << 14
WRITE_BYTES: Final = 1 << 20
"""In one write."""
ALL_POSITIONS: Final = POSITION_MASK + 1


class Paged:
    def __init__(self, pager: Pager, shown: Any) -> None:
        self._pager = pager
        self._shown = shown
        self.name = ffi.string(shown.name).decode(errors="replace")
        self.path: Path = pager.folder / ffi.string(shown.folder).decode()
        self._durable = bool(shown.durable)
        self._ring, self._in, self._out = shown.ring, shown.inbox, shown.out
        self._cursor = shown.cursor
        self._room = pager.room
        self._gathering = ffi.new("sb_gathering *")
        self._refilling = ffi.new("sb_refilling *")
        self._refilling.slots = shown.slots
        self._refilling.bytes_max = shown.max_bytes
        self._refilling.most = REFILL_MESSAGES
        self.is_full = False
        """The disk is,"""
        self.why = ""
        self.tells_full = False
        """And whoever asks is told so, until it has taken all for a while."""
        self._full_at = 0  # when it was last
        self._awaits_journal = False  # with what is in the inbox
        self._purge_below = ffi.cast("int64_t *", address_of(self._ring) + RING_PURGE_AT)
        dropped = word_at(address_of(self._ring) + RING_PAGED_NEXT_AT)
        self._next = 0  # all below is in the ring, or dropped: a position in the inbox
        self._set_next(dropped if shown.last < dropped <= self._tail() else shown.last)
        # what of it was in a file is not known
        self._put = shown.last  # all that was put into the ring is below
        self._direct = shown.last  # the same, of what is in no file
        self._safe = 0  # all of that below is in the journal again
        self._mark()
        safety = Safety(self._next, self._cursor.position) if self._durable else None
        self._store = PageStore(self.path, pager.page_bytes, pager.epoch, safety, self._tell)
        # who paged before may have ended while the disk was full: the first write tells how it is
        quick.sb_paging_told(self._ring, RING_PAGES_CODE_AT, OK)

    def close(self) -> None:
        self._store.close()

    # --- what is in shared memory -------------------------------------------------------------

    def _tell(self, text: str) -> None:
        """The log of the vhost."""
        self._pager.note(f"pages of queue '{self.name}': {text}")

    def _tail(self) -> int:
        """Of the inbox; below 0: it is damaged."""
        tail: int = quick.sb_port_true_tail(self._in)
        return tail

    def _confirmed(self, *, in_inbox: bool) -> int:
        """What the journal has is below."""
        below: int = quick.sb_paged_confirmed(self._shown, in_inbox)
        return below

    def _set_next(self, position: int) -> None:
        """All below is out of inbox and files; others see it in the ring."""
        self._next = position
        quick.sb_paging_passed(self._ring, position)

    def _drop(self, position: int, counter: int) -> None:
        lib.sb_paging_dropped(self._ring, counter, position - self._next)
        self._set_next(position)

    def _miss(self, position: int) -> None:
        """Messages up to this position are nowhere."""
        count = position - self._next
        self._tell(f"{count} messages are missing ({self._next} to {position - 1})")
        self._drop(position, COUNTER_MISSING_AT)

    def _mark(self) -> None:
        """What is in the ring now is safe when the journal has passed it there."""
        tail = quick.sb_port_true_tail(self._out)
        self._marked = self._put
        self._marked_tail = ALL_POSITIONS if tail < 0 else tail  # damaged: nothing is safe

    def _look_what_is_safe(self) -> None:
        """What the journal has of what we have put into the ring."""
        while self._safe < self._put and self._confirmed(in_inbox=False) >= self._marked_tail:
            self._safe = self._marked
            self._mark()
        self._store.reader.journaled(self._safe)

    # --- into the ring ------------------------------------------------------------------------

    def _into_ring(self, first: int, end: int, *, exact: bool, later: int, most: int) -> int:
        """Put the records between these addresses there: what the kernel answers; its words say
        how far it came."""
        words = self._refilling
        words.at, words.end = first, end
        words.next, words.exact = self._next, exact
        words.later, words.most = later, most
        words.count = 0
        code: int = lib.sb_port_ring_refill(self._out, words)
        if words.count > 0:
            self._set_next(words.next)
            self._put = self._next
        return code

    def _refill(self) -> int:
        """From the files: how many."""
        reader, words, moved = self._store.reader, self._refilling, 0
        while moved < REFILL_MESSAGES and reader.look():
            first, end = reader.addresses()
            words.at = first
            if not quick.sb_port_ring_has_room(self._out, words):
                break
            code = self._into_ring(
                first, end, exact=True, later=reader.later, most=REFILL_MESSAGES - moved
            )
            moved += words.count
            reader.pass_to(words.at)
            if code == FULL:
                break
            if code == UNDECIDED:
                self._refill_oddly()
            elif code == JOURNAL_DAMAGED:
                head, length = reader.head()
                self._miss(head.position + 1)
                reader.pass_to(words.at + length)
                moved += 1
            else:
                allowed(code)
        return moved

    def _refill_oddly(self) -> None:
        """Messages are missing before the record at hand, or it says that they were purged."""
        reader = self._store.reader
        head, length = reader.head()
        if head.position > self._next:
            if head.is_message:
                self._miss(head.position)
            else:
                self._set_next(head.position)
        if not head.is_message:
            reader.pass_to(reader.addresses()[0] + length)

    # --- out of the inbox ---------------------------------------------------------------------

    def _release(self) -> None:
        """What the pager has read of the inbox is in a file or in the ring."""
        done = self._cursor.position
        if self._durable and self._safe < self._direct:
            done = min(done, self._safe)
        if quick.sb_inbox_release(self._cursor, done) < 0:
            raise Refused(STALE, f"queue '{self.name}' has another pager by now")

    def _fence(self) -> None:
        if self._durable:
            allowed(lib.sb_pager_fence_check(self._pager.native))

    def _lay_out(self, size: int) -> None:
        """The next batch begins where the pager's room is now, and has so much of it."""
        words, room = self._gathering, self._room
        words.at = room.address
        words.enough = room.address + min(WRITE_BYTES, self._store.writer.left)
        words.end = room.address + size

    def _read(self, most: int, below: int) -> tuple[int, int, int]:
        """A batch of the inbox, in the pager's room: where it ends, how many messages were read,
        and why not more."""
        words, room = self._gathering, self._room
        self._lay_out(QUICK_BYTES)
        words.first, words.below = self._next, below
        words.left = most
        code = quick.sb_inbox_gather(self._cursor, words)
        if code == TOO_SMALL and words.at == room.address:
            room.make(words.needed)
            self._lay_out(room.size)
            code = lib.sb_inbox_gather(self._cursor, words)
        if code == DAMAGED:
            self._tell("a message in memory is damaged, and is dropped")
            self._cursor.position += 1
            code = OK
        if code not in (OK, EMPTY, TOO_SMALL):
            text = f"queue '{self.name}': the gate of its inbox was taken from us"
            raise Refused(STALE, text)
        read = most - words.left
        return words.at - room.address, read, code

    def _take_up(self, size: int) -> bool:
        """A batch of so many bytes goes to the ring, or to files; False: some of it stays in the
        inbox until the journal is further."""
        room, start = self._room, 0
        if self._store.is_empty:
            code = self._into_ring(
                room.address, room.address + size, exact=False, later=0, most=GATHER_MESSAGES
            )
            if self._refilling.count > 0:
                self._direct = self._put
            start = self._refilling.at - room.address
            if code not in (OK, FULL):
                allowed(code)
            if start == size:
                return True
            self._awaits_journal = self._durable and self._safe < self._direct
            if self._awaits_journal:
                head = Head.of(bytes(room.view[start : start + HEAD.size]))
                self._cursor.position = head.position
                return False
        self._fence()
        self._store.writer.write(room, start, size)
        return True

    def _gather(self) -> int:
        """How many."""
        many = 0
        done = self._cursor.position
        # of a durable queue, what the journal has
        below = self._confirmed(in_inbox=True) if self._durable else ALL_POSITIONS
        refusal: Refused | None = None
        try:
            while many < GATHER_MESSAGES:
                size, read, code = self._read(GATHER_MESSAGES - many, below)
                was_empty = self._store.is_empty
                if size > 0 and not self._take_up(size):
                    many += self._refilling.count
                    break
                many += read
                done = self._cursor.position
                # consumers do not wait for several syncs, and a death repeats one at most
                is_written = size > 0 and not (was_empty and self._store.is_empty)
                if code == EMPTY or (self._durable and is_written):
                    break
            self._fence()
        except Refused as refused:
            # it stays in the inbox; what went to the ring meanwhile is known there
            self._store.writer.forget()
            self._cursor.position = max(done, self._next)
            if refused.code != DISK_FULL:
                raise
            many, refusal, self.why = 0, refused, refused.text
        if many > 0 or refusal is not None:
            self.is_full = refusal is not None
        self._tell_disk(refusal)
        self._release()
        return many

    def _tell_disk(self, refusal: Refused | None) -> None:
        """A disk that is nearly full takes some writes and refuses others."""
        now = quick.sb_system_clock()
        if self.is_full:
            self._full_at = now
        is_full = self.is_full or (self.tells_full and now - self._full_at < ROOM_NS)
        if is_full == self.tells_full:
            return
        self.tells_full = is_full
        quick.sb_paging_told(self._ring, RING_PAGES_CODE_AT, DISK_FULL if is_full else OK)
        self._tell(refusal.text if refusal else "there is room on the disk again")
        lib.sb_port_wake_all(self._in)  # who waits for room is to be told

    # --- both, in turns -----------------------------------------------------------------------

    def _purge(self) -> bool:
        """False: first what is on its way to the journal is to be there."""
        below = self._purge_below[0]
        if below <= self._next or below > self._tail():
            return True
        if self._durable and self._safe < self._put:
            return False
        self._fence()
        self._store.clear(below)  # all of it is below
        self._drop(below, COUNTER_PURGED_AT)
        return True

    def serve(self) -> tuple[int, bool]:
        """How many messages were moved, and whether some are left."""
        since = quick.sb_paging_seen(self._ring)
        if self._durable:
            self._look_what_is_safe()
        self._awaits_journal = not self._purge()
        if self._awaits_journal:
            self._release()
            return 0, False
        if self._store.is_empty and self._next < self._cursor.position:
            self._miss(self._cursor.position)  # the files had all below that
        gathered = self._gather()
        if gathered > 0 and since == 0:
            lib.sb_paged_note(self._shown)  # who published it has died before it could
        moved = 0 if self._store.is_empty else self._refill()
        quick.sb_paging_told(self._ring, RING_PAGED_BYTES_AT, self._store.size)
        is_over = self._store.is_empty and not self.is_full
        if is_over and gathered == 0 and since != 0 and self._is_read():
            quick.sb_paging_end(self._ring, since)  # else somebody has published meanwhile
        return gathered + moved, not is_over or self.tells_full

    def _is_read(self) -> bool:
        """Nothing is in the inbox, not even what the journal has not yet."""
        return not self._durable or bool(self._cursor.position == self._tail())

    def rest(self, *, is_left: bool) -> None:
        """It has nothing to move until a bell is rung: unless there is something by now.  What is
        left in the files waits for room in the ring."""
        waits = ffi.NULL
        if is_left:
            if self.is_full or self.tells_full:
                return  # it is tried again
            waits = self._refilling
        in_inbox = 0 if self._awaits_journal else self._cursor.position + 1
        in_ring = self._marked_tail if self._safe < self._put else 0
        lib.sb_paged_rest(self._shown, in_inbox, in_ring, waits)
