"""What the broker of a cluster tells programs of groups (grouped.c): names, and a time-out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shmbroker.ipc.base.errors import Error

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

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
