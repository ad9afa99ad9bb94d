"""What bridges that are no more have left: gates, and what they had selected or changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.connection.broker import SCHEME, Broker, connect
from shmbroker.netbridge.broker import gates
from shmbroker.netbridge.broker.gates import Gated


class FormerBridges:
    """Of one thread at a time, that of `owner.Owner`."""

    def __init__(self, vhost: str, tell: Callable[[Mapping[str, Any]], None]) -> None:
        self.waits: set[str] = set()
        """Queues of such bridges, from which not all is back: there was no room, say."""
        self._vhost, self._tell = vhost, tell
        self._told: dict[str, str] = {}
        """Of these queues, and why, as far as an error says it."""

    def drop(self, broker: Broker, wanted: Collection[Gated]) -> None:
        self.waits = gates.drop(broker, wanted)
        self._bring_back(broker)

    def tries(self) -> None:
        """Once more: there may be room by now."""
        if self.waits:
            with connect(f"{SCHEME}{self._vhost}", name="former bridges") as broker:
                self._bring_back(broker)

    def _bring_back(self, broker: Broker) -> None:
        left = self._tried(broker) if self.waits else {}
        if left.items() - self._told.items():
            what = "what bridges of before had selected is not in its queue again"
            named = (f"{name} ({why})" if why else name for name, why in left.items())
            detail = f"it is tried again: {', '.join(named)}"
            self._tell({"event": "bridge", "level": "warning", "what": what, "detail": detail})
        self._told = left

    def _tried(self, broker: Broker) -> dict[str, str]:
        """Queues of which something is left, and why."""
        from shmbroker.netbridge.bridged.outbox import bring_back  # and ZeroMQ with it

        whys = dict.fromkeys(sorted(self.waits), "")
        for name in whys:
            try:
                bring_back(broker, name)
            except Error as error:  # the queue that it is for was deleted, say
                whys[name] = told(error)
        self.waits &= set(broker._catalog.queue_names().values())
        return {name: why for name, why in whys.items() if name in self.waits}
