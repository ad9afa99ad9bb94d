"""Writing the journal of a vhost (ipc/broker/journaler.c), and restoring it from one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shmbroker.core.codes import EMPTY, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import checked
from shmbroker.ipc.base.names import name_bytes, path_bytes
from shmbroker.ipc.broker.restoring import Progress, Restoring
from shmbroker.ipc.broker.store_writer import NativeWriter
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.queue_replica import moment


def keep_memory() -> None:
    """Start the exit helper: a killed process then releases its locks at once."""
    checked(lib.sb_keep_memory(), "a quick end")


def attach(vhost: str) -> Broker:
    """Observe a vhost, also one that is being restored: to join it later."""
    made = ffi.new("sb_connection **")
    checked(lib.sb_attach(name_bytes(vhost), made), f"attaching to vhost {vhost!r}")
    return Broker(vhost, made[0])


def join(broker: Broker, name: str) -> None:
    """Take part in what is attached; NotFound if it was deleted meanwhile, or is not whole."""
    code = lib.sb_join(broker._connection, name_bytes(name))
    checked(code, f"taking part in vhost {broker.vhost!r}")


class Restored:
    """A vhost was made from a journal, which was read to its end."""

    def __init__(self, messages: int, found: Any) -> None:
        self.messages = messages
        self.found = found


def begin_restoring(vhost: str, *, name: str, arena_bytes: int, group: str = "") -> Broker:
    """Make a vhost that does not exist for others until `restore` has filled it."""
    made = ffi.new("sb_connection **")
    of = name_bytes(group) if group else ffi.NULL
    code = lib.sb_restore_begin(name_bytes(vhost), arena_bytes, of, name_bytes(name), made)
    checked(code, f"making vhost {vhost!r}")
    return Broker(vhost, made[0])


def noted(broker: Broker) -> Callable[[str], None]:
    """What a replay says goes into the log of this vhost."""
    return lambda text: lib.sb_note(
        broker._connection, f"journal: {text}".encode(errors="replace")
    )


def restore(broker: Broker, folder: Path, progress: Progress | None = None) -> Restored:
    """Fill a vhost that was created just now with the durable queues that the journal has."""
    what = f"restoring vhost {broker.vhost!r} from {folder}"
    with Replay(folder, noted=noted(broker), what=what) as replay:
        made = ffi.new("sb_applier **")
        checked(lib.sb_applier_open_alone(broker._connection, made), what)
        with Restoring(broker, made[0], what) as restoring:
            restoring.replay(replay, progress)
            return Restored(restoring.finish(counts=True), replay.found)


@dataclass(frozen=True, slots=True)
class StandingTold:
    """What came of `standing` and `hold`."""

    synced: int
    """The count of the last one that is on disk."""
    number: int
    """Of its frame."""
    last: int
    """The last frame at that time."""
    holds: bool
    """That one was the last of all."""


@dataclass(frozen=True, slots=True)
class JournalerStatistics:
    serial: int
    segments: int
    bytes: int
    live_bytes: int
    frames: int
    records: int


class Journaler(NativeWriter):
    """Prepared when it is made; once started it writes until it is stopped, in a thread of C."""

    def __init__(self, folder: Path, *, node: bytes | None = None, segment_bytes: int = 0) -> None:
        self.folder = folder
        made = ffi.new("sb_journaler **")
        self._node = ffi.NULL if node is None else ffi.new("char[16]", node)
        code = lib.sb_journaler_prepare(path_bytes(folder), segment_bytes, self._node, made)
        checked(code, f"journal {folder}")
        super().__init__("journaler", made[0], f"journal {folder}")

    @property
    def _journal(self) -> Any:
        return lib.sb_journaler_journal(self._writer)

    def watched(self, fence: int, beat: Any) -> None:
        """Before it starts: look at the epoch in this file, and say in this word that it works."""
        self._beat = ffi.NULL if beat is None else ffi.from_buffer("int64_t[]", beat)
        lib.sb_journaler_watched(self._writer, fence, self._beat)

    def placed(self, lock: Path) -> None:
        """Before it starts: end if the journal, or what is watched, is not at its path."""
        code = lib.sb_journaler_placed(self._writer, path_bytes(self.folder), path_bytes(lock))
        checked(code, f"journal {self.folder}")

    def leased(self, until: Any) -> None:
        """Before it starts: write and confirm until the moment in this word (CLOCK_BOOTTIME)."""
        self._until = ffi.NULL if until is None else until
        lib.sb_journaler_leased(self._writer, self._until)

    @property
    def is_prepared(self) -> bool:
        """Before it begins: a segment is ready.  DiskFull: there was no room; it tries again."""
        code = lib.sb_journal_prepared(self._journal)
        return code != EMPTY and checked(code, f"journal {self.folder}") == OK

    def begin(self, epoch: int) -> None:
        """Begin a segment in the background, for a start that follows."""
        checked(lib.sb_journaler_begin(self._writer, epoch), f"journal {self.folder}")

    def start(self, broker: Broker, epoch: int, restored: Restored | None = None) -> None:
        """Write the journal of this vhost, as the one with this epoch."""
        found = ffi.NULL if restored is None else restored.found
        locked = lib.sb_journaler_lock(self._writer, broker._connection)
        checked(locked, f"journal {self.folder}")
        try:
            moment.finish(broker)
        except BaseException:
            lib.sb_journaler_unlock(broker._connection)
            raise
        code = lib.sb_journaler_start(self._writer, broker._connection, epoch, found)
        checked(code, f"journal {self.folder}")

    def quiet(self) -> None:
        """While it works: what it has ready for later is for who comes next, so it ends quickly."""
        lib.sb_journal_quiet(self._journal)

    def _attach(self, options: Any, made: Any) -> int:
        return int(lib.sb_journal_attach(self._journal, options, made))

    def keep(self, begin: int | None, newest_bytes: int) -> None:
        """From any thread: segments from this serial on, and these bytes of the newest (-1: all),
        stay although nothing in them is needed, unless the disk is full."""
        serial = lib.SB_JOURNAL_ALL if begin is None else begin
        lib.sb_journal_keep(self._journal, serial, newest_bytes)

    def standing(self, body: bytes) -> int:
        """What the next frame says of who is live and in sync, and each segment from then on;
        before it starts: the first frame.  Counts up."""
        return checked(lib.sb_journaler_standing(self._writer, body, len(body)), self.what)

    def hold(self, holds: bool) -> None:
        """Nothing else is written from now on, or all is again."""
        lib.sb_journaler_hold(self._writer, holds)

    def serves(self) -> None:
        """It serves again (`serves_until`): whoever has found nothing to take looks again."""
        lib.sb_journaler_serves(self._writer)

    def tell(self, eventfd: int) -> None:
        """Count this up when `told` says something new; -1: none."""
        lib.sb_journaler_tell(self._writer, eventfd)

    def told(self) -> StandingTold:
        told = ffi.new("sb_standing_told *")
        lib.sb_journaler_told(self._writer, told)
        return StandingTold(told.synced, told.number, told.last, bool(told.holds))

    def statistics(self) -> JournalerStatistics:
        told = ffi.new("sb_journal_statistics *")
        lib.sb_journal_statistics_of(self._journal, told)
        return JournalerStatistics(
            told.serial, told.segments, told.bytes, told.live_bytes, told.frames, told.records
        )
