"""What ends a wait of a thread for something that comes, from any other thread."""

from __future__ import annotations

import os
import select
import socket
from contextlib import suppress

from shmbroker.ipc.base.closable import Closable


class Wake(Closable):
    def __init__(self) -> None:
        self._eventfd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def set(self) -> None:
        os.eventfd_write(self._eventfd, 1)

    def wait(self, timeout: float | None, source: socket.socket | None = None) -> bool:
        """Whether the source has something to read; no longer than until it is set."""
        poll = select.poll()
        poll.register(self._eventfd, select.POLLIN)
        if source is not None:
            poll.register(source, select.POLLIN)
        ready = {each for each, _ in poll.poll(None if timeout is None else timeout * 1000)}
        if self._eventfd in ready:
            with suppress(BlockingIOError):
                os.eventfd_read(self._eventfd)
        return source is not None and source.fileno() in ready

    def close(self) -> None:
        os.close(self._eventfd)
