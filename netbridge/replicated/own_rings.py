"""Whose the rings are that have the name of a member's vhost.

A member removes what an earlier process of it has left there, and nothing else: programs without a
broker, another broker, or another member on this host may have the same name.

rings       in the store: the identity of those that a process of this member has made last
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import InUse
from shmbroker.ipc.base.trust import opened
from shmbroker.ipc.instance.rings import ForeignRings, found, has_queues
from shmbroker.ipc.vhost import vhost as vhosts

FILE: Final = "rings"
BYTES: Final = 20


class OwnRings(Closable):
    def __init__(self, store: Path, vhost: str) -> None:
        self._vhost = vhost
        self._file = opened(store / FILE, os.O_RDWR | os.O_CREAT)

    @property
    def identity(self) -> int:
        """0: none yet, or it did not outlive a power failure, as the rings."""
        try:
            return int(os.pread(self._file, BYTES, 0))
        except ValueError:
            return 0

    def made(self) -> None:
        """Those that are there."""
        with suppress(OSError):  # a full disk: then they are taken for somebody else's
            os.pwrite(self._file, b"%*d" % (BYTES, found(self._vhost).identity), 0)

    def make_way(self) -> None:
        """Before the first ones of this process.  ForeignRings: those that are there are not of
        this member, and somebody may need them."""
        there = found(self._vhost)
        if there.identity in (0, self.identity):
            return  # nothing, or of the past: whoever makes new ones removes it
        is_needed = there.is_whole and has_queues(self._vhost)
        with suppress(InUse):
            if not is_needed:
                vhosts.delete(self._vhost)
                return
        raise ForeignRings(
            f"vhost {self._vhost!r} is there, and this member has not made it: another broker, or "
            "programs, use it.  Set instance.vhost to a name that nobody else has on this host, or "
            "look whether somebody needs what is in it, and delete it by "
            f"shmbroker vhost delete {self._vhost}"
        )

    def retire(self) -> None:
        """At the end, those that this member has made last: by now others may have its name."""
        if found(self._vhost).identity == self.identity != 0:
            vhosts.retire(self._vhost)

    def close(self) -> None:
        os.close(self._file)
