"""Frees a connection when nothing refers to it any more.

The garbage collector finalizes all members of a cycle in any order, and only then takes the cycle
apart.  A message in it gives itself back when it is finalized, and needs the connection for that.
So the connection must not be finalized with it, as ffi.gc would have it: its owner is a piece of
memory, which the collector does not know, and which goes last.
"""

from __future__ import annotations

import atexit
import weakref
from typing import Any

from shmbroker.ipc._native import ffi, lib

_connections: dict[weakref.ref[Any], Any] = {}


def owner_of(connection: Any) -> Any:
    """Keep this as long as the connection is needed."""
    owner = ffi.new("sb_connection **", connection)
    _connections[weakref.ref(owner, _free)] = connection
    return owner


def _free(owner: weakref.ref[Any]) -> None:
    lib.sb_connection_free(_connections.pop(owner))


@atexit.register
def _leave() -> None:
    """A program that ends without closing its connections leaves all the same."""
    for connection in list(_connections.values()):
        lib.sb_disconnect(connection)


class Kept:
    """What messages need of their queue: whoever keeps this keeps queue and connection open.

    The queue's Python object is not among it, nor the broker's, which may refer to messages.
    """

    __slots__ = ("arena", "codec", "owner", "queue")

    def __init__(self, owner: Any, queue: Any, arena: Any) -> None:
        self.owner = owner
        self.queue = queue
        self.arena = arena
        self.codec: Any = None
        """How messages that are taken with this are read: Message.value."""
