"""The queues of this broker, and whether somebody consumes: looked at while it has links."""

from __future__ import annotations

from typing import Final

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.connection.outline import Outlook
from shmbroker.netbridge.network.demand import Here
from shmbroker.netbridge.networked.supplying import is_own

LOOK_SECONDS: Final = 0.2
"""Between two looks: nothing tells yet that a consumer came."""


class Looking(Closable):
    """Of one thread at a time."""

    def __init__(self, vhost: str) -> None:
        self._outlook = Outlook(vhost)

    def look(self) -> tuple[Here, ...] | None:
        """None: nothing has changed, or the vhost is just being made or removed."""
        try:
            found = self._outlook.look()
        except (Error, OSError):
            self.close()  # the next look tells
            return None
        if found is None:
            return None
        return tuple(
            Here(each.name, each.is_consumed)
            for each in found.queues
            if not each.is_temporary and not is_own(each.name)
        )

    def close(self) -> None:
        self._outlook.close()
