"""Reading page files, the oldest first: what checks, in batches, and else what is the matter.

What cannot be read is a torn tail, or damage.  A file of a queue that is not durable ends where its
writer was killed; its messages are in the inbox as well, and come again in a new file.  One of a
durable queue is torn if the next file goes on where it ends, or the inbox does: what was not synced
is in the inbox still, and so in the journal.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from shmbroker.core.codes import DAMAGED, INVALID, OK
from shmbroker.core.layout import RECORD_HEAD_BYTES
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.room import Room
from shmbroker.ipc.paging.page_file import HEADER_BYTES, Head, Header
from shmbroker.ipc.paging.page_folder import NONE, PageFolder
from shmbroker.ipc.paging.page_writer import PageWriter
from shmbroker.ipc.paging.refused import Refused

READ_BYTES: Final = 1 << 18
UNIT: Final = 8
"""A record begins at a multiple of it."""


@dataclass(frozen=True, slots=True)
class Safety:
    """Of a durable queue."""

    next: int
    """All below is out of the files."""
    backed: int
    """All from here on is in the inbox."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A file that was read, and is needed until the journal has all of it."""

    serial: int
    end: int
    """All that it has is below this position."""
    is_damaged: bool


class PageReader:
    def __init__(self, folder: PageFolder, writer: PageWriter, safety: Safety | None) -> None:
        self._folder, self._writer = folder, writer
        self._backed = safety.backed if safety else 0
        self._ours = folder.next  # the first file that is not of before
        self._room = Room(READ_BYTES)
        self._file = NONE
        self._size = 0  # of the file as it was opened
        self._read_at = self._used = 0  # what of it is in the room
        self._epoch = 0  # of the files so far
        self._is_damaged = False
        self._kept: list[Kept] = []
        writer.ends = self._written_no_more
        self._sealing = ffi.new("sb_sealing *")
        self._sealing.next = safety.next if safety else 0
        self.at = self.checked = 0
        """Offsets: the records from the one to the other are to be passed on."""
        self.later = 0
        """What is added to times of expiry in this file."""

    @property
    def expected(self) -> int:
        """The position behind the last that was read."""
        position: int = self._sealing.next
        return position

    @property
    def _is_being_written(self) -> bool:
        return self._writer.has_file and self._folder.first == self._folder.next - 1

    @property
    def _end(self) -> int:
        return self._writer.written if self._is_being_written else self._size

    # --- records at hand ----------------------------------------------------------------------

    def look(self) -> bool:
        """Whether there are records at hand; else all files are read."""
        while not self._folder.is_empty:
            if self._file < 0 and not self._open():
                continue
            if self.at < self.checked:
                return True
            self._advance()
        return False

    def addresses(self) -> tuple[int, int]:
        """Of the records at hand, and where they end."""
        before = self._room.address - self._read_at
        return before + self.at, before + self.checked

    def pass_to(self, address: int) -> None:
        """All below this address is done with."""
        at = address - self._room.address + self._read_at
        self._folder.size -= at - self.at
        self.at = at

    def head(self) -> tuple[Head, int]:
        """The record at `at`, and how many bytes it has."""
        at = self.at - self._read_at
        data = bytes(self._room.view[at : at + RECORD_HEAD_BYTES])
        return Head.of(data), RECORD_HEAD_BYTES + (int.from_bytes(data[8:12], "little") + 7 & -UNIT)

    def _advance(self) -> None:
        """Check more of what was read, or read more, or say what is wrong with it."""
        code = self._check()
        if self.checked > self.at:
            return
        needed = self._sealing.needed
        if code == INVALID:
            self._skip_head()
        elif code == DAMAGED:
            self._skip_body(needed)
        elif self.at + needed > self._end or not self._load(needed):
            self._skip_short()

    def _check(self) -> int:
        """From `at` on as far as it was read."""
        sealing = self._sealing
        before = self._room.address - self._read_at
        sealing.at = before + self.at
        sealing.end = max(before + self.at, self._room.address + self._used)
        sealing.offset = self.at
        sealing.needed = RECORD_HEAD_BYTES
        code: int = lib.sb_records_check(sealing)
        self.checked = sealing.offset
        return code

    def _load(self, needed: int) -> bool:
        """Read from `at` on; False: less is there, as somebody has cut the file."""
        wanted = min(max(needed, READ_BYTES), self._end - self.at)
        self._room.make(wanted)
        self._read_at, self._used = self.at, 0
        while self._used < wanted:
            view = self._room.view[self._used : wanted]
            try:
                got = os.preadv(self._file, [view], self.at + self._used)
            except OSError as error:
                raise self._folder.refused(error, "reading", self._folder.first) from error
            if got == 0:
                break
            self._used += got
        return self._used >= needed

    # --- files --------------------------------------------------------------------------------

    def _open(self) -> bool:
        """The first file; False: it is left out."""
        folder = self._folder
        self.at = self.checked = self._size = self._read_at = self._used = 0
        file = folder.open_file(folder.first)
        if file is None:
            if not self._is_torn():  # else it was not needed any more, and one before it is back
                folder.wrong(0, "the file is missing")
            folder.first += 1
            return False
        self._file = file
        try:
            self._size = os.fstat(file).st_size
            data = os.pread(file, HEADER_BYTES, 0)
        except OSError as error:
            raise folder.refused(error, "reading", folder.first) from error
        if len(data) < HEADER_BYTES:  # who began it was killed
            self._skip_short()
            return False
        header = Header.read(data, folder.first)
        if header is None:
            self._skip_rest("its header does not check: none of it can be read")
            return False
        if header.epoch < self._epoch:  # of one who was replaced
            self.drop_file()
            return False
        self._epoch = header.epoch
        self.later = header.later if folder.syncs else 0
        self._sealing.seed = header.crc
        self.at = self.checked = HEADER_BYTES
        return True

    def drop_file(self) -> None:
        """The file that is read is not needed any more, or only until the journal has all of it."""
        folder = self._folder
        if folder.syncs:
            self._kept.append(Kept(folder.first, self.expected, self._is_damaged))
        else:
            folder.remove(folder.first, is_damaged=self._is_damaged)
        folder.size -= max(self._end - self.at, 0)
        if self._is_being_written:
            self._writer.end()
        self.close()
        self._is_damaged = False
        folder.first += 1
        if folder.is_empty:
            folder.size = 0

    def journaled(self, position: int | None) -> None:
        """The journal has all below this position again, None: all that was read: files with
        nothing else go."""
        gone = 0
        for kept in self._kept:
            if position is not None and kept.end > position:
                break
            self._folder.remove(kept.serial, is_damaged=kept.is_damaged)
            gone += 1
        del self._kept[:gone]

    def _written_no_more(self) -> None:
        """The file that is written is about to be closed."""
        if self._is_being_written:
            self._size = self._writer.written

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = NONE
        self.at = self.checked = self._size = self._read_at = self._used = 0

    # --- what is wrong ------------------------------------------------------------------------

    def _damage(self, what: str) -> None:
        self._folder.wrong(self.at, what)
        self._is_damaged = True

    def _is_torn(self) -> bool:
        """What cannot be read is no damage: whoever came next has found it in the inbox, and begun
        the next file with it; or it is there still."""
        folder = self._folder
        if not folder.syncs or folder.first >= self._ours:
            return False
        for serial in range(folder.first + 1, folder.next):
            head = self._first_of(serial)
            if head is not None:
                return not head.is_message or head.position <= self.expected
        return self.expected >= self._backed

    def _first_of(self, serial: int) -> Head | None:
        try:
            file = self._folder.open_file(serial)
        except Refused:
            return None
        if file is None:
            return None
        try:
            return Head.first(os.pread(file, HEADER_BYTES + RECORD_HEAD_BYTES, 0), serial)
        except OSError:
            return None
        finally:
            os.close(file)

    def _skip_rest(self, what: str) -> None:
        if not self._is_torn():
            self._damage(what)
        self.drop_file()

    def _skip_short(self) -> None:
        """There is less of the file than there should be; or it was read to its end."""
        if self._folder.syncs and (self.at == 0 or self.at < self._end):
            self._skip_rest("the file ends in the middle of a record")
        else:
            self.drop_file()

    def _skip_body(self, length: int) -> None:
        if self._is_torn():
            self.drop_file()
            return
        head, _ = self.head()
        self._sealing.next = max(self.expected, head.position + 1)
        self._damage("the body of a record does not check")
        self._folder.size -= length
        self.at = self.checked = self.at + length

    def _skip_head(self) -> None:
        """What a damaged head was before is lost with its message; what is behind it is not."""
        if self._is_torn():
            self.drop_file()
            return
        self._damage("the head of a record does not check")
        if not self._find():
            self.drop_file()

    def _find(self) -> bool:
        """The next record that checks, behind one whose length nobody knows."""
        begin = self.at
        while self._find_head():
            self._check()
            needed = self._sealing.needed
            if self.checked == self.at and self._is_cut(needed):
                self._load(needed)
                self._check()
            if self.checked > self.at:
                self._folder.size -= self.at - begin
                return True
        self.at = self.checked = begin
        return False

    def _is_cut(self, needed: int) -> bool:
        """The record is in the file, but not all of it in the room."""
        return self._read_at + self._used < self.at + needed <= self._end

    def _find_head(self) -> bool:
        """Go to the next head that checks."""
        sealing = self._sealing
        while self.at + UNIT + RECORD_HEAD_BYTES <= self._end:
            if self._is_cut(UNIT + RECORD_HEAD_BYTES):
                self._load(UNIT + RECORD_HEAD_BYTES)
            before = self._room.address - self._read_at
            sealing.at = before + self.at
            sealing.end = self._room.address + self._used
            sealing.offset = self.at
            code = lib.sb_records_find(sealing)
            has_moved = self.at < sealing.offset
            self.at = self.checked = sealing.offset
            if code == OK:
                return True
            if not has_moved:
                break
        return False
