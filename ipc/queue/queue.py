"""A queue: publish to it, take from it.  Any thread may use one."""

from __future__ import annotations

from typing import Any

from shmbroker.core.codes import OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.queue.looking import Looking
from shmbroker.ipc.queue.managing import Managing
from shmbroker.ipc.queue.publishing import Publishing
from shmbroker.ipc.queue.retry import Retried, retry
from shmbroker.ipc.queue.taking import Taking
from shmbroker.ipc.ring.port import Port


class Queue(Publishing, Taking, Looking, Managing):
    """Made by Broker.queue and Broker.declare_queue."""

    __slots__ = ()

    def retry(self, limit: int | None = None) -> Retried:
        """Send dead letters back to the queues that they come from, up to limit of them.

        Each is published there before it is acknowledged here, so a death in between leaves it in
        both.  What cannot go back stays.
        """
        return retry(self, limit)

    def port(self) -> Port:
        """One thread's own way in, for compiled code (shmbroker.kernels): Port.address."""
        port = ffi.new("sb_port **")
        code: int = lib.sb_queue_port(self._queue, port)
        if code != OK:
            raise self._error(code, "a port of")
        opened = Port(self, port[0])
        self._broker._ports.add(opened)
        return opened

    def _port_close(self, port: Any) -> None:
        lib.sb_queue_port_return(self._queue, port)
