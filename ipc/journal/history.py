"""A journal's frames out of its files, one after the other, also while it is written.

It begins with the oldest segment that is needed and goes on to where the writer is; each frame is
told with the number of the one before, so that whoever gets them sees that none is missing.  A
frame that does not check is not there yet.  A segment has ended when a later one has a frame, and
then there is still nothing more in it: the next one has its name before it is needed.

Segments may go while they are read, unless the writer keeps them (Journal.keep): their files get
other names and other contents.  So a segment counts as read only if its name still led to our file
after the last look.
"""

from __future__ import annotations

import os
from pathlib import Path

from shmbroker.core.codes import GONE, OK, SYSTEM, TOO_LARGE
from shmbroker.ipc._native import ffi
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error, MessageGone
from shmbroker.ipc.journal.place import FRAME_BITS, Place
from shmbroker.ipc.journal.segment import Segment
from shmbroker.ipc.journal.segment_folder import SegmentFolder, segment_name, size_of
from shmbroker.ipc.journal.segment_list import read_list
from shmbroker.ipc.journal.shipping import Buffer, place_of

ANY: int = 1 << 62
"""More than any serial."""


class History(Closable):
    """All that is needed of a journal, out of its files, while it is written.  For one thread.

    `passed`: segments that were let go of are noted there and passed over; None: MessageGone.
    """

    def __init__(self, folder: Path, passed: list[int] | None = None) -> None:
        self._path, self._passed = folder, passed
        self._folder = SegmentFolder(folder)
        try:
            self._listed = [each.serial for each in read_list(self._folder).entries]
        except BaseException:
            self._folder.close()
            raise
        self._skips = True  # only what is listed, as far as that goes
        self._is_strict = False  # no segment is missing
        self._segment: Segment | None = None
        self._serial = 0  # that is read, or the last that was
        self._passing = ffi.new("sb_passing *")
        self._buffer = Buffer()

    # --- its segments -------------------------------------------------------------------------

    def _next_serial(self, after: int) -> int | None:
        """To be read after this one; None: there is none yet."""
        there = self._folder.serials()
        if self._skips:
            last = max(self._listed, default=0)
            there = self._listed + [serial for serial in there if serial > last]
        return min((serial for serial in there if serial > after), default=None)

    def _gone(self, serial: int) -> Error:
        what = f"segment {serial:016x} was let go of: what it had is in no file any more"
        return self._folder.failed(GONE, f"{self._path}: {what}")

    def _pass_over(self, serial: int) -> None:
        if self._passed is None:
            raise self._gone(serial)
        self._passed.append(serial)

    def _open_next(self) -> Segment | None:
        """The next segment that has a frame; None: there is none yet.  A writer that was killed
        leaves one behind that it had not begun."""
        at = self._serial
        while (serial := self._next_serial(at)) is not None:
            if self._is_strict and serial != at + 1:
                raise self._gone(at + 1)
            segment = Segment.open(self._folder, serial)
            if segment is None:
                self._pass_over(serial)
            else:
                segment.beside_writer()
                if segment.has_frame():
                    return segment
                segment.close()
            at = serial
        return None

    def _end(self) -> None:
        if self._segment is not None:
            self._segment.close()
        self._segment = None

    def _has_its_name(self, segment: Segment) -> bool:
        try:
            named = os.stat(
                segment_name(segment.serial), dir_fd=self._folder.file, follow_symlinks=False
            )
        except OSError:
            return False
        return os.path.samestat(named, os.fstat(segment.file))

    # --- its frames ---------------------------------------------------------------------------

    def _find(self) -> Segment | None:
        """The segment that has the next frame, if there is one yet."""
        ours = self._segment
        if ours is not None and ours.has_frame():
            return ours
        following = self._open_next()
        if following is None:
            return None
        if ours is not None:
            if ours.has_frame():  # the writer is done with it: that was left
                following.close()
                return ours
            if not self._has_its_name(ours):
                if self._passed is None:
                    following.close()
                self._pass_over(self._serial)
        self._end()
        self._segment, self._serial = following, following.serial
        return following

    def read(self) -> memoryview:
        """The next frames, empty if there are none yet, until the next call; MessageGone: they are
        in no file."""
        passing, buffer = self._passing, self._buffer
        buffer.shrink()
        passing.to, passing.room = buffer.address, buffer.room
        try:
            while (segment := self._find()) is not None:
                if segment.pass_frames(passing) == TOO_LARGE:
                    if passing.room < buffer.room:
                        break
                    buffer.grow(passing.needed)
                    passing.to, passing.room = buffer.address, buffer.room
        except Error:
            if passing.room == buffer.room:
                raise
        finally:
            passing.to = 0
        return buffer.view(buffer.room - passing.room)

    # --- finding a frame ----------------------------------------------------------------------

    def _from(self, serial: int) -> None:
        self._end()
        self._serial = serial - 1
        self._passing.last = self._passing.repeated = (0, 0, 0, 0)

    def _look_for(self, place: Place, until: int) -> bool:
        """Read on until a frame is this one, or repeats it: not beyond the segment `until`."""
        passing = self._passing
        passing.wanted = (place.number, place.epoch, place.seal, place.chain)
        try:
            while (segment := self._find()) is not None and segment.serial <= until:
                if segment.pass_frames(passing) == OK:
                    passing.after = passing.last.number
                    self._is_strict = True
                    return True
        finally:
            passing.wanted.number = 0
        return False

    def _has(self, place: Place, begin: int, until: int) -> bool:
        self._from(begin)
        try:
            return self._look_for(place, until)
        except Error as error:
            if error.code == SYSTEM:
                raise
            return False

    def seek(self, place: Place) -> bool:
        """Go on behind this frame, or behind one here that repeats it; False: there is none, or
        not all that comes behind it."""
        serial = place.number >> FRAME_BITS
        self._skips = False
        return place.number > 0 and (self._has(place, serial, serial) or self._has(place, 1, ANY))

    def resume(self, place: Place) -> None:
        """Go on behind a frame that this journal has had, with what is needed of it: what was
        listed behind it, if its segment is not needed any more."""
        serial = place.number >> FRAME_BITS
        self._skips = True
        self._from(serial)
        try:
            is_there = self._look_for(place, serial)
        except MessageGone:
            is_there = False
        finally:
            self._is_strict = False
        if not is_there:
            self._from(serial + 1)

    # --- where it is --------------------------------------------------------------------------

    @property
    def place(self) -> Place | None:
        """The last frame that was read or found."""
        return place_of(self._passing.last)

    @property
    def serial(self) -> int:
        """The oldest segment that it still needs."""
        return self._serial + (self._segment is None)

    @property
    def left_bytes(self) -> int:
        """In the segments that it still needs, about: the newest is not full, and not counted."""
        *sealed, _ = sorted(self._path.glob("*.journal")) or [self._path]
        needed = [each for each in sealed if int(each.stem, 16) >= self.serial]
        return sum(size_of(each) for each in needed)

    def last_places(self) -> tuple[Place | None, Place | None]:
        """As below."""
        self._skips = False
        for serial in reversed(self._folder.serials()):  # the newest may have no frame
            self._from(serial)
            while (segment := self._find()) is not None:
                segment.pass_frames(self._passing)
            if self.place is not None:
                break
        return self.place, place_of(self._passing.repeated)

    def close(self) -> None:
        self._end()
        self._folder.close()


def last_places(folder: Path) -> tuple[Place | None, Place | None]:
    """Of a journal that nobody writes: its last whole frame, and the one that this repeats."""
    with History(folder) as history:
        return history.last_places()
