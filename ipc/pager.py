"""Paging the queues of a vhost (native/pager.c): what does not fit into memory goes to files.

`shmbroker run` has one for its instance.  A program that has no broker beside it may have its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from shmbroker.core.codes import CLOSED, DISK_FULL, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.broker import Broker
from shmbroker.ipc.detail import detail_of
from shmbroker.ipc.errors import Error, error_for

HOUR_NS = 3600 * 10**9


class Pager:
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
        code = lib.sb_pager_start(broker._connection, bytes(self.folder), page_bytes, fenced, made)
        if code != OK:
            raise error_for(code, f"pages in {folder}", ffi.errno, detail_of(code))
        self._pager = made[0]

    @property
    def failure(self) -> Error | None:
        """Why it does not write: DiskFull while it waits for room, or why it has ended."""
        code = lib.sb_pager_code(self._pager)
        return None if code in (OK, CLOSED) else self._error(code)

    def changes(self) -> Iterator[Error | None]:
        """`failure`, each time that it is of another kind, until it has ended; waits in between."""
        code = OK
        while code in (OK, DISK_FULL):
            seen, code = code, lib.sb_pager_await(self._pager, code, HOUR_NS)
            if code not in (seen, CLOSED):
                yield None if code == OK else self._error(code)

    def _error(self, code: int) -> Error:
        why = ffi.string(lib.sb_pager_why(self._pager)).decode()
        return error_for(code, f"pages in {self.folder}", detail=why)

    def stop(self) -> None:
        """It ends; what is in files stays there, for the next."""
        lib.sb_pager_stop(self._pager)

    def close(self) -> None:
        """Stop, and free it: nobody may look at its `changes` any more."""
        if self._pager != ffi.NULL:
            lib.sb_pager_free(self._pager)
            self._pager = ffi.NULL

    def __enter__(self) -> Pager:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
