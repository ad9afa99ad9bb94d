"""Queues of message groups at which something lacks: `groups=True`, or a consumer at this node.

Their node has a grouping handler, so a group of any node may come here, and its route stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.doctor.finding import Finding
from shmbroker.ipc.queue.grouped import ROUTES, SEPARATOR

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

WITHOUT_GROUPS = (
    "messages of groups are published to it, and it was declared without groups=True: its "
    "consumers share the messages of a group, in no order"
)
WITHOUT_CONSUMER = (
    "it has groups, and no consumer at this node: messages of groups that come here wait"
)
MAKE = "delete it when it is empty, and declare it with groups=True"
CONSUME = "start a consumer of it at each node of the cluster"


def findings(broker: Broker) -> Iterator[Finding]:
    queues = {each.name: each for each in broker.queues()}
    if ROUTES not in queues:  # there is no handler
        return
    routed = _routed(broker)
    for name, row in queues.items():
        with suppress(NotFound):  # deleted meanwhile
            has_groups = bool(broker.queue(name).explain()["groups"].value)
            subject = f"queue {name!r} of vhost {broker.vhost!r}"
            if name in routed and not has_groups:
                yield Finding("warning", subject, WITHOUT_GROUPS, MAKE)
            elif has_groups and not row.consumers:
                yield Finding("note", subject, WITHOUT_CONSUMER, CONSUME)


def _routed(broker: Broker) -> frozenset[str]:
    """Queues of the groups that this node knows of."""
    newest = {each.key or "": bytes(each.body) for each in broker.queue(ROUTES).browse()}
    names = (key.partition(SEPARATOR)[0] for key, route in newest.items() if route)
    return frozenset(name for name in names if name)
