"""What is in a queue that is replaced by a replica, in a file.

A ring cannot be closed to publishers before it is replaced (core/closed.py).  So what is in it is
on disk first, then it is replaced, and then what was published meanwhile is added: the ring stays
mapped until then.  Publishers look whether their queue is there before they publish, so whatever
comes after that comes within microseconds, and a sync takes longer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TextIO

from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.room import Room
from shmbroker.ipc.queue.export import line_of
from shmbroker.ipc.queue.looking import copied_at
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.ring.look import head_of, looking, port_to

SYNCS_MAX = 8
"""So often it is looked for what was published in a sync."""


class Saving:
    """Of one queue; while it is looked at, also when it is there no more."""

    def __init__(self, queue: Queue, file: TextIO) -> None:
        self._queue, self._file = queue, file
        self._port = port_to(queue)
        self._below = 0
        self.count = 0
        """Of messages in the file."""

    def write(self) -> None:
        """What is not in the file yet, taken by somebody or not, confirmed or not: it is synced."""
        for _ in range(SYNCS_MAX):
            end = lib.sb_port_true_tail(self._port)
            if end < 0:
                raise self._queue._error(end, "looking at")
            if end == self._below:
                break
            for each in self._messages(end):
                self._file.write(f"{line_of(each)}\n")
                self.count += 1
            self._below = end
            self._file.flush()
            os.fsync(self._file.fileno())

    def _messages(self, end: int) -> Iterator[CopiedMessage]:
        room = Room()
        for position in range(max(self._below, head_of(self._port)), end):
            found = copied_at(self._queue, lib.sb_port_peek_ahead, self._port, position, room)
            if found is not None:
                yield found[0]


def is_there(queue: Queue) -> bool:
    """It was not deleted or replaced."""
    try:
        with looking(queue):
            return True
    except Error:
        return False
