"""What waits for agents: a queue for each, `$mta.EXCHANGE.HOST`, and the binding that fills it.

The binding takes whatever is published to the exchange, or what no other binding takes, or takes it
alone, wherever it is routed: by a program, in a transaction, by a link.  It outlives this process,
and with the journal the machine; so what is published while no broker runs waits as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from shmbroker.core.layout import FORWARD_ALL, FORWARD_ELSE, FORWARD_ONLY
from shmbroker.ipc.base.errors import Error, NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.exchange.own_binding import OwnBinding, bind_own, own_bindings, unbind_own
from shmbroker.ipc.sink.target import target_of_agent
from shmbroker.netbridge.agent.option import QUEUE, Agent, Mode
from shmbroker.netbridge.agent.said import Wanted
from shmbroker.netbridge.transferred.overflow import DROPS

UNDELIVERABLE: Final = "mta.undeliverable"
"""The queue of messages that the other broker has refused."""
SLOTS_MIN: Final = 1024
SLOTS_PAGED: Final = 1 << 14
"""In memory; what is more is in page files."""
FORWARDS: Final = {
    Mode.FORWARD_ALL: FORWARD_ALL,
    Mode.FORWARD_ELSE: FORWARD_ELSE,
    Mode.BOTH: FORWARD_ONLY,
    Mode.SERVICE: FORWARD_ELSE,
}


@dataclass(frozen=True, slots=True)
class Seen:
    """Of this broker."""

    kinds: Mapping[str, str]
    """Of all exchanges, by name."""
    bindings: Mapping[str, frozenset[Wanted]]
    """Of users, by exchanges to which an agent subscribes elsewhere."""
    exclusive: Mapping[str, frozenset[Wanted]]
    """Those of them that are exclusive."""

    def wanted(self, agent: Agent) -> frozenset[Wanted] | None:
        """None: it was not looked for."""
        found = self.exclusive if agent.mode is Mode.SERVICE else self.bindings
        return found.get(agent.exchange)


NOTHING: Final = Seen({}, {}, {})


class Upstream:
    """Of one thread at a time: it waits for the catalog's lock."""

    def __init__(self, broker: Broker, tell: Callable[[Mapping[str, Any]], None]) -> None:
        self._broker, self._tell = broker, tell
        self._done: object = None
        self._seen = NOTHING
        self._told: set[OwnBinding] = set()
        self._has_failed = False
        """In this look: the next one tries it again."""

    def carries(self, agents: tuple[Agent, ...]) -> Seen:
        """From now on what these forward, and no others."""
        done = agents, self._broker._catalog.generation
        if done == self._done:
            return self._seen
        self._has_failed = False
        kinds = {each.name: each.kind for each in self._broker.exchanges()}
        wanted = {
            OwnBinding(
                each.exchange, each.queue, "", b"", False,
                target_of_agent(each.max_hops, comes_back=each.mode is Mode.BOTH),
                FORWARDS[each.mode],
            ): each
            for each in agents
            if each.mode in FORWARDS and each.exchange in kinds
        }  # fmt: skip
        there = {each for each in own_bindings(self._broker) if each.queue.startswith(QUEUE)}
        for binding in wanted.keys() - there:
            self._change(binding, lambda of: self._bind(of, wanted[of]))
        for binding in there - wanted.keys():
            self._change(binding, lambda of: unbind_own(self._broker, of))
        self._seen = Seen(kinds, *self._bindings(agents))
        if not self._has_failed:  # what was changed moves the generation, and is looked at again
            self._done = done
        return self._seen

    def _bindings(self, agents: tuple[Agent, ...]) -> Iterator[dict[str, frozenset[Wanted]]]:
        """All, and those that are exclusive."""
        asked = {each.exchange for each in agents if each.mode.subscribes}
        found: list[dict[str, set[Wanted]]] = [{each: set() for each in asked} for _ in range(2)]
        for each in self._broker._catalog.users_bindings() if asked else ():
            at = each.binding
            if at.exchange in asked:
                for those in found[: 1 + at.exclusive]:
                    those[at.exchange].add(Wanted(at.key, each.packed, at.match == "any"))
        for those in found:
            yield {exchange: frozenset(bindings) for exchange, bindings in those.items()}

    def _change(self, binding: OwnBinding, change: Callable[[OwnBinding], None]) -> None:
        try:
            with suppress(NotFound):  # an end of it was deleted: the next look tells
                change(binding)
            self._told.discard(binding)
        except Error as error:
            self._has_failed = True
            if binding not in self._told:
                self._told.add(binding)
                self._tell({"event": "mta", "level": "error", "state": "not bound",
                            "exchange": binding.exchange, "queue": binding.queue,
                            "detail": str(error)})  # fmt: skip

    def _bind(self, binding: OwnBinding, agent: Agent) -> None:
        made(self._broker, agent)
        bind_own(self._broker, binding)


def made(broker: Broker, agent: Agent) -> None:
    """There, whoever has made it; one that is there stays as it was made."""
    with suppress(NotFound):
        broker.queue(agent.queue)
        return
    slots, size = SLOTS_PAGED, min(agent.max_bytes, broker.message_bytes_max)
    pages = agent.overflow in ("page", DROPS)
    if not pages:
        slots = max(SLOTS_MIN, 1 << (agent.max_messages - 1).bit_length())
        size = agent.max_bytes
    queue = broker.declare_queue(
        agent.queue, slots=slots, durable=True, max_deliveries=None, dead_letter=UNDELIVERABLE,
        when_full="page" if pages else agent.overflow,
        max_messages=min(agent.max_messages, slots), max_bytes=size, replicate="all",
    )  # fmt: skip
    queue.pause()  # nobody takes from it; the link reads behind a gate of its own


def drop(broker: Broker, agents: tuple[Agent, ...]) -> None:
    """Queues of agents that are no more, if nothing is in them.  Before any link is."""
    wanted = {each.queue for each in agents if each.queue}
    for name in broker._catalog.queue_names().values():
        if name.startswith(QUEUE) and name not in wanted:
            with suppress(Error):  # it was deleted meanwhile
                if not len(broker.queue(name)):
                    broker.delete_queue(name, force=True)
