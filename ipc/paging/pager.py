"""The pager: one thread of a broker with a store, between the inboxes of queues that page, their
page files and their rings (inbox.c has the picture, and how order is kept).

`shmbroker run` has one for its instance.  A program that has no broker beside it may have its own.

In each turn, for each queue that has news or waits for room: what is in the inbox goes to the ring,
if nothing is in pages and the ring has room, else to the files with one write; then the gate of the
inbox is moved behind it, and so there is room for producers.  What is in the files goes to the ring
as far as that has room, ahead of the consumers.

A message is known by its position in the inbox, and each step can be done again:

    inbox to file    who dies after the write and before the gate leaves it in both; whoever comes
                     then writes it once more, and reading skips what was read
    to the ring      its number there is its position + 1 (core/producer.py): with tail helped to
                     the truth, the ring tells up to which it has them

So a message is never lost or doubled by a death, and nothing of ours has to be written down.

Of a durable queue, whose inbox is durable, we read what the journal has.  Here each step is done
when it is on disk, as the machine may die:

    inbox to file    the file is synced, before the gate is moved
    to the ring      the journal has passed it there: only then the file goes, or, if it was in
                     none, the gate is moved.  Its number is in the journal with it
                     (deduplication.c)

Files begin only when the journal has passed in the ring all that went there before: else, after a
power loss, they would have what comes after a message that is in the inbox alone.

What the journal has passed in the ring is looked at in steps: when it is behind all that was there
at one moment, all that we had put there until then is safe.

Other threads of the interpreter run while a batch is written, synced, read or put into the ring,
and while we sleep: between two of these we have its lock for some microseconds.
"""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from pathlib import Path
from threading import Condition, Event, Thread
from time import sleep
from typing import Any, Final

from shmbroker.core.codes import CLOSED, DISK_FULL, NO_MEMORY, OK, SYSTEM, TEXTS
from shmbroker.core.layout import CATALOG_GENERATION_AT
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc._quick import lib as quick
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import InvalidArgument, error_for
from shmbroker.ipc.base.names import path_bytes
from shmbroker.ipc.base.nap import longer
from shmbroker.ipc.base.room import Room
from shmbroker.ipc.base.thread import start
from shmbroker.ipc.broker.store_writer import HOUR_NS, StoreWriter
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.paging.page_folder import remove_folder
from shmbroker.ipc.paging.paged import Paged
from shmbroker.ipc.paging.refused import Refused, allowed, refused
from shmbroker.ipc.ring.look import address_of

PAGE_BYTES: Final = 10 << 20
ROOM_BYTES: Final = 1 << 21
DISK_FULL_NS: Final = 10**8
FEW: Final = 4
OF_A_QUEUE: Final = re.compile("[0-9a-f]{32}")
"""Names of folders that are ours."""


class Pager(StoreWriter):
    """Works until it, or its broker, is closed, in a thread of its own."""

    def __init__(
        self,
        broker: Broker,
        folder: str | Path,
        *,
        page_bytes: int = 0,
        epoch: int = 0,
        fence: int = -1,
        until: Any = None,
    ) -> None:
        """What is durable is written by who has the epoch in the file `fence`, `until` a moment."""
        if page_bytes < 0 or not path_bytes(folder):
            raise InvalidArgument("a page has 1 byte or more, and its folder a name")
        self.folder = Path(folder)
        self.what = f"pages in {folder}"
        self.page_bytes = page_bytes or PAGE_BYTES
        self.epoch = epoch
        self.room = Room(ROOM_BYTES)
        """For a batch of one queue at a time."""
        self._broker = broker  # whose memory it looks at
        self._until = ffi.NULL if until is None else until
        self._told = Condition()
        self._state = OK
        self._text = ""
        self._queues: dict[Any, Paged] = {}  # by what C calls them
        self._left: set[Paged] = set()
        """Of which some is left."""
        self._has_folder = self._has_looked = False
        made = ffi.new("sb_pager **")
        fenced = ffi.new("sb_pager_fence *", [epoch, fence, self._until])
        code = lib.sb_pager_open(broker._connection, fenced, made)
        if code != OK:
            raise error_for(code, self.what, ffi.errno, detail_of(code))
        self.native = made[0]
        at = address_of(lib.sb_catalog(broker._connection)) + CATALOG_GENERATION_AT
        self._generation = ffi.cast("int64_t *", at)  # rises with each change of the catalog
        self._seen = -1  # of the catalog, when all that it says was followed
        begun = Event()
        # a daemon: who forgets to close must not hang at the end
        self._thread = Thread(target=self._work, args=(begun,), name="pager", daemon=True)
        try:
            self._look_first()
            start(self._thread)
        except BaseException:
            self._leave()
            raise
        begun.wait()

    def _look_first(self) -> None:
        """What is wrong is told to the caller, not to the log."""
        try:
            self._make_folder()
            self._look()
        except Refused as why:
            if why.code != DISK_FULL:
                raise error_for(why.code, self.what, detail=why.text) from None
            self._tell(why.code, why.text)  # the thread waits for room

    # --- for others ---------------------------------------------------------------------------

    @property
    def _code(self) -> int:
        return self._state

    @property
    def _why(self) -> str:
        return self._text

    def _await(self, seen: int) -> int:
        with self._told:
            self._told.wait_for(lambda: self._state != seen, HOUR_NS / 1e9)
        return self._state

    def stop(self) -> None:
        """What is in files stays there, for the next."""
        if self._thread.is_alive():  # else another one may page by this connection
            lib.sb_pager_stop(self._broker._connection)
            self._thread.join()

    def close(self) -> None:
        if self._thread.is_alive():
            self.stop()

    def note(self, text: str) -> None:
        """A line in the log of the vhost."""
        lib.sb_note(self._broker._connection, text.encode(errors="replace"))

    def _tell(self, code: int, text: str = "") -> None:
        with self._told:
            self._text = text or self._text
            self._state = code
            self._told.notify_all()

    # --- the thread ---------------------------------------------------------------------------

    def _work(self, begun: Event) -> None:
        """Its signals are for others: one that it took would interrupt none of their waits."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        lib.sb_pager_begin(self.native)
        begun.set()
        code, text = SYSTEM, "it failed"  # by a fault of ours, which is told to stderr
        try:
            self._turns()
            code, text = CLOSED, ""
        except Refused as why:
            code, text = why.code, why.text
        except MemoryError:
            code, text = NO_MEMORY, "memory for pages"
        finally:  # whoever closes the connection waits for that
            self._end(code, text)

    def _end(self, code: int, text: str) -> None:
        if self._broker.is_closed:
            code = CLOSED
        if code != CLOSED:
            self.note(f"pages: {TEXTS[code]}: {text}")
        self._tell(code, text)
        self._leave()

    def _turns(self) -> None:
        nap, ready = 0.0, ffi.new("sb_paged *[]", 1)
        while True:
            moved, is_full = 0, True
            try:
                if not self._has_folder:
                    self._make_folder()
                if self._generation[0] != self._seen:
                    self._look()
                if len(ready) < len(self._queues):
                    ready = ffi.new("sb_paged *[]", 2 * len(self._queues))
                # to look for room takes long if there are many
                look = quick if len(self._left) <= FEW else lib
                count = look.sb_pager_ready(self.native, ready, len(ready))
                if count == CLOSED:
                    return
                moved, is_full = self._serve([ready[each] for each in range(count)])
            except Refused as why:
                if why.code != DISK_FULL:
                    raise
                # it has not even room for a folder: later.  No bell tells of room on a disk, and
                # what is not followed yet would not let us rest
                self._tell(why.code, why.text)
                sleep(DISK_FULL_NS / 1e9)
            if moved > 0:
                nap = 0.0
                continue
            nap = longer(nap)  # what is in pages waits for room
            nap_ns = int(nap * 1e9) if self._left else 0
            longest_ns = DISK_FULL_NS if is_full else nap_ns
            if lib.sb_pager_rest(self.native, longest_ns) == CLOSED:
                return

    def _serve(self, ready: list[Any]) -> tuple[int, bool]:
        """How many messages were moved, and whether the disk is full."""
        moved, is_full, tells_full, why = 0, False, False, ""
        for shown in ready:
            each = self._queues[shown]
            count, is_left = each.serve()
            if count == 0:
                each.rest(is_left=is_left)
            moved += count
            if is_left:
                self._left.add(each)
            else:
                self._left.discard(each)
            is_full |= each.is_full
            if each.tells_full:  # it has no room, so it is ready each time
                tells_full, why = True, each.why
        if tells_full != (self._state == DISK_FULL):
            self._tell(DISK_FULL if tells_full else OK, why)
        return moved, is_full

    def _leave(self) -> None:
        for each in self._queues.values():
            each.close()
        self._queues.clear()
        lib.sb_pager_free(self.native)

    # --- folders and queues -------------------------------------------------------------------

    def _make_folder(self) -> None:
        if self._has_folder:
            return
        try:
            with suppress(FileExistsError):
                self.folder.mkdir(0o700)
            above = os.open(f"{self.folder}/..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(above)
            finally:
                os.close(above)
        except OSError as error:
            raise refused(error, f"making the folder {self.folder}") from error
        self._has_folder = True

    def _look(self) -> None:
        """Follow what pages now, and let go of what was deleted.  The first time that goes well,
        also remove the files of queues that are no more: of a vhost that was, or deleted while
        nobody paged."""
        told, generation = ffi.new("sb_paged **"), self._generation[0]
        while True:
            allowed(lib.sb_pager_look(self.native, told))
            shown = told[0]
            if shown == ffi.NULL:
                break
            if shown.is_gone:
                self._forget(shown)
            else:
                self._queues[shown] = Paged(self, shown)
        if not self._has_looked:  # all that page are followed: not before
            allowed(lib.sb_pager_fence_check(self.native))
            self._remove_left()
            self._has_looked = True
        self._seen = generation

    def _forget(self, shown: Any) -> None:
        gone = self._queues.pop(shown, None)
        if gone is not None:
            self._left.discard(gone)
            gone.close()
            remove_folder(gone.path)
        lib.sb_paged_free(shown)

    def _remove_left(self) -> None:
        there = {each.path.name for each in self._queues.values()}
        with suppress(OSError):
            for each in self.folder.iterdir():
                if OF_A_QUEUE.fullmatch(each.name) and each.name not in there:
                    remove_folder(each)
