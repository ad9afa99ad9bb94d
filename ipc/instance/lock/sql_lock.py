"""Leases in a SQL database as the lock (lease_table.py has what is asked there).

A thread of its own renews what we hold, takes what we want, and looks what others do.  It sleeps
until the database notifies it, who has what we want dies on this host, or something is due.  Word
may come together with the answer to whatever is asked: so whoever else has asked wakes the thread,
and that looks for word before it sleeps.

    asked        renewed      it fails                  ours runs out      others may take it
      |------------|------------|--------- ... -------------|------------------|
                   asked at     asked again and again     +90 %              +100 %, and more

Our clock is read before we ask, that of the database when it answers: whatever happens on the way,
ours runs out first.  What is missing to the whole is for clocks that do not run equally fast.  The
journaler looks at that moment itself, before it writes and before it confirms (journaler.c).  What
has run out is lost for good, even if the database renewed it meanwhile: it is taken anew.

live.lock in the folder goes on having the record: the journaler finds in it whether there is a
later epoch.  That is the last guard, should the database forget something, or its clock jump.
"""

from __future__ import annotations

import os
import secrets
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Final

from shmbroker.ipc._native import ffi
from shmbroker.ipc.base.errors import Error, Replaced
from shmbroker.ipc.instance import process
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.lock.database import Database, DatabaseFailed, address_of
from shmbroker.ipc.instance.lock.lease_table import ANNOUNCED, LIVE, PLACES, LeaseTable, Seen
from shmbroker.ipc.instance.lock.live_lock import LiveLock, News, Told
from shmbroker.ipc.instance.lock.record import Record, RecordFile
from shmbroker.ipc.instance.store import Store, StoreRefused

OURS: Final = 0.9
"""Of the expiration."""
NOT_YET: Final = 0.002
"""Seconds: a lease is looked at when it has run out, not just before."""


def now() -> float:
    """Goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def holder_of(token: str, of: process.Process) -> str:
    return " ".join((token, str(of.pid), str(of.started), of.boot, of.namespace))


def process_of(holder: str) -> process.Process | None:
    """None if it is not told in our way."""
    try:
        _, pid, started, boot, namespace = holder.split(" ")
        return process.Process(int(pid), int(started), boot, namespace)
    except ValueError:
        return None


@dataclass
class Lease:
    """What we have of a place."""

    is_wanted: bool = False
    is_awaited: bool = False
    """Somebody waits until we have it, and has not seen that we do."""
    is_held: bool = False
    asked_at: float = 0.0
    until: float = 0.0


class SqlLock(LiveLock):
    is_lease = True

    def __init__(self, config: Config, store: Store, *, moved: bool = False) -> None:
        """DatabaseFailed if it cannot be reached; later that is only news."""
        self.config = config
        self.store = store
        self.address = address_of(config)
        self.file = RecordFile(store.path)
        self.until = ffi.new("int64_t *")
        self.holder = holder_of(secrets.token_hex(8), process.this())
        self.leases = {place: Lease() for place in PLACES}
        self._heard: SimpleQueue[Told] = SimpleQueue()
        self._talking = threading.RLock()
        """Whoever has it may ask the database, and change a lease."""
        self._changed = threading.Condition()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._table: LeaseTable | None = None
        self._is_reachable = True
        self._is_closed = False
        self._seen: dict[str, Seen] = {}
        self._seen_at = 0.0
        try:
            self._connected(self._connection(moved=moved))
        except DatabaseFailed as error:
            raise DatabaseFailed(
                f"{error}; a lease there says who is live (sql.url): see that it runs, can be "
                "reached from this host, and lets this user in"
            ) from None
        self._thread = threading.Thread(target=self._work, name="lease", daemon=True)
        self._thread.start()

    # --- the places ---------------------------------------------------------------------------

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """For all but the thread."""
        try:
            with self._talking:
                yield
        finally:
            os.eventfd_write(self._wake, 1)

    def try_live(self) -> bool:
        with self._asking():
            self._take(self._asked(), LIVE)
            return self.is_held

    def wait_live(self) -> None:
        self._wait(LIVE)

    def wait_announced(self) -> None:
        self._wait(ANNOUNCED)

    def release_live(self) -> None:
        self._release(LIVE)

    def release_announced(self) -> None:
        self._release(ANNOUNCED)

    def _wait(self, place: str) -> None:
        lease = self.leases[place]
        with self._changed:
            lease.is_wanted = lease.is_awaited = True
            os.eventfd_write(self._wake, 1)
            while not lease.is_held:
                self._changed.wait()
            lease.is_awaited = False

    def _release(self, place: str) -> None:
        """What cannot be given back runs out."""
        with self._asking():
            self._forget(place)
            self.leases[place].is_wanted = self.leases[place].is_awaited = False
            if self._table is not None:
                with suppress(DatabaseFailed):
                    self._table.give_back(place)

    @property
    def is_held(self) -> bool:
        lease = self.leases[LIVE]
        return lease.is_held and now() < lease.until

    @property
    def another_is_live(self) -> bool:
        return self._is_of_another(LIVE)

    @property
    def another_is_announced(self) -> bool:
        return self._is_of_another(ANNOUNCED)

    def _is_of_another(self, place: str) -> bool:
        seen = self._seen[place]
        is_held = seen.holder is not None and now() < self._seen_at + seen.left
        return is_held and seen.holder != self.holder

    # --- the record -----------------------------------------------------------------------------

    @property
    def fence(self) -> int:
        return self.file.number

    def record(self) -> Record:
        return self._seen[LIVE].record

    def record_if_whole(self) -> Record | None:
        return self.record()

    def write(self, record: Record) -> None:
        """StoreRefused if the folder knows a later epoch than the database."""
        with self._asking():
            known, told = self.file.read().epoch, self._seen[LIVE].epoch
            if self.is_held and known > told:
                raise self._refused(told, known)
            try:
                if not self._asked().write(record):
                    raise Replaced("the lease on being live is not ours any more")
                self._look(self._asked())
            except DatabaseFailed as error:
                raise Replaced(f"nobody can be told who is live: {error}") from None
            if not self.is_held:
                raise Replaced("the lease on being live has run out")
            self.file.write(record)

    def ask_failback(self, epoch: int) -> bool:
        with self._asking(), suppress(DatabaseFailed):
            return self._asked().ask_failback(epoch)
        return False

    def is_failback_asked(self, epoch: int) -> bool:
        return self.another_is_announced and self._seen[ANNOUNCED].epoch == epoch

    def failback_done(self) -> None:
        """It was about the epoch before."""

    # --- the thread -----------------------------------------------------------------------------

    def news(self) -> Told:
        return self._heard.get()

    def _tell(self, news: News, why: str = "") -> None:
        self._heard.put(Told(news, why))

    def _work(self) -> None:
        while not self._is_closed:
            try:
                if self._table is None:
                    self._connected(self._connection())
                with self._talking:
                    self._step(self._asked())
            except (Error, OSError) as error:
                self._disconnected(error)
            self._end_what_ran_out()
            self._sleep()

    def _step(self, table: LeaseTable) -> None:
        table.database.was_told()
        for place, lease in self.leases.items():
            if lease.is_held and now() >= lease.asked_at + self.config.sql.renew:
                self._renew(table, place)
            elif lease.is_wanted and not lease.is_held:
                self._take(table, place)
        self._look(table)

    def _take(self, table: LeaseTable, place: str) -> None:
        asked_at = now()
        is_ours = table.take(place, self._dead_holder(place))
        self._look(table)
        if is_ours:
            self._have(place, asked_at)

    def _dead_holder(self, place: str) -> str | None:
        """If it is known to be dead: then nobody need wait until its lease runs out."""
        holder = self._seen[place].holder
        of = process_of(holder) if holder is not None else None
        with suppress(OSError):  # we may have no descriptor left: then it runs out
            return holder if of is not None and of.has_ended else None
        return None

    def _renew(self, table: LeaseTable, place: str) -> None:
        lease, asked_at = self.leases[place], now()
        is_renewed = table.renew(place)
        if is_renewed and now() < lease.until:
            self._have(place, asked_at)
        else:
            why = "it was renewed too late" if is_renewed else "the database says that it ran out"
            self._lose(place, why)

    def _have(self, place: str, asked_at: float) -> None:
        lease = self.leases[place]
        lease.asked_at = asked_at
        lease.until = asked_at + OURS * self.config.sql.expiration
        if place == LIVE:
            self.until[0] = int(lease.until * 1e9)
        if not lease.is_held:
            with self._changed:
                lease.is_held, lease.is_wanted = True, False
                self._changed.notify_all()

    def _forget(self, place: str) -> None:
        if place == LIVE:
            self.until[0] = 0
        self.leases[place].is_held = False

    def _lose(self, place: str, why: str) -> None:
        with self._changed:
            self._forget(place)
            self.leases[place].is_wanted = self.leases[place].is_awaited
        self._tell(News.LOST if place == LIVE else News.UNANNOUNCED, why)

    def _end_what_ran_out(self) -> None:
        with self._talking:
            for place, lease in self.leases.items():
                if lease.is_held and now() >= lease.until:
                    self._lose(place, "it could not be renewed in time")

    def _look(self, table: LeaseTable) -> None:
        seen = table.look()
        if not seen.keys() >= set(PLACES):
            raise self.address.failed(f"its table {table.table} has lost the rows of this store")
        before, self._seen = self._seen, seen
        self._seen_at = now()
        told = {place: replace(seen, left=0) for place, seen in self._seen.items()}
        if told != {place: replace(seen, left=0) for place, seen in before.items()}:
            self._tell(News.CHANGED)

    def _sleep(self) -> None:
        """Until there is something to do."""
        if self._has_word():
            return
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if self._table is not None:
            poll.register(self._table.database.file, select.POLLIN)
        watched = [file for file in map(self._death_of_holder, PLACES) if file is not None]
        for file in watched:
            poll.register(file, select.POLLIN)
        try:
            poll.poll(max(0.0, self._due() - now()) * 1000)
        finally:
            for file in watched:
                os.close(file)
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)

    def _has_word(self) -> bool:
        with self._talking, suppress(DatabaseFailed):  # the next step finds that, too
            return self._table is not None and self._table.database.was_told()
        return True

    def _death_of_holder(self, place: str) -> int | None:
        """A descriptor that tells of it, if we want what it has, and it is on this host."""
        holder = self._seen[place].holder
        if self._table is None or holder is None or not self.leases[place].is_wanted:
            return None
        of = process_of(holder)
        with suppress(OSError):
            return of.descriptor() if of is not None else None
        return None

    def _due(self) -> float:
        renew = self.config.sql.renew
        due = [now() + renew]
        for place, lease in self.leases.items():
            if lease.is_held:
                due += [lease.until]
                due += [lease.asked_at + renew] if self._table is not None else []
            elif lease.is_wanted and self._table is not None:
                due += [self._seen_at + self._seen[place].left + NOT_YET]
                due += [0.0] if self._dead_holder(place) else []
        return min(due)

    # --- the database ---------------------------------------------------------------------------

    def _asked(self) -> LeaseTable:
        if self._table is None:
            raise self.address.failed("it cannot be reached")
        return self._table

    def _connection(self, *, moved: bool = False) -> LeaseTable:
        """A new one, to a database that knows this store."""
        sql, known = self.config.sql, self.file.read()
        database = Database(self.address)
        try:
            table = LeaseTable(
                database, sql.table, self.store.node.hex(), self.holder, sql.expiration
            )
            table.open()
            found = table.look().get(LIVE)
            told = found.epoch if found is not None else 0
            if told < known.epoch and not moved:
                raise self._refused(told, known.epoch)
            table.make(known)
        except BaseException:
            database.close()
            raise
        return table

    def _refused(self, told: int, known: int) -> StoreRefused:
        return StoreRefused(
            f"{self.address.place} knows epoch {told} of store {self.store.path}, and that was "
            f"live by epoch {known}: it is another database, or was restored from a backup. If all "
            "others with this store have been stopped, and are to have this one: shmbroker run DIR "
            "--moved"
        )

    def _connected(self, table: LeaseTable) -> None:
        with self._talking:
            self._table = table
            self._look(table)
        if not self._is_reachable:
            self._is_reachable = True
            self._tell(News.REACHABLE)

    def _disconnected(self, error: Exception) -> None:
        with self._talking:
            table, self._table = self._table, None
            if table is not None:
                table.database.close()
        if self._is_reachable:
            self._is_reachable = False
            self._tell(News.UNREACHABLE, str(error))

    def close(self) -> None:
        """The thread ends by itself; it may be waiting for an answer just now."""
        self._is_closed = True
        for place in PLACES:
            self._release(place)
        os.eventfd_write(self._wake, 1)
