"""Reading a journal: its records, checked, oldest first; and what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from shmbroker.core.codes import DAMAGED, EMPTY, INVALID, JOURNAL_DAMAGED
from shmbroker.core.layout import POSITION_MASK, RECORD_IS_LAST, RECORD_KIND_SHIFT
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import checked
from shmbroker.ipc.base.errors import Error, JournalDamaged
from shmbroker.ipc.base.names import path_bytes
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.place import FRAME_BITS
from shmbroker.ipc.journal.segment import FRAMES_MAX, Batch, Segment
from shmbroker.ipc.journal.segment_folder import UNIT, SegmentFolder, segment_name, size_of
from shmbroker.ipc.journal.segment_list import UNKNOWN_END, Listed, read_list
from shmbroker.ipc.journal.stored import HEAD

KIND_NAMES = {
    value: name.lower().replace("_", "-")
    for name, value in vars(records).items()
    if isinstance(value, int) and name != "KINDS_MAX"
}


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a journal, and where it lies."""

    kind: int
    queue: int
    position: int
    body: bytes
    serial: int
    offset: int
    frame: int
    """Its number through all segments: `frame_text` prints it."""
    last: bool

    @property
    def kind_name(self) -> str:
        return KIND_NAMES.get(self.kind, f"kind-{self.kind}")

    @property
    def segment(self) -> str:
        return segment_name(self.serial)


@dataclass(frozen=True, slots=True)
class Report:
    """What a replay has seen."""

    segments: int
    frames: int
    records: int
    messages: int
    bytes: int
    torn: int
    damages: int
    ignored: int
    epoch: int
    frame: int
    """The last one that is whole; 0: none."""


def frame_text(number: int) -> str:
    """The number of a frame as all that prints it does: 7:12 is frame 12 of segment 7."""
    text = ffi.new("char[]", lib.SB_FRAME_TEXT_BYTES)
    length: int = lib.sb_frame_text(number, text)
    return str(ffi.unpack(text, length).decode())


class Replay(Closable):
    """An iterator over the records of a folder.

    A frame is checked as a whole before its first record is told.  What does not check is cut off
    if a crash can have left it so: if nobody knows where the segment ends, and no record behind it
    says that it was synced; `noted` is told of it.  Anything else is damage, an error,
    JournalDamaged.  A salvage tells every record that checks, and `noted` of damage, too.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        salvage: bool = False,
        noted: Callable[[str], object] = lambda text: None,
        what: str = "",
    ) -> None:
        """`what`: is done by it, as its errors say."""
        self.folder = str(folder)
        self._salvage = salvage
        self._noted = noted
        self._folder = SegmentFolder(os.fsdecode(path_bytes(self.folder)), what)
        try:
            listed = read_list(self._folder, salvage=salvage)
            made = ffi.new("sb_found **")
            self._check(lib.sb_found_open(made))
        except BaseException:
            self._folder.close()
            raise
        self._entries = listed.entries
        self._found: Any = ffi.gc(made[0], lib.sb_found_close)
        self._batch = ffi.new("sb_batch *")
        self._all = sum(size_of(self._folder.path / segment_name(s.serial)) for s in self._entries)
        self._done = 0
        self._segment: Segment | None = None
        self._node = bytes(16)
        self._segments = self._torn = self._damages = self._epoch = 0
        self._ignored = listed.ignored
        self._is_read = False
        self._failure: Error | None = None
        self._batches = self._read()
        self._records = self._each()

    def close(self) -> None:
        self._end()
        self._folder.close()

    def _check(self, code: int) -> int:
        return checked(code, self._folder.what)

    # --- what it tells ------------------------------------------------------------------------

    def batches(self) -> Iterator[Any]:
        """Records one behind the other (sb_batch), as they lie in memory until the next."""
        if self._failure is not None:
            raise self._failure
        return self._batches

    def __iter__(self) -> Iterator[Record]:
        if self._failure is not None:
            raise self._failure
        return self._records

    def _each(self) -> Iterator[Record]:
        for batch in self._batches:
            serial, offset = batch.serial, batch.offset
            memory = memoryview(ffi.buffer(ffi.cast("char *", batch.records), batch.bytes))
            at = 0
            while at < len(memory):
                _, _, length, frame, queue, where = HEAD.unpack_from(memory, at)
                body = at + HEAD.size
                yield Record(
                    where >> RECORD_KIND_SHIFT,
                    queue,
                    where & POSITION_MASK,
                    bytes(memory[body : body + length]),
                    serial,
                    offset + at,
                    serial << FRAME_BITS | frame,
                    bool(where & RECORD_IS_LAST),
                )
                at = body + (length + 7 & -8)

    def progress(self) -> tuple[int, int]:
        """Bytes read, of so many."""
        return self._done + (self._segment.offset if self._segment else 0), self._all

    def report(self) -> Report:
        counts = ffi.new("sb_found_counts *")
        lib.sb_found_counted(self._found, counts)
        return Report(
            self._segments,
            counts.frames,
            counts.records,
            counts.messages,
            counts.bytes,
            self._torn,
            self._damages,
            self._ignored,
            self._epoch,
            counts.frame,
        )

    @property
    def node(self) -> bytes:
        """Whose store it is; zeros: it does not say."""
        return self._node

    @property
    def found(self) -> Any:
        """What the journal has, for who writes it next."""
        if self._salvage or not self._is_read:
            raise self._folder.failed(
                INVALID,
                "only a replay that was read to its end, without salvage and damage, knows what a "
                "journal has",
            )
        return self._found

    # --- from one segment to the next ---------------------------------------------------------

    def _read(self) -> Iterator[Any]:
        try:
            for entry, following in zip_longest(self._entries, self._entries[1:]):
                segment = self._begin(entry)
                if segment is None:
                    continue
                self._meet(segment)
                self._read_ahead(following)
                yield from (self._rest if self._salvage else self._sound)(segment, entry)
                self._done += segment.size
                self._end()
        except Error as error:
            self._failure = error
            raise
        self._is_read = True

    def _begin(self, entry: Listed) -> Segment | None:
        """None: it is missing, as one of an unknown end may be, which who wrote before recycled."""
        try:
            segment = Segment.open(self._folder, entry.serial, salvage=self._salvage)
        except Error as error:
            self._damaged(error)
            return None
        self._segment = segment
        if segment is not None:
            self._segments += 1
            segment.until = entry.end if entry.is_known else segment.until
        elif entry.end != UNKNOWN_END:
            self._damaged(
                self._folder.failed(
                    JOURNAL_DAMAGED,
                    f"{self._folder.path / segment_name(entry.serial)} is missing, and has "
                    f"messages that are needed: {entry.reached} bytes",
                )
            )
        return segment

    def _meet(self, segment: Segment) -> None:
        if segment.wrong is not None:
            self._damaged(segment.wrong)
            return
        if not node_fits(segment.node, self._node):
            self._damaged_at(segment, 0, "it is a segment of another store than those before")
            return
        if any(segment.node):
            self._node = segment.node
        if segment.epoch < self._epoch:
            self._damaged_at(segment, 0, "its epoch is lower than that of a segment before")
        self._epoch = max(self._epoch, segment.epoch)

    def _read_ahead(self, entry: Listed | None) -> None:
        with suppress(Error):
            file = self._folder.open(segment_name(entry.serial)) if entry is not None else None
            if file is not None:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED)
                os.close(file)

    def _end(self) -> None:
        if self._segment is not None:
            self._segment.close()
        self._segment = None

    # --- records ------------------------------------------------------------------------------

    def _told(self, segment: Segment, found: Batch) -> Any:
        batch = self._batch
        batch.records, batch.bytes = ffi.cast("void *", found.address), found.length
        batch.serial, batch.offset = segment.serial, found.offset
        self._check(lib.sb_found_add(self._found, batch))
        return batch

    def _sound(self, segment: Segment, entry: Listed) -> Iterator[Any]:
        """Whole frames; what is behind the end that is known, a stale live may have written."""
        while True:
            batch, code = segment.batch(lib.sb_frames_check)
            if batch is None:
                break
            yield self._told(segment, batch)
        if segment.offset != entry.end:
            self._look_at_end(segment, entry, code)
        self._check(lib.sb_found_end(self._found, segment.serial, segment.offset))

    def _look_at_end(self, segment: Segment, entry: Listed, code: int) -> None:
        """No whole frame begins here."""
        offset, bad = segment.offset, segment.bad
        if entry.is_known or offset < entry.reached or segment.was_synced():
            self._damaged_at(segment, bad, wrong(segment, code))
        if segment.size < segment.bytes:
            self._damaged_at(segment, segment.size, "the file is shorter than its header says")
        number = segment.number
        if bad > offset or code != EMPTY or segment.search(offset, number, number):
            frame = frame_text(segment.serial << FRAME_BITS | number)
            self._torn += 1
            self._noted(
                f"{segment.path}, offset {offset}: frame {frame} was half written when a crash "
                "came: nobody was told that it is there, and it is cut off"
            )

    def _rest(self, segment: Segment, entry: Listed) -> Iterator[Any]:
        """Records that check, in whatever frames."""
        while True:
            batch, code = segment.batch(lib.sb_records_salvage)
            at = segment.offset
            if batch is not None:
                yield self._told(segment, batch)
                continue
            if at == entry.end:
                return
            what = wrong(segment, code)
            beyond = at + (segment.next_bytes() if code == DAMAGED else UNIT)
            found = segment.search(beyond, segment.number, FRAMES_MAX)
            is_end = code == EMPTY and not entry.is_known and at >= entry.reached
            if found or not is_end or segment.size < segment.bytes:
                self._damaged_at(segment, at, what)
            if not found:
                return
            segment.go_to(found)

    # --- what is wrong ------------------------------------------------------------------------

    def _damaged(self, error: Error) -> None:
        """Nothing is told after damage, but by a salvage."""
        if not self._salvage or not isinstance(error, JournalDamaged):
            raise error
        self._damages += 1
        self._noted(str(error).removeprefix(f"{self._folder.what}: "))

    def _damaged_at(self, segment: Segment, offset: int, what: str) -> None:
        self._damaged(
            segment.damaged(
                f", offset {offset}: {what}; it was synced, so the file was damaged later; "
                "shmbroker journal export reads the rest"
            )
        )


def node_fits(node: bytes, other: bytes) -> bool:
    """Whether segments with them may be of one journal: zeros are of whoever does not say."""
    return node == other or not any(node) or not any(other)


def wrong(segment: Segment, code: int) -> str:
    """With the record that does not check."""
    if code == EMPTY:
        return "there are zeros instead of a record"
    if code == INVALID:
        return "no record begins here: its head does not check"
    if code == DAMAGED:
        return "the record's body does not check"
    if not segment.is_beyond():
        return "the disk cannot read it"
    if segment.until < min(segment.bytes, segment.size):
        return "a frame goes beyond the end of its segment"
    return "the file ends before the record does"
