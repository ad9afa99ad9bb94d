"""The gate of a replica: confirms of a durable queue wait for it (ipc/follower/barrier.c)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shmbroker.ipc._native import lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.base.names import name_bytes
from shmbroker.ipc.follower.header import KINDS

if TYPE_CHECKING:
    from shmbroker.ipc.queue.queue import Queue


class ReplicaGate(Closable):
    """Ours, of this name; it stays when we end, and whoever opens it next goes on where it is."""

    def __init__(self, queue: Queue, name: str, *, from_now: bool = False) -> None:
        self.name = name
        self._queue = queue
        kind = KINDS.index("replica")
        self._gate = self._check(lib.sb_gate_open(queue._queue, kind, name_bytes(name), from_now))
        self._is_open = True

    def _check(self, code: int) -> int:
        if code < 0:
            raise self._queue._error(code, f"the gate of replica {self.name!r} of")
        return code

    @property
    def position(self) -> int:
        """All below it the replica has."""
        return self._check(lib.sb_gate_position(self._queue._queue, self._gate))

    def join(self) -> int:
        """From now on nothing is confirmed that the replica does not have: what is, already.

        Once the gate has come to that position the replica is in sync.
        """
        return self._check(lib.sb_barrier_join(self._queue._queue, self._gate))

    def move(self, position: int) -> None:
        """The replica has all below this position."""
        self._check(lib.sb_gate_move(self._queue._queue, self._gate, position))

    def leave(self) -> None:
        """Confirms do not wait for the replica any more."""
        self._check(lib.sb_barrier_leave(self._queue._queue, self._gate))

    def close(self, *, leaves: bool = False) -> None:
        """The gate stays where it is, and confirms wait for it, unless it leaves."""
        if self._is_open:
            self._is_open = False
            self._check(lib.sb_gate_close(self._queue._queue, self._gate, leaves))


def drop(queue: Queue, name: str) -> None:
    """Confirms do not wait for this replica any more, whosever its gate is."""
    for gate in queue.gates():
        if gate.kind == "replica" and gate.name == name:
            code = lib.sb_barrier_leave(queue._queue, gate.index)
            if code < 0:
                raise queue._error(code, f"dropping replica {name!r} of")
            return
    raise NotFound(f"queue {queue.name!r} has no replica {name!r}")
