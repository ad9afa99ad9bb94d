"""Processes of members on this host, of whose death the kernel tells."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from shmbroker.ipc.instance import process as processes
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.member.codec import Here


class Deaths:
    """Of the network thread."""

    def __init__(self, thread: NetworkThread, died: Callable[[str], None]) -> None:
        self._thread, self._died = thread, died
        self._descriptors: dict[str, int] = {}

    def watch(self, member: str, here: Here) -> None:
        """Its process, in place of a former one; one of another host cannot be watched, and none
        while no more files can be opened: then its death is not told."""
        self._unwatch(member)
        other = processes.Process(here.pid, here.started, here.boot, here.namespace)
        descriptor = None
        with suppress(OSError):
            descriptor = other.descriptor()
        if descriptor is None:
            return
        self._descriptors[member] = descriptor

        def died() -> None:
            self._unwatch(member)
            self._died(member)

        self._thread.watch(descriptor, died)

    def _unwatch(self, member: str) -> None:
        descriptor = self._descriptors.pop(member, None)
        if descriptor is not None:
            self._thread.unwatch(descriptor)
            os.close(descriptor)
