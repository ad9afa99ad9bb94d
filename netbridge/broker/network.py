"""The network of a broker: one thread, its listeners, and, once it is live, its bridges.

A passive broker listens, and says to all who come that it is passive and who is live; `serve` makes
it that of a live, with the same listeners.  Of one thread at a time, that of `owner.Owner`.  A
bridge that is changed is closed in good order, and its successor begins when it has ended: both
would have the same gate of the same queue.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import zmq

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.connection.broker import Broker, connect
from shmbroker.netbridge.agent.option import Agent
from shmbroker.netbridge.bridged.outbox import Outbox
from shmbroker.netbridge.bridged.transformer import Unusable
from shmbroker.netbridge.broker import shipping
from shmbroker.netbridge.broker.former import FormerBridges
from shmbroker.netbridge.broker.given import Given, Shipping
from shmbroker.netbridge.broker.meter import BridgeMeter
from shmbroker.netbridge.broker.table import Row, Table
from shmbroker.netbridge.broker.whereabouts import Whereabouts
from shmbroker.netbridge.carrier.dialled import Dialled
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.listener import Listener, Serving
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.cluster.programs import Other
from shmbroker.netbridge.config.config import Acceptor
from shmbroker.netbridge.config.of_bridges import Bridge
from shmbroker.netbridge.discovered.discoverer import Discoverer
from shmbroker.netbridge.discovery.entries import Entry
from shmbroker.netbridge.discovery.members import members_of
from shmbroker.netbridge.discovery.option import Discovery
from shmbroker.netbridge.link.option import times_of
from shmbroker.netbridge.link.peer import Gate, Identity
from shmbroker.netbridge.network.option import NetworkLink
from shmbroker.netbridge.networked.links import NetworkLinks
from shmbroker.netbridge.plan.plans import Draft, of_found
from shmbroker.netbridge.queue_replicated.confirming import Confirming
from shmbroker.netbridge.queue_replicated.feeding import Feedings
from shmbroker.netbridge.queue_replicated.following import Following
from shmbroker.netbridge.queue_replicated.replicas import QueueReplicas
from shmbroker.netbridge.remote.session import SessionLimits
from shmbroker.netbridge.remote.topology import Node
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.serving.audience import Audience
from shmbroker.netbridge.serving.orders import CarryOut
from shmbroker.netbridge.serving.programs import Programs
from shmbroker.netbridge.serving.service import Service
from shmbroker.netbridge.transferred.agents import Agents
from shmbroker.netbridge.wire.words import AGENT_LINK, NETWORK_LINK, OF_PROGRAMS, QUEUES_LINK, Role

Tell = Callable[[Mapping[str, Any]], None]
LINK_NAME = 200
"""Characters of the name of a link that is made of an address."""


@dataclass(frozen=True, slots=True)
class Place:
    """Of a broker."""

    vhost: str
    folder: Path
    served: frozenset[str]
    """The network vhosts that others may ask for."""
    ours: Identity


@dataclass(slots=True)
class Running:
    """A bridge or a network link that is there, or was stopped by its name."""

    bridge: Shipping
    credential: Credential
    link: Link | None = None
    outbox: Outbox | None = None
    """If it does not ship its queue as it is."""
    discoverer: Discoverer | None = None
    """Of one whose members are found."""

    def looks_no_more(self) -> None:
        discoverer, self.discoverer = self.discoverer, None
        if discoverer is not None:
            discoverer.close()


class Network(Closable):
    def __init__(
        self,
        place: Place,
        given: Given,
        stopped: set[str],
        tell: Tell,
        later: Callable[[Callable[[], None]], None],
    ) -> None:
        """`stopped`: bridges that `link stop` has stopped, and are not to begin.

        `later`: in the owner's thread.
        """
        self.place, self.given, self.stopped, self.tell = place, given, stopped, tell
        self._later = later
        self.gate: Gate | None = None
        """Asked whether an application is accepted."""
        self.pairs: Serving | None = None
        """The link of the other one of a pair."""
        self.carry_out: CarryOut | None = None
        """Orders of programs to this process."""
        self.ships = True
        """False: bridges are there, and do not run."""
        self.former = FormerBridges(place.vhost, tell)
        self._is_closed = False
        self.listeners: dict[str, Listener] = {}
        self.unbound: dict[str, Acceptor] = dict(given.wanted.acceptors)
        """Acceptors whose address somebody else has."""
        self.bridges: dict[str, Running] = {}
        self._broker: Broker | None = None
        """None: this broker is passive."""
        self.is_live = False
        self._thread = NetworkThread()
        self._thread.admit(given.credentials.known_keys)
        self._networked = NetworkLinks(self._thread, tell)
        self._agents = Agents(self._thread, tell, self._dropped)
        self._confirming = Confirming(given.wanted.replica_timeout, tell)
        self._feedings = Feedings(
            self._thread, place.ours.name, self._confirming, is_on=given.wanted.may_be_followed
        )
        self.replicas: QueueReplicas | None = None
        """Queues that follow those of other brokers; None: none may."""
        self._sessions: Service | None = None
        self._table: Table | None = None
        self._audiences: dict[str, Audience] = {}
        """By acceptor."""
        self._told: set[str] = set()
        self._nodes: tuple[tuple[Node, ...], tuple[Other, ...]] | None = None

    @property
    def has_vhost(self) -> bool:
        return self._broker is not None

    @property
    def broker(self) -> Broker:
        """Of a live, or of one that is about to be."""
        assert self._broker is not None, "it has a vhost"
        return self._broker

    def prepare(self, ours: Identity) -> None:
        """Its vhost is there, and the broker is about to be live: programs that wait for that shake
        hands, and are heard when it serves and does not `hold` them."""
        self._joins(ours)
        self.hold(True)
        for name, listener in self.listeners.items():
            listener.expect(ours, self._audience(name))

    def _joins(self, ours: Identity) -> None:
        name = f"network of {ours.name}"[:56]
        self._broker = broker = connect(f"shm://{self.place.vhost}", name=name)
        self._thread.serve(broker, ours.node)
        self._networked.serve(broker, ours)
        self._agents.serve(broker, ours, self.given.agents)
        self._sessions = self._serving()

    def serve(self, ours: Identity) -> None:
        """The broker is live."""
        self.place = replace(self.place, ours=ours)
        if self._broker is None:
            self._joins(ours)
        broker, self.is_live = self._broker, True
        assert broker is not None
        self._feedings.node = ours.node
        for name, listener in self.listeners.items():
            listener.serve(ours, self._audience(name))
        # what the live had while this one was passive: the live is gone, or was this one before
        missing = self.given.wanted.acceptors.keys() - self.listeners.keys()
        self.unbound |= {name: self.given.wanted.acceptors[name] for name in missing}
        self.listen()
        self.former.drop(broker, shipping.gated(self.given.wanted.bridges))
        self._bridge(self.given.shipping)
        if self.given.wanted.queue_replication:
            self.replicas = QueueReplicas(
                self._thread,
                broker,
                self.place.folder,
                self._dialled_for,
                self.tell,
                self._feedings,
                is_of_node=self.given.wanted.replication is not None,
            )
            self.replicas.begin()

    def _dialled_for(self, following: Following, plan: str) -> Dialled:
        name = f"{QUEUES_LINK}: {plan}"[:LINK_NAME]
        return Dialled(
            following, self._thread, name, plan, self.given.of_replicas(), self.place.ours, (),
            times=times_of(self.given.wanted.link_defaults), role=Role.REPLICA, tell=self.tell,
            pair=self.given.pair, shows=following.shows,
        )  # fmt: skip

    @property
    def programs(self) -> Programs | None:
        """None: none may come."""
        return None if self._sessions is None else Programs(self._sessions)

    def hold(self, is_held: bool) -> None:
        """Programs that come wait, or do so no more; from any thread."""
        if self._sessions is not None:
            self._sessions.hold(is_held)

    def hands_over(self) -> list[dict[str, Any]]:
        """What a successor is told of transactions of programs; they are heard no more."""
        return [] if self._sessions is None else self._sessions.hands_over()

    def tell_topology(self, ours: tuple[Node, ...], others: tuple[Other, ...] = ()) -> None:
        """All programs that are connected, and those that come; of others as their acceptor
        says."""
        if self._nodes != (ours, others):
            self._nodes = ours, others
            for name, audience in self._audiences.items():
                self._tell(name, audience)

    def move_programs(self, uri: str) -> None:
        """Their links end, and they shall go to that broker."""
        for listener in self.listeners.values():
            self._thread.ask(partial(listener.move_programs, uri))

    def _audience(self, name: str) -> Audience | None:
        """None: this broker has no sessions of programs."""
        if self._sessions is None:
            return None
        audience = self._audiences.get(name)
        if audience is None:
            audience = self._audiences[name] = Audience(self._sessions)
            self._tell(name, audience)
        return audience

    def _tell(self, name: str, audience: Audience) -> None:
        if self._nodes is not None:
            ours, others = self._nodes
            telling = self.given.wanted.acceptors[name].telling
            told = [each for each in others
                    if telling.includes(each.node.name, is_there=each.is_there)]  # fmt: skip
            there = [each.node for each in told if each.is_there]
            audience.tell((*ours, *(each.node for each in told)))
            audience.shares_with((*ours, *there) if telling.rebalances else ())

    def wait(self, live: Whereabouts) -> None:
        """The broker is passive: say who is live.  Of addresses the live on this host has those
        that both of us want."""
        for name, acceptor in self.given.wanted.acceptors.items():
            if live.has(acceptor.uri):
                self.unbound.pop(name, None)
                if name in self.listeners:
                    self.listeners.pop(name).close()
            elif name not in self.listeners:
                self.unbound[name] = acceptor
        self.listen()
        for listener in self.listeners.values():
            listener.live = live.uri

    # --- listening ----------------------------------------------------------------------------

    @property
    def _session_ttl(self) -> float | None:
        """The longest of the acceptors that admit programs; None: there is none."""
        acceptors = self.given.wanted.acceptors.values()
        ttls = [each.session_ttl for each in acceptors if OF_PROGRAMS & set(each.roles)]
        return max(ttls, default=None)

    def _serving(self) -> Service | None:
        """The sessions of programs, if an acceptor admits any."""
        ttl = self._session_ttl
        if ttl is None:
            return None
        return Service(
            self._thread, limits=SessionLimits(ttl=ttl), carry_out=self.carry_out,
            is_replicated=self.given.wanted.replication is not None,
        )  # fmt: skip

    def _serves_programs(self) -> None:
        """As the acceptors say by now, before they admit any."""
        ttl = self._session_ttl
        if self._sessions is not None and ttl is not None:
            self._sessions.keeps(ttl)
        elif self._sessions is None and self.has_vhost:
            self._sessions = self._serving()
            for name, listener in self.listeners.items():
                if self._sessions is not None and self.is_live:
                    listener.serve(self.place.ours, self._audience(name))

    def listen(self) -> bool:
        """Where it does not yet.  False: an address is taken, as by a live that is just ending."""
        for name, acceptor in list(self.unbound.items()):
            address = f"tcp://{acceptor.uri.peer}"
            try:
                self.listeners[name] = Listener(
                    self._thread, address, self.given.key_of(acceptor), self.given.credentials,
                    self.place.ours, roles=frozenset(acceptor.roles), vhosts=self.place.served,
                    times=acceptor.times, serves=self._audience(name), replicates=self._feedings,
                    pairs=self.pairs, networks=self._networked, agents=self._agents,
                    gate=self.gate, tell=self.tell, is_active=self.is_live,
                )  # fmt: skip
            except zmq.ZMQError as error:
                if name not in self._told:
                    self._told.add(name)
                    self._say(name, "error", "cannot listen", f"{address}: {error}")
                continue
            del self.unbound[name]
            self._say(name, "info", "listening", self.listeners[name].address)
        return not self.unbound

    def _say(self, acceptor: str, level: str, state: str, detail: str) -> None:
        self.tell({"event": "acceptor", "level": level, "acceptor": acceptor,
                   "state": state, "detail": detail})  # fmt: skip

    # --- bridges ------------------------------------------------------------------------------

    def _bridge(self, wanted: Mapping[str, Shipping]) -> None:
        self._show(wanted)
        self.former.waits -= {each.queue for each in shipping.gated(self.given.wanted.bridges)}
        for name in self.bridges.keys() - wanted.keys():
            self.stopped.discard(name)  # one that gets the name later is another
            self._end(name)
        for name, bridge in wanted.items():
            credential = self.given.credential(bridge)
            former = self.bridges.get(name)
            if former is None:
                self.bridges[name] = Running(bridge, credential)
                self._begin(name)
            elif former.bridge != bridge or former.credential != credential:
                former.bridge, former.credential = bridge, credential
                self._end_then(name, partial(self._begin_anew, name))

    def _show(self, wanted: Mapping[str, Shipping]) -> None:
        """A table with a row for each."""
        former = self._table.rows if self._table is not None else {}
        if wanted.keys() == former.keys() and self._table is not None:
            return
        self._table = Table(self.place.vhost, self.place.folder, wanted, former)
        for name, row in self._table.rows.items():
            running = self.bridges.get(name)
            if running is not None and running.link is not None:
                assert isinstance(running.link.meter, BridgeMeter)
                running.link.meter.row = row
                self._shows(row, running.bridge, running.link)

    def _begin_anew(self, name: str) -> None:
        self._forget()  # it may ship another queue now
        self._begin(name)

    def _begin(self, name: str) -> None:
        running, table = self.bridges.get(name), self._table
        if running is None or running.link is not None or table is None or self._is_closed:
            return
        row, bridge = table.rows[name], running.bridge
        if name in self.stopped or not self.ships:
            row.show(shipping.text(bridge, "stopped"))
            return
        try:
            running.outbox = self._outbox(bridge)
        except Unusable as error:
            row.show(shipping.text(bridge, "failed") | {"reason": str(error)})
            self.tell({"event": "link", "level": "error", "link": name, "state": "failed",
                       "reason": str(error)})  # fmt: skip
            return
        meter = BridgeMeter(row)
        serves: Serving | None = None
        name, ships = bridge.name, [shipping.shipped(bridge)] if isinstance(bridge, Bridge) else []
        if isinstance(bridge, Agent):
            name, serves = AGENT_LINK + bridge.name, self._agents.of(bridge)
        elif isinstance(bridge, NetworkLink):
            name, serves = NETWORK_LINK + bridge.name, self._networked.of(bridge)
        make = Link if serves is None else partial(Dialled, serves)
        running.link = make(
            self._thread,
            name,
            self._plan(bridge),
            running.credential,
            self.place.ours,
            ships,
            times=bridge.times,
            role=Role.PEERING,
            refused_retry=bridge.refused_retry,
            tell=self.tell,
            pair=self.given.pair,
            meter=meter,
            shows=lambda link: self._shows(meter.row, bridge, link),
        )
        if isinstance(bridge, Bridge) and bridge.discovery is not None:
            running.discoverer = self._looks(bridge.discovery, running.credential, running.link)

    @staticmethod
    def _plan(bridge: Shipping) -> str | Draft:
        if not isinstance(bridge, Bridge) or bridge.discovery is None:
            return str(bridge.to)
        return of_found(bridge.to.values, bridge.refused_retry)

    def _looks(self, discovery: Discovery, credential: Credential, link: Link) -> Discoverer:
        def found(entries: tuple[Entry, ...]) -> None:
            self._thread.call(partial(link.takes_list, members_of(entries, self.place.ours.node)))

        return Discoverer(discovery, credential.keys, found, self.tell)

    def _outbox(self, bridge: Shipping) -> Outbox | None:
        if not isinstance(bridge, Bridge) or bridge.ships == bridge.queue:
            return None
        return Outbox(
            self._thread, self.place.vhost, bridge.name, bridge.queue, bridge.selector,
            bridge.transformer, self.tell,
        )  # fmt: skip

    def _shows(self, row: Row, bridge: Shipping, link: Link) -> None:
        row.show(shipping.text(bridge, link.state, link))
        row.set("attempts", link.attempts)
        row.set("losses", link.losses)

    def _dropped(self, name: str, messages: int) -> None:
        """Of what waits for an agent."""
        row = self._table.rows.get(name) if self._table is not None else None
        if row is not None:
            row.add("dropped", messages)

    def _end_then(self, name: str, then: Callable[[], None]) -> None:
        """Close it in good order, and do that when it is closed."""
        running = self.bridges[name]
        link, running.link = running.link, None
        outbox, running.outbox = running.outbox, None
        if outbox is not None:
            outbox.close()
        running.looks_no_more()
        if link is None:
            then()
            return
        link.over = partial(self._later, then)
        link.stop()

    def _end(self, name: str) -> None:
        self._end_then(name, self._forget)
        del self.bridges[name]

    def _forget(self) -> None:
        if not self._is_closed and self._broker is not None:
            self.former.drop(self._broker, shipping.gated(self.given.wanted.bridges))

    def ship(self, ships: bool) -> None:
        """Whether bridges run."""
        if ships == self.ships or self._is_closed:
            return
        self.ships = ships
        for name, running in self.bridges.items():
            if not ships:
                self._end_then(name, lambda: None)
            elif running.link is None:
                self._begin(name)

    # --- orders -------------------------------------------------------------------------------

    def stop_link(self, name: str) -> None:
        self.stopped.add(name)
        self._end_then(name, lambda: None)

    def start_link(self, name: str) -> None:
        """One that runs already begins a new round."""
        self.stopped.discard(name)
        link = self.bridges[name].link
        if link is None:
            self._begin(name)
        else:
            link.start()

    def reload(self, given: Given) -> None:
        """What is not changed goes on.  Where it listens needs a restart."""
        former, self.given = self.given, given
        self.unbound = {name: given.wanted.acceptors[name] for name in self.unbound}
        self._confirming.timeout = given.wanted.replica_timeout
        self._thread.learns(given.credentials)
        self._serves_programs()
        for name, acceptor in given.wanted.acceptors.items():
            before = former.wanted.acceptors.get(name)
            listener = self.listeners.get(name)
            if before is None or listener is None:
                continue
            if given.key_of(acceptor).listening != former.key_of(before).listening:
                listener.close()
                del self.listeners[name]
                self.unbound[name] = acceptor
            else:
                # of connections that come from now on; what its socket takes at most stays
                most = listener.times.max_frame_size
                listener.times = replace(acceptor.times, max_frame_size=most)
                listener.admit(given.credentials, frozenset(acceptor.roles))
        for name, audience in self._audiences.items():
            self._tell(name, audience)
        self.listen()
        if self.is_live:
            self._agents.wants(given.agents)
            self._bridge(given.shipping)

    def tell_failure(self, told: Callable[[str], None]) -> None:
        """Of its thread."""
        self._thread.tell_failure(told)

    def close(self, *, at_once: bool = False) -> None:
        """In good order: what is on its way is confirmed first."""
        self._is_closed = True
        if not self._thread.has_ended:
            self._end_all(at_once=at_once)
        self._networked.close()
        self._agents.close()
        self._thread.close()
        if self._broker is not None:
            self._broker.close()

    def _end_all(self, *, at_once: bool) -> None:
        links = [each.link for each in self.bridges.values() if each.link is not None]
        for each in self.bridges.values():
            if each.outbox is not None:
                each.outbox.close()
            each.looks_no_more()
        if not at_once:
            for link in links:
                link.stop()
            for listener in self.listeners.values():
                listener.close()
            until = max((each.times.pending_ack_timeout for each in links), default=0)
            ends_at = time.monotonic() + until + 1
            for link in links:
                link.ended_at.wait(max(0.0, ends_at - time.monotonic()))
        if self.replicas is not None:
            self.replicas.close()
        if self._sessions is not None:
            self._sessions.close()
