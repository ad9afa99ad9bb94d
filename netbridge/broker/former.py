"""What bridges that are no more have left: gates, and what they had selected or changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.connection.broker import SCHEME, Broker, connect
from shmbroker.netbridge.broker import gates
from shmbroker.netbridge.broker.gates import Gated


class FormerBridges:
    """Of one thread at a time, that of `owner.Owner`."""

    def __init__(self, vhost: str, tell: Callable[[Mapping[str, Any]], None]) -> None:
        self.waits: set[str] = set()
        """Queues of such bridges, from which not all is back: there was no room, say."""
        self._vhost, self._tell = vhost, tell

    def drop(self, broker: Broker, wanted: Collection[Gated]) -> None:
        self.waits = gates.drop(broker, wanted)
        self._bring_back(broker)
        if self.waits:
            what = "what bridges of before had selected is not in its queue again"
            detail = f"it is tried again: {', '.join(sorted(self.waits))}"
            self._tell({"event": "bridge", "level": "warning", "what": what, "detail": detail})

    def tries(self) -> None:
        """Once more: there may be room by now."""
        if self.waits:
            with connect(f"{SCHEME}{self._vhost}", name="former bridges") as broker:
                self._bring_back(broker)

    def _bring_back(self, broker: Broker) -> None:
        if self.waits:
            from shmbroker.netbridge.bridged.outbox import bring_back  # and ZeroMQ with it

            for name in self.waits:
                with suppress(Error):  # it, or the queue that it is for, was deleted meanwhile
                    bring_back(broker, name)
            self.waits &= set(broker._catalog.queue_names().values())
