"""What waits for an agent with `overflow = "drop-oldest"`, while its link is down: not more than it
may, and the oldest goes.

It waits in pages, as with `page`, and what is too much is dropped at each look.  *Not a queue that
drops the oldest itself*: the gate of the link keeps what the other broker has not confirmed, so a
publisher would wait until somebody moves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.queue.queue import Queue
from shmbroker.netbridge.agent.option import Agent

DROPS: Final = "drop-oldest"
TOGETHER: Final = 256
BYTES: Final = 1 << 20
SHIPS: Final = "mta"
"""The name of the gate of an agent's link: a queue has one, and its own name says whose it is."""


@dataclass(frozen=True, slots=True)
class Dropped:
    messages: int
    end: int
    """Below it nothing waits; the other broker may have confirmed less."""


def dropped(broker: Broker, agent: Agent) -> Dropped | None:
    """Now; None: nothing.  Only while nobody ships the queue."""
    try:
        queue = broker.queue(agent.queue)
    except NotFound:  # its exchange is not there yet
        return None
    if not _excess(queue, agent):
        return None
    count = 0
    with Follower(broker, f"link {SHIPS}", kind="link", lasting=True, skips=True) as follower:
        number = follower.add(queue)
        while excess := _excess(queue, agent):
            batch = follower.read_some(min(excess, TOGETHER), BYTES)
            if batch is None:
                break
            count += batch.messages
            follower.retire(number, follower.next(number))
        return Dropped(count, follower.next(number)) if count else None


def _excess(queue: Queue, agent: Agent) -> int:
    """Messages; of bytes that are too many it is not known how many messages have them."""
    told = queue.statistics()
    more = told.depth - agent.max_messages
    return max(more, int(told.bytes > agent.max_bytes), 0)
