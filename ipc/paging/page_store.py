"""The page files of one queue: records are put behind all others, and read in the same order.

A file is written from its beginning to its end, is read in the same order, and goes when it is
read.  Whoever is killed in the middle of a write leaves a record that the file has not all of; its
messages are in the inbox as well, and come again in a new file.  So a file that ends in the middle
of a record is no damage by itself; that messages are missing is seen by their positions, which
follow each other (paged.py).

Files of a queue that is not durable are not synced: it does not outlive the machine, and what a
process has written is there for the next one whatever ends it.

Those of a durable queue are synced with each write, and a new file with its folder.  A file that
was read stays until it is known that the journal has all of it, and is read again if the machine
was started anew before.  Whatever was not synced is in the inbox still, and so in the journal.  So
what cannot be read is a torn tail, and is cut, if the next file goes on where that one ends, or the
inbox does; else it is damage.  A record without a message says that all below is done with: it was
purged.

A pager that was stopped while another host took over may go on for a moment with what it was at
(fence.c).  What it writes behind a file that the other one has is no harm: it is in both.  Files
that it makes have an epoch below those of before, or stand where the other one makes its own: they
are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from shmbroker.core.codes import DISK_FULL
from shmbroker.core.layout import RECORD_HEAD_BYTES
from shmbroker.ipc.base.room import Room
from shmbroker.ipc.paging.page_file import purged
from shmbroker.ipc.paging.page_folder import PageFolder
from shmbroker.ipc.paging.page_reader import PageReader, Safety
from shmbroker.ipc.paging.page_writer import PageWriter
from shmbroker.ipc.paging.refused import Refused


class PageStore:
    def __init__(
        self,
        path: Path,
        page_bytes: int,
        epoch: int,
        safety: Safety | None,
        tell: Callable[[str], None],
    ) -> None:
        """`safety`: None, nothing is synced."""
        self._folder = PageFolder(path, syncs=safety is not None, tell=tell)
        self.writer = PageWriter(self._folder, page_bytes, epoch if safety else 0)
        self.reader = PageReader(self._folder, self.writer, safety)

    @property
    def is_empty(self) -> bool:
        """All files are read, and there are none any more."""
        return self._folder.is_empty

    @property
    def size(self) -> int:
        """Of what is there."""
        return self._folder.size

    def clear(self, position: int) -> None:
        """Drop all that is there, which is below this position."""
        folder = self._folder
        last = folder.next
        if folder.syncs:
            # first that they are not needed, then they go: what is missing afterwards was dropped
            self._put_purged(position)
        while folder.first < last:
            self.reader.drop_file()
        if not folder.syncs:
            return
        folder.size = 0 if folder.is_empty else RECORD_HEAD_BYTES
        self.reader.journaled(None)
        folder.sync("syncing the folder of", last)

    def _put_purged(self, position: int) -> None:
        self.writer.end()
        record = purged(position)
        room = Room(len(record))
        room.view[: len(record)] = record
        try:
            self.writer.write(room, 0, len(record))
        except Refused as refused:
            self.writer.forget()
            if refused.code != DISK_FULL:  # then dropping is what makes room
                raise

    def close(self) -> None:
        self.writer.close()
        self.reader.close()
        self._folder.close()
