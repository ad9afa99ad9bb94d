"""The store of a member: its journal, and a small file with what is true of this copy alone.

member      node id; whether the copy is whole; what was written last when it left the in-sync set
live.lock   locked by who runs; its epoch is looked at before and after each frame is written
rings       whose they are (own_rings.py)
journal/    oldreplica.N
"""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.errors import Error, InUse, InvalidArgument, JournalDamaged
from shmbroker.ipc.base.trust import check_folder, make_folder, opened
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.lock import ofd
from shmbroker.ipc.instance.whole import read_whole, write_whole
from shmbroker.netbridge.member.codec import packed, written
from shmbroker.netbridge.member.standing import Past, Position
from shmbroker.netbridge.member.written import Written, number_of, position_of
from shmbroker.netbridge.replica.aside import JOURNAL, begin_copy, end_copy, set_aside
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.replica.warm import Warm
from shmbroker.netbridge.replicated.own_rings import OwnRings

FILE: Final = "member"
LOCK: Final = "live.lock"
EPOCH_DIGITS: Final = 16
OVER: Final = 1 << 60
"""An epoch that nobody has: who may write with another one stops at once."""


class StoreRefused(Error):
    """It is no store of a member; the message says why."""


@dataclass(frozen=True, slots=True)
class Marks:
    node: bytes = b""
    """Empty: the journal is new."""
    is_whole: bool = True
    left: tuple[int, int] | None = None
    """The age of what was written, when this member left in good order."""
    drained: int = 0
    """All that its journal has of this epoch, and before, is at another node."""
    closed: int = 0
    """This epoch began with nothing, after that."""
    standing: bytes = b""
    """What its journal said when it was emptied, as long as that has nothing again."""
    is_written: bool = False
    """Its journal has had something: without a frame it is lost, and not new."""


class Store:
    """Held by one process at a time."""

    def __init__(self, config: Config, terms: ReplicationTerms) -> None:
        self.config, self.terms = config, terms
        self.path = config.store
        if config.journal is not None or config.pages is not None:
            raise StoreRefused(
                "store.journal and store.pages are for a store that is shared: a member of a "
                "replicated node has its journal in store.path"
            )
        check_folder(self.path)
        make_folder(self.path)
        self._file = opened(self.path / LOCK, os.O_RDWR | os.O_CREAT)
        if not ofd.try_lock(self._file, 0):
            os.close(self._file)
            raise InUse(f"store {self.path} is in use by another broker")
        self._lock = threading.Lock()
        self._rings = OwnRings(self.path, config.vhost)
        self.marks = self._read()

    def _read(self) -> Marks:
        found = read_whole(self.path / FILE)
        if not found:
            if any(self.journal.glob("*.journal")):
                raise StoreRefused(
                    f"store {self.path} has a journal, and no file {FILE!r}: it is not one of a "
                    "member of a replicated node"
                )
            self._write(Marks())  # before there is a journal: a kill leaves none without it
            return Marks()
        try:
            left = found["left"]
            return Marks(
                bytes.fromhex(found["node"]), bool(found["whole"]),
                None if left is None else (int(left[0]), int(left[1])),
                int(found.get("drained", 0)), int(found.get("closed", 0)),
                bytes.fromhex(found.get("standing", "")), bool(found.get("written", False)),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            raise StoreRefused(f"{self.path / FILE} is damaged: {error}") from None

    def mark(self, **changed: Any) -> None:
        """Synced when this returns; from any thread."""
        with self._lock:
            marks = replace(self.marks, **changed)
            if marks != self.marks:
                self._write(marks)
                self.marks = marks

    def _write(self, marks: Marks) -> None:
        content = {
            "node": marks.node.hex(), "whole": marks.is_whole, "left": marks.left,
            "drained": marks.drained, "closed": marks.closed,
            "standing": marks.standing.hex(), "written": marks.is_written,
        }  # fmt: skip
        write_whole(self.path / FILE, content, synced=True)

    def copied(self, **changed: Any) -> None:
        """Its journal is whole: in this order, for what is marked as half is not kept."""
        end_copy(self.path)
        self.mark(is_whole=True, **changed)

    def emptied(self, warm: Warm, said: Written, epoch: int) -> Warm:
        """All that its journal has is elsewhere: it has nothing when this epoch begins.

        `said`: by its journal, until then.
        """
        warm.close()
        self.mark(standing=packed(said), closed=epoch)
        given = set_aside(self.path)  # at once, so that no part of it is ever read
        if given is not None:
            shutil.rmtree(given)
        for each in self.pages.glob("*"):
            each.unlink(missing_ok=True)
        return self.warm()

    def begun(self, closed: int) -> None:
        """Its journal says again what it is.  `closed`: an epoch without programs, or 0."""
        self.mark(standing=b"", closed=closed or self.marks.closed, is_written=True)

    # --- its journal --------------------------------------------------------------------------

    def warm(self) -> Warm:
        """Rings that nobody sees, with all that its journal has."""
        config = self.config
        warm = Warm(
            self.path, config.vhost, node=self.marks.node or bytes(16), arena_bytes=config.arena,
            segment_bytes=config.segment, resync_bytes=self.terms.resync_bytes, group=config.group,
        )  # fmt: skip
        self._rings.made()
        return warm

    def copied_anew(self) -> Warm:
        """The same, of a journal that has nothing yet."""
        begin_copy(self.path)
        return self.warm()

    def opened(self) -> tuple[Warm, str]:
        """The first ones of a process, and what is wrong with its journal: one that cannot be read
        is set aside.  ForeignRings: the vhost of its name is somebody else's."""
        self._rings.make_way()
        try:
            warm = self.warm()
            return warm, self._lost(warm)
        except (JournalDamaged, InvalidArgument) as error:
            self.mark(is_whole=False)  # first: who has no journal and is whole is a new member
            saved = set_aside(self.path)  # nobody may have it but this member
            return self.warm(), f"{error}; it is set aside in {saved}"

    def _lost(self, warm: Warm) -> str:
        """Why it is not new, though its journal has nothing."""
        marks = self.marks
        if warm.own is not None:
            self.mark(is_written=True)
        elif marks.is_written and marks.is_whole and not marks.standing:
            self.mark(is_whole=False)  # so that it founds no node
            return f"what was in {self.journal} is gone: it copies all from whoever serves"
        return ""

    def past(self, warm: Warm) -> tuple[Past, Written]:
        """What a member finds when it starts."""
        marks, found = self.marks, written_in(warm)
        last = last_of(warm, found)
        if not last.number and marks.is_whole and marks.standing:
            found = written(marks.standing)
            last = Position(found.epoch, found.holder, number_of(found.epoch, 0))
        has_left = marks.left is not None and found.age <= marks.left
        past = Past(
            marks.node, last, found.copies, marks.is_whole, has_left,
            found.handed_to, found.is_parked, found.all_know, found.is_forced,
            0 < found.epoch == marks.drained, 0 < found.epoch == marks.closed,
        )  # fmt: skip
        return past, found

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL

    @property
    def pages(self) -> Path:
        return self.path / "pages"

    # --- who may write it ---------------------------------------------------------------------

    @property
    def fence(self) -> int:
        """A file that begins with the epoch of who may write and confirm."""
        return self._file

    def allow(self, epoch: int) -> None:
        os.pwrite(self._file, f"{epoch:0{EPOCH_DIGITS}x}".encode(), 0)

    def retire(self) -> None:
        """Its rings, which nobody serves.  A journaler that still runs would write that all queues
        are gone, so it writes nothing from now on."""
        self.allow(OVER)
        self._rings.retire()

    def close(self) -> None:
        self._rings.close()
        os.close(self._file)


def written_in(warm: Warm) -> Written:
    body = warm.standing
    return written(body) if body else Written()


def last_of(warm: Warm, found: Written) -> Position:
    return position_of(warm.repeats or warm.own, found)
