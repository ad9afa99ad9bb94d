"""One segment, read through a window, in which kernels look at it (checking.py).

By pread: so a bad sector, or a file that is cut while we read, is an answer and not a signal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any, Final, Self

from shmbroker.core.codes import JOURNAL_DAMAGED, NOT_FOUND, OK, OTHER_VERSION, TOO_SMALL
from shmbroker.core.layout import RECORD_HEAD_BYTES, RECORD_KIND_SHIFT
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error, JournalDamaged
from shmbroker.ipc.base.room import Room
from shmbroker.ipc.journal.checksum import CRC, checksum
from shmbroker.ipc.journal.segment_folder import SegmentFolder, segment_name
from shmbroker.ipc.journal.stored import HEAD

WINDOW_BYTES: Final = 1 << 20
PAGE: Final = 4096
HEADER: Final = Struct("=QIIqqq16sQ")
"""The fields before the zeros: magic, version, page, serial, epoch, bytes, node, salt."""
MAGIC: Final = 0x6C616E72756F6A62  # bjournal
VERSION: Final = 2
BYTES_MAX: Final = 1 << 40
FRAMES_MAX: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that check, in memory until more is read."""

    address: int
    length: int
    offset: int


class Segment(Closable):
    def __init__(self, folder: SegmentFolder, serial: int, file: int, *, salvage: bool) -> None:
        """The file is ours from now on."""
        self.folder, self.serial, self.file = folder, serial, file
        self.epoch = self.bytes = self.size = 0
        self.node = bytes(16)
        self.until = BYTES_MAX
        """What is behind does not count."""
        self.wrong: Error | None = None
        """With its header; only a salvage goes on then."""
        self._checking = ffi.new("sb_checking *")
        self._checking.offset, self._checking.number = PAGE, 1
        self._room = Room(WINDOW_BYTES)
        self.look_again()
        try:
            self._read_header()
        except Error as error:
            if not salvage:
                self.close()
                raise
            self.wrong = error
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, folder: SegmentFolder, serial: int, *, salvage: bool = False) -> Self | None:
        """None: it is missing."""
        file = folder.open(segment_name(serial))
        return None if file is None else cls(folder, serial, file, salvage=salvage)

    @classmethod
    def there(cls, folder: SegmentFolder, serial: int) -> Self:
        """An error if it is missing."""
        segment = cls.open(folder, serial)
        if segment is None:
            raise folder.failed(NOT_FOUND, f"{folder.path / segment_name(serial)} is missing")
        return segment

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
        self.file = -1

    @property
    def path(self) -> Path:
        return self.folder.path / segment_name(self.serial)

    @property
    def _limit(self) -> int:
        return min(self.bytes, self.size, self.until)

    def damaged(self, what: str) -> Error:
        return self.folder.failed(JOURNAL_DAMAGED, f"{self.path}{what}")

    # --- its header ---------------------------------------------------------------------------

    def _read_header(self) -> None:
        self.size = os.fstat(self.file).st_size
        try:
            page = os.pread(self.file, PAGE, 0)
        except OSError as error:
            raise self.damaged(f", offset 0: {error.strerror}") from error
        if len(page) < PAGE:
            raise self.damaged(f" has {self.size} bytes: it was cut short")
        _, _, _, _, self.epoch, self.bytes, self.node, _ = HEADER.unpack_from(page)
        [self._checking.seed] = CRC.unpack(page[-CRC.size :])
        crc = checksum(page[: -CRC.size])
        try:
            self._check_header(page, crc)
        except JournalDamaged:
            self._guess_seed(crc)
            raise

    def _check_header(self, page: bytes, crc: int) -> None:
        magic, version, size, serial, *_ = HEADER.unpack_from(page)
        if magic != MAGIC:
            raise self.damaged(
                ", offset 0: this is no segment of a journal, or its header was overwritten"
            )
        if self._checking.seed != crc:
            raise self.damaged(", offset 0: the checksum of its header is wrong")
        if (version, size) != (VERSION, PAGE):
            raise self.folder.failed(
                OTHER_VERSION,
                f"{self.path} has version {version} of the journal's layout, and this is for "
                f"version {VERSION}: use the shmbroker that wrote it",
            )
        if serial != self.serial:
            raise self.damaged(
                f", offset 0: its header says that it is segment {serial:016x}: it was renamed or "
                "copied"
            )
        if not 2 * PAGE <= self.bytes <= BYTES_MAX:
            raise self.damaged(f", offset 0: no segment has {self.bytes} bytes")

    def _guess_seed(self, crc: int) -> None:
        """Only the CRC of the header may be wrong, or only something else: if records check, it is
        good."""
        self.bytes = self.size
        if not self.search(PAGE, 1, FRAMES_MAX):
            self._checking.seed = crc

    # --- its frames ---------------------------------------------------------------------------

    def beside_writer(self) -> None:
        """It is read while the journal is written: the disk gets one window at a time from it.

        The kernel's read-ahead keeps MiBs of reads before the writer's next sync, which waits for
        them (p99 36 ms, and 2 without, at the same 0.9 GB/s).
        """
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_RANDOM)

    def look_again(self) -> None:
        """What was read of the next frame is of the past: its writer goes on."""
        checking = self._checking
        checking.at = checking.end = checking.checked = self._room.address
        checking.whole = 0

    def has_frame(self) -> bool:
        """Whether the next frame is there as a whole."""
        if self._look(lambda: lib.sb_frame_check(self._checking)) == OK:
            return True
        self.look_again()
        return self._look(lambda: lib.sb_frame_check(self._checking)) == OK

    def pass_frames(self, passing: Any) -> int:
        """As sb_frames_pass: those that are there by now."""
        passing.serial, passing.epoch = self.serial, self.epoch
        return self._look(lambda: lib.sb_frames_pass(self._checking, passing))

    def _look(self, at_window: Callable[[], int]) -> int:
        while (code := at_window()) == TOO_SMALL and self._fill():
            pass
        return code

    def batch(self, step: Callable[[Any], int]) -> tuple[Batch | None, int]:
        """Of what is in the window what this kernel passes; if that is nothing, what is wrong."""
        checking = self._checking
        while True:
            at, offset = checking.at, checking.offset
            code = step(checking)
            if checking.at > at:
                return Batch(at, checking.at - at, offset), code
            if code != TOO_SMALL or not self._fill():
                return None, code

    @property
    def offset(self) -> int:
        """Of the next record or frame."""
        return int(self._checking.offset)

    @property
    def number(self) -> int:
        """Of the next frame, or of the last record of a salvage."""
        return int(self._checking.number)

    @property
    def bad(self) -> int:
        """The offset of the record that does not check."""
        checking = self._checking
        return int(checking.offset + checking.checked - checking.at)

    def next_bytes(self) -> int:
        """Of the record there, of which only the body is wrong."""
        return int(self._checking.needed)

    def is_beyond(self) -> bool:
        """The next frame is more than the file has."""
        return bool(self._checking.needed > self._limit - self._checking.offset)

    def go_to(self, offset: int) -> None:
        self._checking.offset = offset
        self.look_again()

    def _fill(self) -> bool:
        """The next frame from its beginning on: whether there is as much of it as is needed."""
        checking = self._checking
        left, progress = self._limit - checking.offset, checking.checked - checking.at
        if checking.needed > left:
            return False
        size = min(max(2 * checking.needed, WINDOW_BYTES), left)
        self._room.make(size)
        checking.at = self._room.address
        checking.checked = checking.at + progress
        checking.end = checking.at + max(self._read(size, checking.offset, self._room), progress)
        return bool(checking.end - checking.at >= checking.needed)

    def _read(self, size: int, offset: int, room: Room) -> int:
        """Into the room: how much, if it cannot be all."""
        done = 0
        try:
            while done < size and (
                got := os.preadv(self.file, [room.view[done:size]], offset + done)
            ):
                done += got
        except OSError:
            pass
        return done

    # --- looking for a record -----------------------------------------------------------------

    def search(self, offset: int, lowest: int, highest: int, *, is_synced: bool = False) -> int:
        """The next offset from there on where a record of a frame in this range begins; 0: none.

        `is_synced`: its number counts less how many frames its writer was ahead of the disk.
        """
        looking, room = ffi.new("sb_checking *"), Room(WINDOW_BYTES)
        looking.seed = self._checking.seed
        highest = min(highest, lowest + self.size // RECORD_HEAD_BYTES)  # none has more frames
        at = offset + 7 & -8
        while (left := self._limit - at) >= RECORD_HEAD_BYTES:
            got = self._read(min(left, room.size), at, room)
            looking.offset, looking.at, looking.checked = at, room.address, room.address
            looking.end = room.address + got
            found = lib.sb_records_search(looking, lowest, highest, is_synced) == OK
            at += looking.checked - looking.at
            if found:
                return int(at)
            if got < RECORD_HEAD_BYTES:
                at = (at | PAGE - 1) + 1  # the rest of the page is no better
        return 0

    def was_synced(self) -> bool:
        """A record behind what does not check says that this frame was synced."""
        later = self.number + 1
        return self.search(self.bad, later, FRAMES_MAX, is_synced=True) != 0

    # --- its records --------------------------------------------------------------------------

    def kind_at(self, offset: int) -> int:
        """Of a record that checks."""
        where: int = HEAD.unpack(os.pread(self.file, RECORD_HEAD_BYTES, offset))[-1]
        return where >> RECORD_KIND_SHIFT

    def body_at(self, offset: int) -> bytes:
        length = HEAD.unpack(os.pread(self.file, RECORD_HEAD_BYTES, offset))[2]
        return os.pread(self.file, length, offset + RECORD_HEAD_BYTES)


def newest_of(path: Path) -> tuple[int, bytes]:
    """The highest epoch that a segment of this folder was begun with, from the headers that check,
    and the node that the newest of them has noted; 0: there is none."""
    highest, node = 0, bytes(16)
    for segment in _that_check(path):
        highest, node = max(highest, segment.epoch), segment.node
    return highest, node


def bytes_of_segments(path: Path) -> int:
    """As the headers that check say: of the smallest, as one with a larger frame is longer; 0:
    there is none."""
    return min((segment.bytes for segment in _that_check(path)), default=0)


def _that_check(path: Path) -> Iterator[Segment]:
    """Ascending, each until the next one; the others tell nothing."""
    with SegmentFolder(path) as folder:
        for serial in folder.serials():
            try:
                segment = Segment.open(folder, serial)
            except Error:
                continue
            if segment is not None:
                with segment:
                    yield segment
