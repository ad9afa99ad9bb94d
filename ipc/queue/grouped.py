"""What the broker of a cluster tells programs of groups (grouped.c): names, and a time-out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.codes import INTERRUPTED
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.timeout import FOREVER, Seconds, seconds

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.queue.opened import OpenedQueue

ROUTES: Final = "$groups"
"""The last value of each group is the queue here that its messages go to."""
ASKED: Final = f"{ROUTES}.asked"
"""Groups that have no route, or one that is used."""
SEPARATOR: Final = "\x01"
"""In a key, between the name of the queue and the group."""
TIMEOUT: Final = f"{SEPARATOR}timeout"
"""The key of a number: milliseconds that a decision may take."""
USES: Final = f"{SEPARATOR}uses"
"""After so many the broker is to know that a route is used."""
LIMIT_SECONDS: Final = 5.0


def decision_limit(broker: Broker) -> float:
    """Seconds that a decision may take."""
    try:
        said = broker.queue(ROUTES).value(TIMEOUT)
    except Error:  # the broker is just ending
        return LIMIT_SECONDS
    return LIMIT_SECONDS if said is None else int(bytes(said.body)) / 1000


def until_decided(broker: Broker, timeout: Seconds | None) -> float:
    """Seconds that a decision is waited for."""
    limit = decision_limit(broker)
    return limit if timeout is None else min(seconds(timeout), limit)


def decided(queue: OpenedQueue, message: Any, *, waits: bool) -> int:
    """To which node it goes: GROUPING_TIMEOUT if that is not decided in time, or now.

    Where C does not say how long it waits for this, it waits as long as it may, and hears no
    signals: so it is asked before."""
    code: int = INTERRUPTED
    while code == INTERRUPTED:
        code = lib.sb_group_decided(queue._queue, message, FOREVER if waits else 0)
    return code
