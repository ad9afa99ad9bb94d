"""Until when the broker of a vhost serves what is durable there: takers and confirms look at it."""

from __future__ import annotations

import math

from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.settings.setting import REPLICATE, Replicate

NANOSECONDS = 1_000_000_000
FOREVER = (1 << 63) - 1


class Serving:
    """Said by its broker, from one thread at a time; for ever, where nobody says so."""

    def __init__(self, broker: Broker) -> None:
        self._connection = broker._connection
        self._pace = ffi.new("sb_pace *")

    def until(self, moment: float, *, disk_alone: bool = True) -> None:
        """In seconds of CLOCK_BOOTTIME; 0 or less: not now, infinity: for ever.

        `disk_alone`: what the disk alone has is confirmed, if that is asked for.
        """
        until = FOREVER if moment == math.inf else int(max(0.0, moment) * NANOSECONDS)
        lib.sb_vhost_serves_until(self._connection, self._pace, until, disk_alone)

    def replicates(self, default: Replicate) -> None:
        """Of a member of a replicated node: what others have of what does not say it."""
        lib.sb_vhost_replicates(self._connection, REPLICATE[default])

    def runs_ahead(self, may: bool) -> None:
        """Whether replicas confirm what the disk here lacks, where `replicated` is asked for."""
        lib.sb_vhost_runs_ahead(self._connection, may)

    @property
    def asks_ahead(self) -> bool:
        """Somebody has asked for that since it was said that they do not."""
        return bool(lib.sb_vhost_asks_ahead(self._connection))
