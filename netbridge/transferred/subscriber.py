"""What another broker's agent wants of an exchange here: a queue of its own, bound as it says.

It is there as long as the connection: nobody else has what it wants, and what is published while
the agent is away is not for it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.exchange.own_binding import OwnBinding, bind_own, own_bindings, unbind_own
from shmbroker.ipc.message.properties import pack, unpack
from shmbroker.ipc.sink.target import target_of_agent
from shmbroker.netbridge.agent.said import Wanted

SUBSCRIBED: Final = "$mta:"
"""How the name of such a queue begins."""
SLOTS: Final = 1 << 12


def queue_of(node: bytes, number: int, exchange: str) -> str:
    """`number`: of the connection, so that a new one does not have the queue of the one before."""
    return f"{SUBSCRIBED}{node.hex()}.{number}.{exchange}"


def binds(
    broker: Broker, queue: str, exchange: str, hops: int, wanted: frozenset[Wanted]
) -> None:
    """From now on these; the queue is made if it is not there.  Twice is once."""
    _make(broker, queue)
    target = target_of_agent(hops)
    asked = {
        OwnBinding(
            exchange, queue, each.key, pack(unpack(each.arguments)), each.matches_any, target
        )  # as they are here: a program there may pack them in another way
        for each in wanted
    }
    there = {each for each in own_bindings(broker) if each.queue == queue}
    for each in asked - there:
        bind_own(broker, each)
    for each in there - asked:
        unbind_own(broker, each)


def _make(broker: Broker, queue: str) -> None:
    with suppress(NotFound):
        broker.queue(queue)
        return
    made = broker.declare_queue(
        queue, slots=SLOTS, durable=False, max_deliveries=None, when_full="page",
        max_bytes=broker.message_bytes_max,
    )  # fmt: skip
    made.pause()  # nobody takes from it; the link reads behind a gate of its own


def drop(broker: Broker, queue: str) -> None:
    with suppress(NotFound):
        broker.delete_queue(queue, force=True)


def drop_all(broker: Broker) -> None:
    """What a broker before this one had of connections that it had.  Before any link is."""
    for name in broker._catalog.queue_names().values():
        if name.startswith(SUBSCRIBED):
            drop(broker, name)
