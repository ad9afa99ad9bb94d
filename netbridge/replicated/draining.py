"""A member that has taken over, and gives all that its live had to another node of its cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance import leaving, moving
from shmbroker.ipc.instance.config.config import Config
from shmbroker.netbridge.cluster.scale_down import ScaleDown
from shmbroker.netbridge.clustered.departure import Departure
from shmbroker.netbridge.clustered.members import Members
from shmbroker.netbridge.clustered.rows import Row
from shmbroker.netbridge.clustered.setup import show
from shmbroker.netbridge.election.question import Node


class Draining:
    """Of one time as live; in a thread of its own."""

    def __init__(
        self, config: Config, cluster: str, wanted: ScaleDown, members: Members,
        tell: Callable[[Mapping[str, Any]], None], broker: Broker, gave: Callable[[bool], None],
    ) -> None:  # fmt: skip
        """`broker`: of the live's own; `gave`: told whether all of it went."""
        self._vhost, self._broker, self._gave, self._tell = config.vhost, broker, gave, tell
        self._departure = Departure(
            members, cluster, wanted, tell, partial(show, config), drains=True
        )
        self._thread = threading.Thread(target=self._run, name="drains", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """It is live no more."""
        self._departure.stop()
        self._thread.join()

    def _run(self) -> None:
        is_whole = False
        try:
            left = self._departure.run(self._parts, self._programs_end)
            late = leaving.left_behind(self._broker) if left.is_whole else ""
            if late:
                self._fails(late)
            is_whole = left.is_whole and not late
        except (Error, OSError) as error:
            self._fails(told(error))
        try:
            self._gave(is_whole)
        except OSError as error:  # that it is whole could not be noted, and so it is not
            self._fails(told(error))
            self._gave(False)

    def _fails(self, why: str) -> None:
        self._tell({"event": "not scaled down", "level": "error", "why": why})

    def _parts(self, to: str, ours: Broker) -> None:
        """Programs go; the journal and the replicas go on."""
        moving.departs(self._vhost, to, self._broker, ours)

    def _programs_end(self, node: Node, name: str, uri: str) -> list[Row]:
        """None of another host was let in."""
        return []
