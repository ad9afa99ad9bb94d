"""A ring and its arena, attached to this process."""

from __future__ import annotations

import weakref
from typing import Any

from shmbroker.core.codes import OK
from shmbroker.core.layout import RING_BROADCAST
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import error_for
from shmbroker.ipc.ring.port import Port


def _check(code: int, what: str) -> None:
    if code != OK:
        raise error_for(code, what, ffi.errno)


class Ring(Closable):
    """Messages between processes: open one port for each thread that publishes or takes."""

    def __init__(self, name: str, ring: Any) -> None:
        self.name = name
        self._ring = ring
        self._ports: weakref.WeakSet[Port] = weakref.WeakSet()

    @classmethod
    def create(
        cls, name: str, slots: int = 1024, arena_bytes: int = 64 << 20, *, broadcast: bool = False
    ) -> Ring:
        """Make a ring and attach to it."""
        flags = RING_BROADCAST if broadcast else 0
        code = lib.sb_ring_create(name.encode(), slots, arena_bytes, flags)
        _check(code, f"ring {name!r} of {slots} slots, arena of {arena_bytes} bytes")
        return cls.attach(name)

    @classmethod
    def attach(cls, name: str) -> Ring:
        """Map a ring that exists, after checking that it is one."""
        attached = ffi.new("sb_ring **")
        _check(lib.sb_ring_attach(name.encode(), attached), f"ring {name!r}")
        return cls(name, attached[0])

    @staticmethod
    def remove(name: str) -> None:
        """Remove the name; who is attached may go on."""
        _check(lib.sb_ring_remove(name.encode()), f"ring {name!r}")

    def port(self, owner: int) -> Port:
        """A way in for one thread of participant `owner`, from 1 to 4095."""
        port = ffi.new("sb_port *")
        _check(lib.sb_ring_port(self._ring, owner, port), f"ring {self.name!r}, owner {owner}")
        opened = Port(self, port)
        self._ports.add(opened)
        return opened

    def _port_close(self, port: Any) -> None:
        lib.sb_port_close(port)
        lib.sb_port_end(port)  # compiled loops may go on with its address

    def close(self) -> None:
        """Close all ports and unmap; views of messages are invalid from here on."""
        if self._ring is None:
            return
        for port in list(self._ports):
            port.close()
        lib.sb_ring_detach(self._ring)
        self._ring = None
