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
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.names import OWN
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.connection.broker import Broker
from shmbroker.netbridge.agent import party
from shmbroker.netbridge.agent.codec import decode, encode
from shmbroker.netbridge.agent.option import Agent
from shmbroker.netbridge.agent.said import Apart, Joined, Joins, Said
from shmbroker.netbridge.agent.subscription import Asked
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.source import Shipped, Source
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.link.peer import NOBODY, Identity
from shmbroker.netbridge.transferred import subscriber
from shmbroker.netbridge.transferred.overflow import DROPS, SHIPS, Dropped, dropped
from shmbroker.netbridge.transferred.upstream import NOTHING, Seen, Upstream, drop
from shmbroker.netbridge.wire.field import REASON_BYTES_MAX
from shmbroker.netbridge.wire.frame import Frame, Talk
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import TargetKind

LOOK_SECONDS: Final = 0.2
"""Between two looks at the exchanges: nothing tells that one was made."""


@dataclass(slots=True)
class _Made:
    """At the end of a link that this broker makes."""

    agent: Agent
    party: party.Near


@dataclass(slots=True)
class _Accepted:
    """At the end of a link of another broker."""

    party: party.Far
    exchange: str = ""
    queue: str = ""
    """Of what the agent of that one wants."""
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
        self._dropped_to: dict[str, int] = {}
        """Positions, by agent: that the other broker has not confirmed so far is no loss."""
        self._parties: dict[End, _Made | _Accepted] = {}
        self._agents: tuple[Agent, ...] = ()
        self._seen = NOTHING
        self._connections = 0
        """Of agents of others that subscribe."""
        self._broker: Broker | None = None
        self._ours = NOBODY
        self._upstream: Upstream | None = None
        self._worker = Worker(thread.call)
        self._is_closed = False
        self.due = math.inf
        """When it is looked again which exchanges there are."""

    def serve(self, broker: Broker, ours: Identity, agents: tuple[Agent, ...]) -> None:
        """The broker is live.  Before any link is; what agents forward waits from now on."""
        self._broker, self._ours, self._agents = broker, ours, agents
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
            for end, at in list(self._parties.items()):
                if isinstance(at, _Accepted) and at.party.asked and at.party.is_open:
                    self._binds(end, at, at.party.asked)

    def _look(self) -> None:
        self.due = time.monotonic()

    def _looked(self, found: Seen | Exception) -> None:
        if self._is_closed:
            return
        if isinstance(found, Exception) and not isinstance(found, Error):
            raise found
        if self._agents or any(_is_asked(each) for each in self._parties.values()):
            self.due = time.monotonic() + LOOK_SECONDS
        if isinstance(found, Exception):  # the vhost ends, or is made anew
            return
        self._seen = found
        self._overflow()
        for end, at in list(self._parties.items()):
            if isinstance(at, _Made):
                self._sees(end, at)

    def _overflow(self) -> None:
        """Of agents whose link is down."""
        assert self._broker is not None
        linked = {each.agent.name for each in self._parties.values() if isinstance(each, _Made)}
        for agent in self._agents:
            if agent.overflow == DROPS and agent.queue and agent.name not in linked:
                work = partial(dropped, self._broker, agent)
                self._worker.do(work, partial(self._overflowed, agent.name))

    def _overflowed(self, name: str, found: Dropped | Exception | None) -> None:
        if isinstance(found, Exception):
            if not isinstance(found, Error):
                raise found
        elif found is not None and not self._is_closed:
            self._dropped_to[name] = found.end
            self._drops(name, found.messages)
            if name not in self._dropping:
                self._dropping.add(name)
                self._tell({"event": "mta", "level": "warning", "state": "dropping", "link": name,
                            "detail": "more waits than may while the link is down: the oldest "
                                      "messages are dropped"})  # fmt: skip

    # --- of an end ----------------------------------------------------------------------------

    def came(self, end: End) -> None:
        """Of a link that another broker has made."""
        if not self._is_closed:
            self._parties[end] = _Accepted(party.Far())

    def goes(self, end: End, agent: Agent) -> None:
        """A link of this broker is up."""
        if not self._is_closed:
            near = party.Near(agent.exchange, agent.mode, agent.max_hops)
            at = self._parties[end] = _Made(agent, near)
            self._sees(end, at)

    def gone(self, end: End) -> None:
        at = self._parties.pop(end, None)
        if end.meter is not None:
            end.meter.bound(0)
        if isinstance(at, _Accepted):
            self._thread.held.pop(at.queue, None)
        if isinstance(at, _Accepted) and at.queue and not self._is_closed:
            assert self._broker is not None
            self._worker.do(partial(subscriber.drop, self._broker, at.queue), self._dropped)

    def _dropped(self, failure: Exception | None) -> None:
        """The next broker drops what this one could not."""
        if failure is not None and not isinstance(failure, Error):
            raise failure

    def _sees(self, end: End, at: _Made) -> None:
        seen = self._seen
        self._does(end, at.party.looks(seen.kinds.get(at.agent.exchange), seen.wanted(at.agent)))

    def heard(self, end: End, frame: Frame) -> None:
        at = self._parties.get(end)
        if at is None or self._is_closed or not isinstance(frame, Talk):
            return
        try:
            self._does(end, at.party.heard(decode(frame.body)))
        except Malformed as error:
            end.does(end.machine.malformed(error, time.monotonic()))

    def _does(self, end: End, acts: party.Acts) -> None:
        for act in acts:
            at = self._parties.get(end)
            if at is None:  # it ended by what was done before
                return
            if isinstance(act, party.Say):
                end.say(Talk(encode(act.what)))
            elif isinstance(act, party.Look):
                self._look()
            elif isinstance(act, party.NotJoined):
                end.does(end.machine.refuse(Reason.NOT_JOINED, act.why, time.monotonic()))
            elif isinstance(act, party.Copied):
                if end.meter is not None:
                    end.meter.bound(act.bindings)
            elif isinstance(at, _Made):
                self._ships(end, at)
            else:
                self._serves(end, at, act)

    def _serves(self, end: End, at: _Accepted, act: party.Act) -> None:
        """The agent of another broker."""
        peer = end.machine.handshake.peer
        assert self._broker is not None, "a passive broker has no links"
        assert peer is not None, "it is met"
        if isinstance(act, party.Answer):
            work = partial(answer, self._broker, self._ours.name, act.said)
            self._worker.do(work, partial(self._answers, end))
        elif isinstance(act, party.Subscribe):
            self._connections += 1
            at.exchange = act.exchange
            at.queue = subscriber.queue_of(peer.node, self._connections, at.exchange)
        elif isinstance(act, party.Ship):
            self._open(end, at, at.queue, at.exchange)
        elif at.party.asked is not None:
            at.generation = -1
            self._binds(end, at, at.party.asked)

    def _ships(self, end: End, at: _Made) -> None:
        """When nobody drops what waits any more."""
        agent = at.agent

        def ships(_: object) -> None:
            if self._parties.get(end) is at and not self._is_closed and not at.party.is_open:
                self._dropping.discard(agent.name)
                self._open(end, at, agent.queue, agent.exchange)

        if agent.overflow == DROPS:
            self._worker.do(lambda: None, ships)
        else:
            ships(None)

    def _answers(self, end: End, found: Said | Exception) -> None:
        if isinstance(found, Exception):
            raise found
        at = self._parties.get(end)
        if isinstance(at, _Accepted) and not self._is_closed:
            self._does(end, at.party.answered(found))

    def _binds(self, end: End, at: _Accepted, asked: Asked) -> None:
        """Unless the catalog is as it was when it did that."""
        assert self._broker is not None
        now = self._broker._catalog.generation
        if now != at.generation:
            at.generation = now
            work = partial(
                subscriber.binds, self._broker, at.queue, at.exchange, asked.hops, asked.wanted
            )
            self._worker.do(work, partial(self._bound, end))

    def _bound(self, end: End, failure: Exception | None) -> None:
        at = self._parties.get(end)
        if failure is not None and not isinstance(failure, Error):
            raise failure
        if not isinstance(at, _Accepted) or self._is_closed:
            return
        if failure is not None:  # the exchange was deleted, a key is too long, ...
            end.does(end.machine.refuse(Reason.NOT_JOINED, told(failure), time.monotonic()))
        else:
            self._does(end, at.party.bound())

    def _open(self, end: End, at: _Made | _Accepted, queue: str, exchange: str) -> None:
        assert self._broker is not None
        shipped = Shipped(queue, exchange, TargetKind.EXCHANGE)
        try:
            source = Source(self._broker, self._thread.sleeper, SHIPS, shipped, lambda: end.news(0))
        except Error as error:  # the queue was deleted
            end.does(end.machine.refuse(Reason.NO_SOURCE, told(error), time.monotonic()))
            return
        end.sources[0] = source
        if isinstance(at, _Accepted):
            source.holds(self._thread.after_sync)
            self._thread.held[queue] = source.hold
        at.party.is_open = True
        ours, exact = self._ours, end.machine.times.exact
        outlet = source.outlet(0, ours.node, ours.history, exact=exact)
        if isinstance(at, _Made):
            outlet = replace(outlet, begun=self._dropped_to.get(at.agent.name, 0))
        end.does(end.machine.open(outlet, time.monotonic()))


def _is_asked(at: _Made | _Accepted) -> bool:
    """Somebody subscribes here."""
    return isinstance(at, _Accepted) and at.party.asked is not None


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
