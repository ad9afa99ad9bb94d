"""Paging the queues of a vhost (ipc/paging/pager.c): messages without room in memory go to files.

`shmbroker run` has one for its instance.  A program that has no broker beside it may have its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shmbroker.core.codes import OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import error_for
from shmbroker.ipc.base.names import path_bytes
from shmbroker.ipc.broker.store_writer import StoreWriter
from shmbroker.ipc.connection.broker import Broker


class Pager(StoreWriter):
    """Works until it, or its broker, is closed, in a thread of C."""

    def __init__(
        self,
        broker: Broker,
        folder: str | Path,
        *,
        page_bytes: int = 0,
        epoch: int = 0,
        fence: int = -1,
        until: Any = None,
    ) -> None:
        """What is durable is written by who has the epoch in the file `fence`, `until` a moment."""
        self.folder = Path(folder)
        self._broker = broker  # whose memory it looks at
        self._until = ffi.NULL if until is None else until
        fenced = ffi.new("sb_pager_fence *", [epoch, fence, self._until])
        made = ffi.new("sb_pager **")
        code = lib.sb_pager_start(
            broker._connection, path_bytes(self.folder), page_bytes, fenced, made
        )
        if code != OK:
            raise error_for(code, f"pages in {folder}", ffi.errno, detail_of(code))
        super().__init__("pager", made[0], f"pages in {folder}")
