"""The ends of network links at a broker: those that it makes, and those that others have made.

Whoever makes a link says what it wants; the other end moves that into a ring, and ships the ring
over the same connection.  With `duplex` each does both.  All but what waits is of the network
thread.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.queue import Queue
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.source import Shipped, Source
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.link.peer import NOBODY, Identity
from shmbroker.netbridge.network.codec import decode, encode
from shmbroker.netbridge.network.demand import Demand, Here, Terms
from shmbroker.netbridge.network.option import NetworkLink
from shmbroker.netbridge.network.supply import Supply, Way
from shmbroker.netbridge.networked.looking import LOOK_SECONDS, Looking
from shmbroker.netbridge.networked.supplying import Supplying, former, made, ring_of
from shmbroker.netbridge.wire.frame import Frame, Talk
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import NETWORK_LINK, TargetKind

Tell = Callable[[Mapping[str, Any]], None]


@dataclass(slots=True)
class _Party:
    """What is at an end."""

    demand: Demand | None = None
    """None: nothing comes by it."""
    has_told: bool = False
    """What is wanted was told, after a look."""
    supply: Supply | None = None
    """None: nothing goes by it."""
    ring: str = ""
    """Of what goes by it."""
    is_wanted: bool = False
    """Something goes by it: the ring is made."""
    is_open: bool = False
    """The ring is shipped."""


class NetworkLinks(Closable):
    """Close it before the thread, and before the broker."""

    def __init__(self, thread: NetworkThread, tell: Tell) -> None:
        self._thread, self._tell = thread, tell
        self._parties: dict[End, _Party] = {}
        self._here: tuple[Here, ...] = ()
        self._broker: Broker | None = None
        self._ours = NOBODY
        self._looking: Looking | None = None
        self._supplying: Supplying | None = None
        self._worker = Worker(thread.call)
        self._is_closed = False
        self.due = math.inf
        """When it is looked again who consumes here."""

    def serve(self, broker: Broker, ours: Identity) -> None:
        """The broker is live.  Before any link is."""
        self._broker, self._ours = broker, ours
        self._looking = Looking(broker.vhost)
        self._thread.ask(lambda: self._thread.members.append(self))

    def of(self, link: NetworkLink) -> Near:
        """What is at the end of a link that this broker makes."""
        return Near(self, link)

    def close(self) -> None:
        if self._thread.has_ended:
            self.end()
        else:
            self._thread.ask(self.end)
        if self._supplying is not None:
            self._supplying.close()
        if self._looking is not None:
            self._worker.do(self._looking.close, lambda _: None)
        self._worker.close()

    # --- of the network thread ----------------------------------------------------------------

    def end(self) -> None:
        self._is_closed = True
        if self in self._thread.members:
            self._thread.members.remove(self)

    def woken(self, now: float) -> None:
        self.due = math.inf
        if self._looking is not None and not self._is_closed:
            self._worker.do(self._looking.look, self._looked)

    def _looked(self, found: tuple[Here, ...] | Exception | None) -> None:
        if isinstance(found, Exception):
            raise found
        if self._is_closed:
            return
        if any(each.demand is not None for each in self._parties.values()):
            self.due = time.monotonic() + LOOK_SECONDS
        self._here = self._here if found is None else found
        for end, party in list(self._parties.items()):
            if party.demand is not None:
                self._says(end, party, party.demand)

    def _says(self, end: End, party: _Party, demand: Demand) -> None:
        words = demand.looks(self._here)
        if not party.has_told:
            party.has_told = True
            words = demand.up()
        for each in words:
            end.say(Talk(encode(each)))

    # --- of an end ----------------------------------------------------------------------------

    def came(self, end: End) -> None:
        """Of a link that another broker has made."""
        if not self._is_closed:
            party = self._parties[end] = _Party(supply=Supply())
            self._goes_on(end, party)

    def fetches(self, end: End, demand: Demand, *, is_duplex: bool) -> None:
        """A link of this broker is up."""
        if not self._is_closed:
            party = self._parties[end] = _Party(demand, supply=Supply() if is_duplex else None)
            self._look()
            if is_duplex:
                self._goes_on(end, party)

    def _look(self) -> None:
        """What was wanted when a link was up last may be so no more: so look before it is told."""
        self.due = time.monotonic()

    def _goes_on(self, end: End, party: _Party) -> None:
        """What was on its way when the link was lost is so still, whatever is wanted now: it is not
        waited for that, which would take one more round trip."""
        party.ring = self._ring_of(end)
        assert self._broker is not None, "a passive broker has no links"
        self._worker.do(partial(former, self._broker, party.ring), partial(self._found, end))

    def _found(self, end: End, ring: Queue | Exception | None) -> None:
        """If it cannot be shipped, that is told once it is wanted."""
        party = self._parties.get(end)
        if isinstance(ring, Exception) and not isinstance(ring, Error):
            raise ring
        if isinstance(ring, Queue) and party is not None and not self._is_closed:
            with suppress(Error):
                self._open(end, party)
                self._supply()

    @staticmethod
    def _ring_of(end: End) -> str:
        handshake = end.machine.handshake
        assert handshake.peer is not None, "the handshake is over"
        return ring_of(handshake.peer.node, handshake.link.removeprefix(NETWORK_LINK))

    def heard(self, end: End, frame: Frame) -> None:
        party = self._parties.get(end)
        if party is None or self._is_closed or not isinstance(frame, Talk):
            return
        try:
            what = decode(frame.body)
            if party.supply is None:
                raise Malformed("messages are wanted of an end that is not duplex")
            has_news = party.supply.heard(what)
        except Malformed as error:
            end.does(end.machine.malformed(error, time.monotonic()))
            return
        if has_news:
            self._wanted(end, party, party.supply)

    def _wanted(self, end: End, party: _Party, supply: Supply) -> None:
        if supply.is_duplex and party.demand is None:
            party.demand = Demand(Terms(supply.prefetch))
            self._look()
        if not party.is_wanted:
            party.is_wanted = True
            assert self._broker is not None, "a passive broker has no links"
            self._worker.do(partial(made, self._broker, party.ring), partial(self._made, end))
        self._supply()

    def _made(self, end: End, ring: object) -> None:
        party = self._parties.get(end)
        if self._is_closed or party is None or party.is_open:
            return
        try:
            if isinstance(ring, Exception):
                raise ring
            self._open(end, party)
        except Error as error:
            end.does(end.machine.refuse(Reason.NO_SOURCE, told(error), time.monotonic()))
            return
        self._supply()

    def _open(self, end: End, party: _Party) -> None:
        handshake = end.machine.handshake
        assert self._broker is not None
        assert handshake.peer is not None, "the handshake is over"
        shipped = Shipped(party.ring, handshake.peer.node.hex(), TargetKind.NODE)
        source = Source(
            self._broker, self._thread.sleeper, handshake.link, shipped, lambda: end.news(0),
            partial(self._confirmed, party.ring),
        )  # fmt: skip
        end.sources[0] = source
        exact = end.machine.times.exact
        outlet = source.outlet(0, self._ours.node, self._ours.history, exact=exact)
        party.is_open = True
        end.does(end.machine.open(outlet, time.monotonic()))

    def _confirmed(self, ring: str, end: int) -> None:
        if self._supplying is not None:
            self._supplying.confirmed(ring, end)

    def gone(self, end: End) -> None:
        party = self._parties.pop(end, None)
        if party is not None:
            if party.demand is not None:
                party.demand.down()
            self._supply()

    def _supply(self) -> None:
        """What goes now, and where to."""
        ways = tuple(
            Way(each.ring, each.supply.prefetch, each.supply.queues)
            for each in self._parties.values()
            if each.is_open and each.supply is not None
        )
        if ways and self._supplying is None and not self._is_closed and self._broker is not None:
            self._supplying = Supplying(self._broker, self._tell)
        if self._supplying is not None:
            self._supplying.goes(ways)


class Near:
    """Of a link that this broker makes, for as many connections as it has."""

    def __init__(self, links: NetworkLinks, link: NetworkLink) -> None:
        self._links, self._is_duplex = links, link.is_duplex
        self._demand = Demand(link.terms, is_duplex=link.is_duplex)

    def came(self, end: End) -> None:
        self._links.fetches(end, self._demand, is_duplex=self._is_duplex)

    def heard(self, end: End, frame: Frame) -> None:
        self._links.heard(end, frame)

    def gone(self, end: End) -> None:
        self._links.gone(end)
