"""What waits in a queue until it is confirmed elsewhere: how much, and for how long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from shmbroker.ipc.base.errors import Error

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker


def waiting(broker: Broker | None, name: str) -> tuple[int | None, float | None]:
    """How many messages, and the age of the first one; None if there is no such queue, or none."""
    if broker is None:
        return None, None
    try:
        queue = broker.queue(name)
        first = next(queue.browse(unconfirmed=True), None)
        age = time.time() - first.published_at / 1e9 if first and first.published_at else None
        return len(queue), age if age is None else round(max(0.0, age), 3)
    except Error:
        return None, None
