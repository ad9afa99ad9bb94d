"""The queues towards other nodes, and the links that ship them.

One durable queue for each other node, `$sf.CLUSTER.NODEID`: what is in it was confirmed here, and
waits until it is confirmed there.  It is made when a node is first known, and stays while the node
is missing; the link goes to whoever is live there.

What waits for a node that was scaled down goes to the one that has all that it has had, with the
same origin: that one knows from it how much had come there.  The queue stays: whatever is put into
it later, by a program that stood still, goes the same way.  What waits for one that was forgotten
is routed anew (anew.py).

In a chain a link for a node that is further goes to the next hop, into the queue towards that node
there.  What was sent to one hop and is not confirmed yet may be there: so another hop is taken only
when nothing is on its way, and a file remembers the present one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.errors import Error, NotFound
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance.whole import read_whole, write_whole
from shmbroker.netbridge.broker.gates import TOWARDS
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.source import Shipped
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.cluster.arrivals import Arrivals
from shmbroker.netbridge.cluster.machine import Membership
from shmbroker.netbridge.clustered import options
from shmbroker.netbridge.clustered.anew import Anew
from shmbroker.netbridge.clustered.home import Home, stream
from shmbroker.netbridge.clustered.setup import Setup
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.wire.frame import ID_BYTES
from shmbroker.netbridge.wire.words import FORWARDING_LINK, Role, TargetKind

GOODBYE_SECONDS: Final = 1.0
REFUSED_RETRY_SECONDS: Final = 1.0
SLOTS: Final = 1 << 16
"""Of a queue towards a node: so many may be on their way before publishers wait."""
UP: Final = "up"


def towards(cluster: str, node: Node) -> str:
    """The name of a queue."""
    return f"{TOWARDS}{cluster}.{node.hex()}"


def way_of(queue: str) -> tuple[str, Node] | None:
    """The cluster and the node that a queue of this name leads to; None: it only looks like that,
    as a program may have named one."""
    cluster, _, text = queue.removeprefix(TOWARDS).rpartition(".")
    with suppress(ValueError):
        node = bytes.fromhex(text)
        if len(node) == ID_BYTES and towards(cluster, node) == queue:
            return cluster, node
    return None


def led_to(broker: Broker, cluster: str) -> frozenset[Node]:
    """There is a queue towards these, whether anybody has met them or not."""
    ways = map(way_of, broker._catalog.queue_names().values())
    return frozenset(way[1] for way in ways if way is not None and way[0] == cluster)


def undeliverable(cluster: str) -> str:
    """The name of the queue of messages whose queue was deleted on their way."""
    return f"{cluster}.undeliverable"


def _read(place: Path) -> dict[Node, Node]:
    # who has written to it?  Nothing is lost: a message may be twice
    with suppress(ValueError, TypeError):
        return {bytes.fromhex(node): bytes.fromhex(hop) for node, hop in read_whole(place).items()}
    return {}


@dataclass(slots=True)
class _Way:
    uri: str
    hop: Node
    """To which the link goes; in a chain perhaps a neighbour."""
    is_open: bool = True
    """There is a way to the node beyond the link."""
    link: Link | None = None
    """None: it is being made, or ends."""
    is_made: bool = False
    """Its queue is there."""
    has_left: bool = False
    """The node was scaled down, and `hop` is its heir."""


class Ways:
    """Of a live.  All but what is said otherwise is of the network thread."""

    def __init__(
        self, thread: NetworkThread, worker: Worker, setup: Setup, broker: Broker, node: Node,
        tell: Callable[[Mapping[str, Any]], None], changed: Callable[[], None],
    ) -> None:  # fmt: skip
        """`changed`: a way is up, or is so no more."""
        self._thread, self._worker, self._setup = thread, worker, setup
        self._broker, self._tell, self._changed = broker, tell, changed
        self._ours = replace(setup.ours, node=node, epoch=0)
        self._ways: dict[Node, _Way] = {}
        self._arrivals = Arrivals()
        self._hops = _read(setup.ways)
        """By nodes: neighbours over which messages for them were sent last."""
        self._homes: dict[Node, Home | None] = {}
        """Of nodes that have left, and whose heir is this node, or that were forgotten; None: it
        ends."""
        self.destinations: Mapping[int, tuple[Node, ...]] | None = None
        """By the targets of queues, who gets what was for a node that was forgotten; None: that is
        not known yet."""
        self._left: frozenset[Node] = frozenset()
        """Nodes that were scaled down, perhaps back since: of these it is kept by whom, always."""
        self._left_before: dict[Node, int] | None = None
        """Up to which epoch, of each of these, as it was known when this live began."""
        self.orphans: frozenset[Node] = frozenset()
        """Nodes that were forgotten, also in a former run of this broker: they want nothing."""
        self._no_way: set[Node] = set()
        """A link to these could not be made, and that was told."""
        self._is_chain = setup.cluster.hops > 1 and setup.cluster.allow_direct_connections_only
        self._cluster = setup.cluster.name
        self._is_closed = False
        self.makes_none = False
        """This broker leaves, and nothing begins to go to a node that is new to it: the journal
        would not hear of the queue, and what is in it would never be confirmed."""

    @property
    def up(self) -> frozenset[Node]:
        """To which messages go now."""
        return frozenset(
            node for node, way in self._ways.items()
            if way.is_open and not way.has_left and way.link is not None and way.link.state == UP
        )  # fmt: skip

    @property
    def made(self) -> frozenset[Node]:
        """There is a queue towards these."""
        return frozenset(
            node for node, way in self._ways.items() if way.is_made and not way.has_left
        )

    def looks(self, machine: Membership) -> None:
        """At who is live in the other nodes, and who is there no more."""
        if self._is_closed:
            return
        self._left = frozenset(machine.left)
        if self._left_before is None:
            self._left_before = {node: each.epoch for node, each in machine.left.items()}
        for node in machine.lives:
            hop, way = machine.next_hop(node), self._ways.get(node)
            home = self._homes.get(node)
            if node in self._homes:
                if isinstance(home, Anew):
                    self._emptied(node)  # it is back, and gets the rest
                elif home is not None:
                    home.patience = 0.0
            elif way is not None:
                way.is_open, way.has_left = hop is not None, False
                self._goes_by(node, way, way.hop if hop is None else hop, machine)
            elif not self.makes_none:
                self._begin(node, hop, machine)
        orphans = self.orphans = self._forgotten(machine)
        for node in () if self._is_chain else self._left - machine.lives.keys() - orphans:
            heir = machine.heir(node)
            if heir is not None and node != self._ours.node and self._is_known(node):
                self._redirects(node, heir, machine)
        for node in orphans:
            if self._is_known(node):
                self._goes_home(node)
        for node in self._ways.keys() - machine.lives.keys() - machine.left.keys() - orphans:
            self._end_then(self._ways.pop(node), lambda _: None)
        came = {each.node for each in self._arrivals.see(machine.there)}
        for way in self._ways.values():
            if way.hop in came and way.link is not None:
                way.link.start()  # nothing, if it is up or being tried

    # --- nodes that have left -----------------------------------------------------------------

    def _redirects(self, node: Node, heir: Node, machine: Membership) -> None:
        way = self._ways.get(node)
        if heir == self._ours.node:
            if way is not None or not self._was_back(node, machine):
                self._goes_home(node)
            return
        if node in self._homes:
            if self._homes[node] is not None:
                self._emptied(node)  # it was forgotten before
            return
        if way is None:
            self._begin(node, heir, machine)
            way = self._ways.get(node)
        else:
            self._goes_by(node, way, heir, machine)
        if way is not None:
            way.has_left = True

    def _forgotten(self, machine: Membership) -> frozenset[Node]:
        """Also those that were so when this broker ran last, and it had not routed all anew; and
        those that were scaled down to one of all these, unless they may have been back since."""
        begun = {node for node, by in self._hops.items() if by == self._ours.node}
        gone = machine.orphans | {node for node in begun if machine.heir(node) is None}
        while more := {
            node for node, left in machine.left.items()
            if left.to in gone and node not in gone and machine.heir(node) is None
            and not self._was_back(node, machine)
        }:  # fmt: skip
            gone |= more
        return gone

    @property
    def routes_anew(self) -> bool:
        """Something is on its way to a node that was forgotten."""
        return any(isinstance(each, Anew) and each.has_work for each in self._homes.values())

    def goes_home(self, node: Node) -> bool:
        """What is in the queue towards it goes to no other node by a link."""
        return node in self._homes

    @property
    def led_to(self) -> frozenset[Node]:
        return led_to(self._broker, self._cluster)

    def forgets(self, node: Node) -> None:
        """In the worker: it is kept, so that who is started anew goes on; OSError."""
        if self._is_known(node):
            self._remember(node, self._ours.node)

    def _goes_home(self, node: Node) -> None:
        way = self._ways.get(node)
        if way is not None:
            self._end_then(way, lambda _: self._parted(node))
        elif node not in self._homes:
            remember = partial(self._remember, node, self._ours.node)
            self._worker.do(remember, partial(self._pours_home, node))

    def _pours_home(self, node: Node, failed: Exception | None) -> None:
        """Unless it is back by now, or that it was begun could not be kept: who is started anew
        would not go on."""
        if isinstance(failed, OSError):
            self._complain(node, told(failed))  # the next look tries it again
        elif failed is not None:
            raise failed
        elif not self._is_closed and node not in self._ways:
            self._no_way.discard(node)
            self._comes_home(node, math.inf)

    def _was_back(self, node: Node, machine: Membership) -> bool:
        """Since it has left, as the file of hops says, and this broker was started anew since: what
        was sent there may have come there.  If it has left again, all know it by a later epoch."""
        left, before = machine.left.get(node), self._left_before
        is_as_before = left is not None and before is not None and before.get(node) == left.epoch
        return is_as_before and self._hops.get(node) == node

    def _parted(self, node: Node) -> None:
        """Its gate is free."""
        self._ways.pop(node, None)
        self._changed()

    def _comes_home(self, node: Node, patience: float) -> None:
        if node in self._homes:
            return
        given = (
            self._broker, node, towards(self._cluster, node), self._ours,
            lambda node: self._thread.call(lambda: self._emptied(node)), self._tell,
        )  # fmt: skip
        if node not in self.orphans:
            home = Home(*given)
        else:
            home = Anew(
                *given, lambda: self.destinations, partial(towards, self._cluster),
                lambda: self._thread.call(self._changed),
            )  # fmt: skip
        home.patience = patience
        self._homes[node] = home

    def _emptied(self, node: Node) -> None:
        """The node is back, and nothing of before is left."""
        home = self._homes.get(node)
        if home is not None and not self._is_closed:
            self._homes[node] = None

            def gone(_: object) -> None:
                self._homes.pop(node, None)
                self._changed()

            self._worker.do(home.close, gone)

    def _is_known(self, node: Node) -> bool:
        """There is a queue towards it."""
        with suppress(Error):
            self._broker.queue(towards(self._cluster, node))
            return True
        return False

    # --- ways ---------------------------------------------------------------------------------

    def _begin(self, node: Node, hop: Node | None, machine: Membership) -> None:
        former = self._hops.get(node, hop)
        if (left := machine.left.get(node)) is not None and node not in self._hops:
            former = machine.heir(left.to) or left.to  # what was sent before it was back is there
        is_gone = former in machine.forgotten.keys() - machine.lives.keys()
        is_gone = is_gone and not (former == node and self._was_back(node, machine))
        if former != hop and not is_gone and not self._is_empty(node):
            if former == self._ours.node and left and machine.heir(left.to) == former:
                self._comes_home(node, 0.0)
                return  # else it was routed anew, and who is back gets the rest
            if former != self._ours.node:
                hop = former  # it may have what was sent last
        live = machine.lives.get(hop) if hop is not None else None
        if hop is not None and live is not None:
            self._ways[node] = _Way(live.uri, hop, has_left=node not in machine.lives)
            self._again(node)

    def _goes_by(self, node: Node, way: _Way, hop: Node, machine: Membership) -> None:
        live = machine.lives.get(hop)
        if live is None or (way.hop, way.uri) == (hop, live.uri):
            return
        if way.hop == hop:
            way.uri = live.uri
            if way.link is not None:
                self._end_then(way, lambda _: self._again(node))
        elif way.link is not None:
            uri = live.uri

            def is_free() -> bool:
                return way.hop not in machine.lives or self._is_empty(node)

            def over(link: Link) -> None:
                if link.has_drained or is_free():  # by now nothing is sent
                    way.hop, way.uri = hop, uri
                self._again(node)

            if way.link.state == UP or is_free():
                self._end_then(way, over)

    def _is_empty(self, node: Node) -> bool:
        name = towards(self._setup.cluster.name, node)
        try:
            return not self._broker.queue(name).statistics().depth
        except NotFound:
            return True
        except Error:  # nobody knows
            return False

    def _again(self, node: Node) -> None:
        way = self._ways.get(node)
        if way is not None and not self._is_closed:
            to = way.hop, way.uri
            self._worker.do(partial(self._make, node, *to), partial(self._made, node, to))

    def _end_then(self, way: _Way, then: Callable[[Link], None]) -> None:
        link, way.link = way.link, None
        if link is not None:
            link.over = partial(self._thread.call, partial(then, link))
            link.stop()

    # --- of the worker ------------------------------------------------------------------------

    def _make(self, node: Node, hop: Node, uri: str) -> Link:
        setup, name = self._setup, towards(self._setup.cluster.name, node)
        if self._hops.get(node) == self._ours.node and self._is_known(node):
            with stream(self._broker, node, name, self._ours):
                pass  # what went here goes there no more
        self._remember(node, hop)
        dead = undeliverable(setup.cluster.name)
        queue = self._broker.declare_queue(
            name, slots=SLOTS, durable=True, max_deliveries=None, dead_letter=dead, replicate="all"
        )
        queue.pause()  # nobody takes from it; the link reads behind a gate of its own
        by_hops = hop != node and self._is_chain
        return Link(
            self._thread, f"{FORWARDING_LINK} {node.hex()}", options.plan(setup.cluster, uri),
            setup.credential, self._ours,
            [Shipped(name, name) if by_hops else Shipped(name, hop.hex(), TargetKind.NODE)],
            times=setup.times, role=Role.CLUSTER, refused_retry=REFUSED_RETRY_SECONDS,
            tell=self._tell, pair=setup.pair, shows=lambda _: self._thread.call(self._changed),
        )  # fmt: skip

    def _remember(self, node: Node, hop: Node) -> None:
        left, known = self._left, self._hops.get(node)
        if (known or node) != hop or (known is None and node in left):
            hops = {**self._hops, node: hop}
            hops = {each: by for each, by in hops.items() if by != each or each in left}
            shown = {each.hex(): by.hex() for each, by in hops.items()}
            write_whole(self._setup.ways, shown, synced=True)
            self._hops = hops  # not before it is kept: else the next try would not keep it

    def _made(self, node: Node, to: tuple[Node, str], link: Link | Exception) -> None:
        way = self._ways.get(node)
        if isinstance(link, (Error, OSError)):
            self._complain(node, told(link))
            self._ways.pop(node, None)  # the next look begins it again
        elif isinstance(link, Exception):
            raise link
        elif self._is_closed or way is None or way.link is not None:
            link.stop()
        else:
            way.link, way.is_made = link, True
            self._no_way.discard(node)
            if (way.hop, way.uri) != to:  # it has moved while the link was made
                self._end_then(way, lambda _: self._again(node))
            self._changed()

    def _complain(self, node: Node, why: str) -> None:
        """Once: it is tried again and again."""
        if node not in self._no_way:
            self._no_way.add(node)
            line = {"event": "cluster", "level": "error", "cluster": self._setup.cluster.name,
                    "state": "no way", "detail": why, "node": node.hex()}  # fmt: skip
            self._tell(line)

    def close(self) -> None:
        """Of the worker: in good order, as far as that is soon enough."""

        def stop() -> list[Link]:
            self._is_closed = True
            links = [way.link for way in self._ways.values() if way.link is not None]
            for link in links:
                link.stop()
            return links

        for home in list(self._homes.values()):
            if home is not None:
                home.close()
        late = time.monotonic() + GOODBYE_SECONDS
        for link in self._thread.ask(stop):
            link.ended_at.wait(max(0.0, late - time.monotonic()))
            self._thread.ask(link.end)

    # --- people -------------------------------------------------------------------------------

    def show(self) -> dict[Node, dict[str, Any]]:
        """Of each node: how many messages wait for it, since when, and the state of its link."""
        shown: dict[Node, dict[str, Any]] = {}
        for node, way in list(self._ways.items()):
            with suppress(Error):
                queue = self._broker.queue(towards(self._setup.cluster.name, node))
                shown[node] = {
                    "waiting": queue.statistics().depth,
                    "link": way.link.state if way.link is not None else "idle",
                }
        return shown
