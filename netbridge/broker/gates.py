"""The gates that bridges have left in their queues."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.follower.follower import Follower
from shmbroker.netbridge.plan.bridge import OUTBOX

KIND = "link"
PREFIX = "link "
TOWARDS = "$sf."
"""How the name of a queue towards another node of a cluster begins."""
FETCHED = "$link."
"""How that of a queue begins whose messages a broker fetches over a network link."""


AGENT = "$mta"
"""How that of a queue begins whose messages an agent has for another broker."""


class Gated(NamedTuple):
    bridge: str
    queue: str
    """That its link ships."""


def drop(broker: Broker, wanted: Collection[Gated]) -> set[str]:
    """Those in nobody's hand whose bridge is not wanted any more: they would hold their queues for
    ever.  What was not shipped stays in the queue, for whoever takes from it.

    Queues with what such bridges had selected or changed, which no link of this broker ships any
    more: it is to be brought back."""
    left = set()
    for entry in broker._catalog.queues():
        with suppress(Error):  # the queue was deleted meanwhile, or somebody has taken the gate
            queue = broker.queue(entry.name)
            if queue.name.startswith((TOWARDS, FETCHED, AGENT)):  # another link ships it
                continue
            gates = queue.gates()
            for gate in gates:
                name = gate.name.removeprefix(PREFIX)
                is_left = gate.kind == KIND and gate.is_lasting and gate.owner is None
                is_link = is_left and gate.name.startswith(PREFIX)
                if is_link and Gated(name, queue.name) not in wanted:
                    follower = Follower(broker, gate.name, kind=KIND, lasting=True)
                    follower.add(queue)
                    follower.close(leaves=True)
            ours = KIND, broker.participant
            is_shipped = any((each.kind, each.owner) == ours for each in gates)
            is_gone = queue.name not in {each.queue for each in wanted} and not is_shipped
            if queue.name.startswith(OUTBOX) and is_gone:
                left.add(queue.name)
    return left
