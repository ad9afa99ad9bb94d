"""The handle of a queue in C.  It is closed when no Python object uses it any more.

A queue that was deleted is let go of before that (ipc/ring/deleted.c); what is left then is a small
structure that answers that it was deleted.
"""

from __future__ import annotations

from typing import Any

from shmbroker.ipc._native import ffi, lib


class Handles:
    """Keeps the connection for as long as there is one."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def opened(self, queue: Any) -> Any:
        """What C has opened for us, to be closed with the last reference to it."""
        return ffi.gc(queue, self._close)

    def shared(self, queue: Any) -> Any:
        """The same for what C has opened for itself, or for somebody else."""
        lib.sb_share_queue(queue)
        return self.opened(queue)

    def receipts(self) -> Any:
        return ffi.gc(ffi.new("sb_receipts *"), self._free)

    # what they need is bound here: at the end of the program the module may be empty
    def _close(self, queue: Any, close: Any = lib.sb_close_queue) -> None:
        if hasattr(self, "_owner"):  # else the collector was faster, and the connection is gone
            close(queue)

    def _free(self, receipts: Any, free: Any = lib.sb_receipts_free) -> None:
        if hasattr(self, "_owner"):
            free(receipts)
