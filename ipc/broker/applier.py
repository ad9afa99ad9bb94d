"""Frames of another journal, appended to a vhost that is not there for others yet (applier.c)."""

from __future__ import annotations

from shmbroker.core.codes import DUPLICATE, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import checked
from shmbroker.ipc.broker.restoring import Restoring
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.journal.end import Frame
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.place import Place
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.journal.shipping import place_of


class Applier(Closable):
    """For one thread.  `broker` is of `begin_restoring`; close it before broker and journal."""

    def __init__(self, broker: Broker, journal: Journal | None = None, number: int = 0) -> None:
        """`journal`: frames are written there first, sealed anew: its segments are at least twice
        as large as those of the original.  `number`: of the last frame that the vhost has."""
        self._broker, self._journal = broker, journal
        made = ffi.new("sb_applier **")
        into = ffi.NULL if journal is None else journal._journal
        self._what = f"applying frames to vhost {self._broker.vhost!r}"
        self._check(lib.sb_applier_open(broker._connection, into, number, made))
        self._restoring = Restoring(broker, made[0], self._what)

    def _check(self, code: int) -> int:
        return checked(code, self._what)

    def apply(self, frame: Frame) -> bool:
        """False: it was applied before.  MessageGone: frames are missing before it."""
        told = ffi.new("sb_end_frame *")
        told.number, told.after, told.epoch = frame.number, frame.after, frame.epoch
        told.seal = frame.seal
        records = ffi.from_buffer(frame.records)
        told.records, told.bytes = records, len(records)
        code = self._restoring.apply(told)
        return code != DUPLICATE and self._check(code) == 0

    def read(self, replay: Replay) -> None:
        """First: all that its own journal has."""
        self._restoring.replay(replay)

    def frames(self, shipped: bytes | bytearray | memoryview, eventfd: int = -1) -> bool:
        """Apply what was shipped; frames that it has are passed over.

        `eventfd`: is counted up when `written` is further.  True: `standing` may be another one.
        """
        memory, of = ffi.from_buffer(shipped), self._restoring
        code = lib.sb_applier_frames(of.applier, memory, len(memory), eventfd, of.record)
        return code != OK and of.goes_on(code)

    def place(self) -> Place | None:
        """The last frame of the original that it has."""
        told = ffi.new("sb_place *")
        lib.sb_applier_place(self._restoring.applier, told)
        return place_of(told)

    def go_on(self, place: Place) -> None:
        """The original has its last frame under this name."""
        told = ffi.new("sb_place *", (place.number, place.epoch, place.seal, place.chain))
        lib.sb_applier_go_on(self._restoring.applier, told)

    @property
    def written(self) -> int:
        """From any thread: the number of the last frame that is in a file of its journal."""
        return int(lib.sb_applier_written(self._restoring.applier))

    def standing(self) -> bytes:
        """The newest that its journal has, as whoever was live has written it; empty: none."""
        return self._restoring.standing

    def sync(self) -> None:
        """In another thread, while frames are applied: what is written."""
        self._check(lib.sb_applier_sync(self._restoring.applier))

    @property
    def synced(self) -> int:
        """From any thread: the number of the last frame that was written before such a sync."""
        return int(lib.sb_applier_synced(self._restoring.applier))

    def finish(self, *, takes_over: bool = False) -> None:
        """The vhost is there for others.  `takes_over`: without what is not replicated."""
        self._restoring.finish(takes_over=takes_over)

    def close(self) -> None:
        """What has no name is removed."""
        self._restoring.close()
