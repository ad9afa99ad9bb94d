"""What a cluster has left in the catalog of a broker that is in no cluster any more, or carries
nothing for one: what is published would wait for links that are not there.
"""

from __future__ import annotations

from typing import Final

from shmbroker.core.layout import BINDING_HERE
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.exchange.own_binding import change_own, own_bindings
from shmbroker.ipc.instance.leaving import delete_own
from shmbroker.ipc.queue.grouped import ASKED, ROUTES
from shmbroker.netbridge.broker.gates import TOWARDS

KEPT: Final = f"{ROUTES}.kept"


def forget(broker: Broker) -> None:
    """From now on what is published stays here.  What waits for other nodes already stays in its
    queue."""
    code = lib.sb_balances_forget(broker._connection, 0)
    broker._check(code, "forgetting which queues are balanced")
    ended = [each for each in own_bindings(broker)
             if each.queue.startswith(TOWARDS) or each.target == BINDING_HERE]  # fmt: skip
    for error in change_own(broker, (), ended).values():
        if not isinstance(error, NotFound):  # an end of it was deleted meanwhile
            raise error
    forget_routes(broker)


def forget_routes(broker: Broker) -> None:
    """There is no grouping handler here any more."""
    there = set(broker._catalog.queue_names().values())
    for name in (ROUTES, ASKED, KEPT):  # the first one says that there is a handler
        if name in there:
            delete_own(broker, name)
