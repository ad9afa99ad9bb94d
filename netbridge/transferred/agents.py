"""The ends of agents' links at a broker: of those that it makes, and of those of others.

The end that makes it says which exchange it joins; the other one declares it, and then what waits
is shipped there.  If the agent subscribes, it says what it wants, and the other end ships that.  If
it does both, it ships when what it wants is bound: else what comes back from there would be lost.
All but what waits for the catalog's lock is of the network thread.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.connection.broker import Broker
from shmbroker.netbridge.agent.codec import decode, encode
from shmbroker.netbridge.agent.option import Agent
from shmbroker.netbridge.agent.said import Apart, Bound, Joined, Joins, Said, Wants
from shmbroker.netbridge.agent.subscription import Asked, Asking
from shmbroker.netbridge.broker.own import OWN
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.source import Shipped, Source
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.transferred import subscriber
from shmbroker.netbridge.transferred.overflow import DROPS, SHIPS, dropped
from shmbroker.netbridge.transferred.upstream import NOTHING, Seen, Upstream, drop
from shmbroker.netbridge.wire.field import REASON_BYTES_MAX
from shmbroker.netbridge.wire.frame import Frame, Talk
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import TargetKind

LOOK_SECONDS: Final = 0.2
"""Between two looks at the exchanges: nothing tells that one was made."""


@dataclass(slots=True)
class _Party:
    """What is at an end."""

    agent: Agent | None = None
    """None: the link is of another broker."""
    joins: str = ""
    """The kind of exchange that was said."""
    is_joined: bool = False
    is_open: bool = False
    """What waits is shipped."""
    asking: Asking | None = None
    """What the agent wants, if it subscribes."""
    asked: Asked | None = None
    """What the agent of the other broker wants."""
    exchange: str = ""
    queue: str = ""
    """Of what that one wants."""
    generation: int = -1
    """Of the catalog, before that was bound last."""


class Agents(Closable):
    """Close it before the thread, and before the broker."""

    def __init__(
        self,
        thread: NetworkThread,
        tell: Callable[[Mapping[str, Any]], None],
        drops: Callable[[str, int], None] = lambda agent, count: None,
    ) -> None:
        """`drops`: called for an agent, by its name, of which so many messages were dropped."""
        self._thread, self._tell, self._drops = thread, tell, drops
        self._dropping: set[str] = set()
        """Agents of which it was told since their link was up."""
        self._parties: dict[End, _Party] = {}
        self._agents: tuple[Agent, ...] = ()
        self._seen = NOTHING
        self._connections = 0
        """Of agents of others that subscribe."""
        self._broker: Broker | None = None
        self._node, self._name = b"", ""
        self._upstream: Upstream | None = None
        self._worker = Worker(thread.call)
        self._is_closed = False
        self.due = math.inf
        """When it is looked again which exchanges there are."""

    def serve(self, broker: Broker, node: bytes, name: str, agents: tuple[Agent, ...]) -> None:
        """The broker is live.  Before any link is; what agents forward waits from now on."""
        self._broker, self._node, self._name = broker, node, name
        self._agents = agents
        self._upstream = Upstream(broker, self._tell)
        subscriber.drop_all(broker)
        self._seen = self._upstream.carries(agents)
        drop(broker, agents)  # nothing is bound to these any more
        self._thread.ask(self._begin)

    def _begin(self) -> None:
        self._thread.members.append(self)
        self._look()

    def wants(self, agents: tuple[Agent, ...]) -> None:
        """From now on these; before the links of those that are new."""

        def begin() -> None:
            self._agents = agents
            self._look()

        self._thread.ask(begin)

    def of(self, agent: Agent) -> Near:
        """What is at the end of a link that this broker makes."""
        return Near(self, agent)

    def close(self) -> None:
        if self._thread.has_ended:
            self.end()
        else:
            self._thread.ask(self.end)
        self._worker.close()

    # --- of the network thread ----------------------------------------------------------------

    def end(self) -> None:
        self._is_closed = True
        if self in self._thread.members:
            self._thread.members.remove(self)

    def woken(self, now: float) -> None:
        self.due = math.inf
        if self._upstream is not None and not self._is_closed:
            self._worker.do(partial(self._upstream.carries, self._agents), self._looked)
            for end, party in list(self._parties.items()):
                if party.asked is not None and party.is_open:
                    self._binds(end, party, party.asked)

    def _look(self) -> None:
        self.due = time.monotonic()

    def _looked(self, found: Seen | Exception) -> None:
        if self._is_closed:
            return
        if isinstance(found, Exception) and not isinstance(found, Error):
            raise found
        if self._agents or any(each.asked is not None for each in self._parties.values()):
            self.due = time.monotonic() + LOOK_SECONDS
        if isinstance(found, Exception):  # the vhost ends, or is made anew
            return
        self._seen = found
        self._overflow()
        for end, party in list(self._parties.items()):
            if party.agent is not None:
                self._join(end, party, party.agent)

    def _overflow(self) -> None:
        """Of agents whose link is down."""
        assert self._broker is not None
        linked = {each.agent.name for each in self._parties.values() if each.agent is not None}
        for agent in self._agents:
            if agent.overflow == DROPS and agent.queue and agent.name not in linked:
                work = partial(dropped, self._broker, agent)
                self._worker.do(work, partial(self._overflowed, agent.name))

    def _overflowed(self, name: str, count: int | Exception) -> None:
        if isinstance(count, Exception):
            if not isinstance(count, Error):
                raise count
        elif count and not self._is_closed:
            self._drops(name, count)
            if name not in self._dropping:
                self._dropping.add(name)
                self._tell({"event": "mta", "level": "warning", "state": "dropping", "link": name,
                            "detail": "more waits than may while the link is down: the oldest "
                                      "messages are dropped"})  # fmt: skip

    # --- of an end ----------------------------------------------------------------------------

    def came(self, end: End) -> None:
        """Of a link that another broker has made."""
        if not self._is_closed:
            self._parties[end] = _Party()

    def goes(self, end: End, agent: Agent) -> None:
        """A link of this broker is up."""
        if not self._is_closed:
            party = self._parties[end] = _Party(agent)
            self._join(end, party, agent)

    def gone(self, end: End) -> None:
        party = self._parties.pop(end, None)
        if end.meter is not None:
            end.meter.bound(0)
        if party is not None and party.queue and not self._is_closed:
            assert self._broker is not None
            self._worker.do(partial(subscriber.drop, self._broker, party.queue), self._dropped)

    def _dropped(self, failure: Exception | None) -> None:
        """The next broker drops what this one could not."""
        if failure is not None and not isinstance(failure, Error):
            raise failure

    def _join(self, end: End, party: _Party, agent: Agent) -> None:
        """Once the exchange is there; and what is wanted of the other one, once they are joined."""
        kind = self._seen.kinds.get(agent.exchange)
        if kind is None:
            return
        if kind == party.joins:
            self._asks(end, party, agent)
            return
        if party.joins:
            why = f"exchange {agent.exchange!r} was {party.joins} here, and is {kind} now"
            end.does(end.machine.refuse(Reason.NOT_JOINED, why, time.monotonic()))
            return
        party.joins = kind
        end.say(Talk(encode(Joins(agent.exchange, kind))))

    def _asks(self, end: End, party: _Party, agent: Agent) -> None:
        wanted = self._seen.wanted(agent)
        if not party.is_joined or not agent.mode.subscribes or wanted is None:
            return
        if party.asking is None:
            party.asking = Asking(agent.max_hops)
        for each in party.asking.wants(wanted):
            end.say(Talk(encode(each)))
        if end.meter is not None:
            end.meter.bound(len(wanted))

    def heard(self, end: End, frame: Frame) -> None:
        party = self._parties.get(end)
        if party is None or self._is_closed or not isinstance(frame, Talk):
            return
        try:
            self._said(end, party, decode(frame.body))
        except Malformed as error:
            end.does(end.machine.malformed(error, time.monotonic()))

    def _said(self, end: End, party: _Party, said: Said) -> None:
        if isinstance(said, Joins):
            if party.agent is not None or party.joins:
                raise Malformed(f"exchange {said.exchange!r} is joined once, by one end")
            party.joins, party.exchange = said.kind, said.exchange
            assert self._broker is not None, "a passive broker has no links"
            work = partial(answer, self._broker, self._name, said)
            self._worker.do(work, partial(self._answers, end))
        elif isinstance(said, Wants):
            self._wanted(end, party, said)
        elif isinstance(said, Bound):
            self._is_bound(end, party)
        elif party.agent is None or not party.joins or party.is_joined:
            raise Malformed("nobody has asked whether an exchange is joined")
        elif isinstance(said, Apart):
            end.does(end.machine.refuse(Reason.NOT_JOINED, said.why, time.monotonic()))
        else:
            party.is_joined = True
            if party.agent.mode.subscribes:
                self._look()  # what was bound at the last look may be so no more
            else:
                self._ships(end, party, party.agent)

    def _is_bound(self, end: End, party: _Party) -> None:
        """What this broker's agent wants."""
        if party.agent is None or party.asking is None:
            raise Malformed("nobody has asked for a binding")
        if party.agent.mode.forwards and not party.is_open:
            self._ships(end, party, party.agent)

    def _ships(self, end: End, party: _Party, agent: Agent) -> None:
        """When nobody drops what waits any more."""

        def ships(_: object) -> None:
            if self._parties.get(end) is party and not self._is_closed and not party.is_open:
                self._dropping.discard(agent.name)
                self._open(end, party, agent.queue, agent.exchange)

        if agent.overflow == DROPS:
            self._worker.do(lambda: None, ships)
        else:
            ships(None)

    def _answers(self, end: End, found: Said | Exception) -> None:
        if isinstance(found, Exception):
            raise found
        party = self._parties.get(end)
        if party is not None and not self._is_closed:
            party.is_joined = isinstance(found, Joined)
            end.say(Talk(encode(found)))

    def _wanted(self, end: End, party: _Party, said: Wants) -> None:
        """By the agent of another broker."""
        peer = end.machine.handshake.peer
        if party.agent is not None or not party.is_joined or peer is None:
            raise Malformed("bindings are wanted of an exchange that is not joined")
        if party.asked is None:
            party.asked = Asked()
            self._connections += 1
            party.queue = subscriber.queue_of(peer.node, self._connections, party.exchange)
            self._look()  # from now on, whether the exchange is the same
        if party.asked.heard(said):
            party.generation = -1
            self._binds(end, party, party.asked)

    def _binds(self, end: End, party: _Party, asked: Asked) -> None:
        """Unless the catalog is as it was when it did that."""
        assert self._broker is not None
        now = self._broker._catalog.generation
        if now != party.generation:
            party.generation = now
            work = partial(
                subscriber.binds, self._broker, party.queue, party.exchange, asked.hops,
                asked.wanted,
            )  # fmt: skip
            self._worker.do(work, partial(self._bound, end))

    def _bound(self, end: End, failure: Exception | None) -> None:
        party = self._parties.get(end)
        if failure is not None and not isinstance(failure, Error):
            raise failure
        if party is None or self._is_closed:
            return
        if failure is not None:  # the exchange was deleted, a key is too long, ...
            end.does(end.machine.refuse(Reason.NOT_JOINED, told(failure), time.monotonic()))
        elif not party.is_open:
            self._open(end, party, party.queue, party.exchange)
            if party.is_open:
                end.say(Talk(encode(Bound())))

    def _open(self, end: End, party: _Party, queue: str, exchange: str) -> None:
        assert self._broker is not None
        shipped = Shipped(queue, exchange, TargetKind.EXCHANGE)
        try:
            source = Source(self._broker, self._thread.sleeper, SHIPS, shipped, lambda: end.news(0))
        except Error as error:  # the queue was deleted
            end.does(end.machine.refuse(Reason.NO_SOURCE, told(error), time.monotonic()))
            return
        end.sources[0] = source
        party.is_open = True
        outlet = source.outlet(0, self._node, 0, exact=end.machine.times.exact)
        end.does(end.machine.open(outlet, time.monotonic()))


def answer(broker: Broker, name: str, said: Joins) -> Said:
    """Of the broker that an exchange is joined to: it is there, of the same kind, or why not."""
    if said.exchange.startswith(OWN):
        return Apart(f"exchange {said.exchange!r} is the broker's own")
    try:
        found = next((each for each in broker.exchanges() if each.name == said.exchange), None)
        if found is None:
            broker.declare_exchange(said.exchange, said.kind)
        elif found.kind != said.kind:
            return Apart(
                f"exchange {said.exchange!r} is {said.kind} here, and {found.kind} at {name}"
            )
    except Error as error:
        return Apart(str(error).encode()[:REASON_BYTES_MAX].decode(errors="ignore"))
    return Joined()


class Near:
    """Of a link that this broker makes, for as many connections as it has."""

    def __init__(self, agents: Agents, agent: Agent) -> None:
        self._agents, self._agent = agents, agent

    def came(self, end: End) -> None:
        self._agents.goes(end, self._agent)

    def heard(self, end: End, frame: Frame) -> None:
        self._agents.heard(end, frame)

    def gone(self, end: End) -> None:
        self._agents.gone(end)
