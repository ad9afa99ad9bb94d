"""Writing a journal, for tools and tests: the broker does it in C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shmbroker.core.codes import EMPTY, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import checked
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.names import path_bytes
from shmbroker.ipc.base.timeout import nanoseconds
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.compaction import Moved
from shmbroker.ipc.journal.replay import Replay

ALL_POSITIONS: int = lib.SB_JOURNAL_ALL
"""What retires everything that a queue has and will have."""

Snapshot = Callable[["Journal"], object]
Needed = Callable[[int, int], bool]


@dataclass(frozen=True, slots=True)
class JournalStatistics:
    """Where a journal is, and what it holds."""

    serial: int
    offset: int
    frame: int
    segments: int
    bytes: int
    spares: int
    unknown: int
    damaged: int
    live_bytes: int
    frames: int
    records: int
    recycled: int
    deleted: int
    made: int
    waited: int


class Journal(Closable):
    """A journal that is written: stage records, commit them.  One thread, one process.

    `snapshot` is called when a new segment begins, and stages all that is needed and no message.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        epoch: int | None = 0,
        segment_bytes: int = 0,
        spares: int = 0,
        node: bytes | None = None,
        snapshot: Snapshot | None = None,
    ) -> None:
        """With epoch None it is only prepared: `begin` follows."""
        self.folder = str(folder)
        self._journal: Any = ffi.NULL
        self._failure: BaseException | None = None
        self._snapshot = snapshot
        self._moved: Moved | None = None
        self._callback = ffi.callback(
            "sb_journal_snapshot", self._stage_snapshot, error=-1, onerror=self._failed
        )
        self._options = ffi.new("sb_journal_options *")
        self._options.segment_bytes = segment_bytes
        self._options.spares = spares
        self._node = ffi.from_buffer(node) if node else ffi.NULL
        self._options.node = self._node
        self._options.snapshot = self._callback if snapshot else ffi.NULL
        made = ffi.new("sb_journal **")
        self._check(lib.sb_journal_prepare(path_bytes(self.folder), self._options, made))
        self._journal = made[0]
        if epoch is not None:
            try:
                self.begin(epoch)
            except BaseException:
                self.close()
                raise

    def leave(self) -> None:
        """The files that are ready when it is closed stay for whoever begins next."""
        lib.sb_journal_leave(self._journal)

    def close(self) -> None:
        """What is staged and not committed is forgotten."""
        if self._moved is not None:
            self._moved.close()
        lib.sb_journal_close(self._journal)
        self._journal = ffi.NULL

    def begin(self, epoch: int, replay: Replay | None = None) -> None:
        """Write from now on; what a replay that is at its end has found is taken over."""
        if replay is not None:
            self._check(lib.sb_journal_adopt(self._journal, replay.found))
        self._check(lib.sb_journal_begin(self._journal, epoch))

    def stage(self, kind: int, queue: int, position: int, body: bytes = b"") -> None:
        code = lib.sb_journal_stage(self._journal, kind, queue, position, body, len(body))
        self._check(code)

    def message(self, queue: int, position: int, body: bytes) -> None:
        self.stage(records.MESSAGE, queue, position, body)

    def commit(self) -> None:
        """All that is staged is on the disk.  DiskFull: it is still staged, try again."""
        self._check(lib.sb_journal_commit(self._journal))

    def retire(self, queue: int, position: int = ALL_POSITIONS) -> None:
        """The messages below the position are not needed; it is not written, stage that before."""
        self._check(lib.sb_journal_retire(self._journal, queue, position))

    def keep(self, begin: int | None, newest_bytes: int) -> None:
        """Segments from this serial on, and these bytes of the newest (-1: all), stay although
        nothing in them is needed, unless the disk is full."""
        lib.sb_journal_keep(self._journal, ALL_POSITIONS if begin is None else begin, newest_bytes)

    def ahead(self) -> None:
        """Begin to write what is staged; it is there after the commit, and not before."""
        self._check(lib.sb_journal_ahead(self._journal))

    def clear(self) -> int:
        """Let go of segments that are not needed: how many."""
        return self._check(lib.sb_journal_clear(self._journal))

    def compact(self, share: int, step: int = 1 << 20, needed: Needed | None = None) -> bool:
        """Stage a bit of a segment of which at most `share` percent are needed, about so many bytes
        of the log; once all of it is committed, the segment can go.  Whether there was one.

        With 100 percent: of those that were there when the journal began.
        """
        if self._moved is None:
            self._moved = self._sparse(share)
        if self._moved is None:
            return False
        chosen = ffi.NULL
        if needed is not None:
            chosen = ffi.callback(
                "sb_journal_needed", lambda q, p, _: bool(needed(q, p)), error=1,
                onerror=self._failed,
            )  # fmt: skip
        if self._moved.move(self._journal, step, chosen, self._check):
            self._moved.close()
            self._moved = None
        return True

    def _sparse(self, share: int) -> Moved | None:
        """The oldest segment that is worth it."""
        end = ffi.new("int64_t *")
        while (serial := lib.sb_journal_sparse(self._journal, share, end)) != EMPTY:
            self._check(serial)
            try:
                return Moved(self.folder, serial, end[0])
            except Error:  # what cannot be moved stays
                lib.sb_journal_moved(self._journal, serial, 0)
        return None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing goes on in the background."""
        code: int = lib.sb_journal_wait(self._journal, nanoseconds(timeout))
        return code == OK

    def _attach(self, options: Any, made: Any) -> int:
        return int(lib.sb_journal_attach(self._journal, options, made))

    def statistics(self) -> JournalStatistics:
        told = ffi.new("sb_journal_statistics *")
        self._check(lib.sb_journal_statistics_of(self._journal, told))
        slots = JournalStatistics.__slots__
        return JournalStatistics(**{name: getattr(told, name) for name in slots})

    def _stage_snapshot(self, _journal: object, _context: object) -> int:
        assert self._snapshot
        self._snapshot(self)
        return OK

    def _failed(self, _kind: object, error: BaseException, _trace: object) -> None:
        """Of what C has called: it is raised behind that.  Ctrl-C comes at any place in there."""
        self._failure = error

    def _reraise(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _check(self, code: int) -> int:
        self._reraise()
        return checked(code, f"journal {self.folder}")
