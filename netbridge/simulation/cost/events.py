"""What happens in a cluster that is at rest, and what is said until it is at rest again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.cluster.said import Left
from shmbroker.netbridge.simulation.cost.cluster import Cluster
from shmbroker.netbridge.simulation.cost.member import Member
from shmbroker.netbridge.simulation.cost.quiet import SECONDS, QuietLink
from shmbroker.netbridge.simulation.cost.rows import Rows
from shmbroker.netbridge.simulation.cost.tally import Tally

STARTED_MAX: Final = 50
"""Brokers that are started together; more would take hours."""
SELECTOR: Final = "kind = 'coffee'"
OTHER_SELECTOR: Final = "kind = 'tea'"


@dataclass(frozen=True, slots=True)
class Size:
    nodes: int
    queues: int
    """Of all nodes."""
    consumers: int
    """Of all queues."""

    def rows(self, broker: str) -> Rows:
        return Rows(broker, max(1, self.queues // self.nodes), self.consumers // self.queues)


@dataclass(frozen=True, slots=True)
class Event:
    what: str
    told: Tally


class Town:
    """A cluster of this size, once `events` have begun."""

    def __init__(self, size: Size, *, is_chain: bool = False) -> None:
        self.size, self.is_chain = size, is_chain
        self.names = [f"broker-{number:04}" for number in range(size.nodes)]
        self.rows = {name: size.rows(name) for name in self.names}
        self.cluster = Cluster(hops=size.nodes if is_chain else 0)

    @property
    def ways(self) -> int:
        """Links that ship the queue of one node towards another one."""
        return self.size.nodes * (self.size.nodes - 1)

    def events(self) -> Iterator[Event]:
        yield from self._all_start()
        self.joins(self.names[-1])
        yield self._of("a broker joins")
        yield from self._of_links()
        yield from self._of_consumers()
        yield from self._of_queues()
        self._all_change()
        yield self._of("the last consumer of a queue leaves at each broker")
        yield from self._of_leaving()

    def _of(self, what: str) -> Event:
        """What was said of that which has just happened."""
        return Event(what, self.cluster.rests())

    # --- who is in it -------------------------------------------------------------------------

    def _all_start(self) -> Iterator[Event]:
        """All but the last one."""
        names = self.names[:-1]
        if self.is_chain or len(names) <= STARTED_MAX:
            for name in names:
                self.joins(name)
            yield Event("all are started at once", self.cluster.rests())
        else:
            self.cluster.meets({name: self.rows[name].adverts for name in names})

    def joins(self, name: str, epoch: int = 1) -> Member:
        at, names = self.names.index(name), self.names
        near = [names[each] for each in (at - 1, at + 1) if 0 <= each < len(names)]
        statics = near if self.is_chain else names[:1]
        return self.cluster.starts(name, statics, self.rows[name].adverts, epoch)

    def _of_leaving(self) -> Iterator[Event]:
        cluster, name = self.cluster, self.names[-1]
        first = cluster.named(self.names[0])
        cluster.dies(cluster.named(name))
        yield self._of("a broker is killed")
        self.joins(name, 2)
        yield self._of("it is back")
        leaves = cluster.named(name)
        first.does(first.machine.leaves(Left(leaves.node, 2, first.node)))
        cluster.dies(leaves)
        yield self._of("a broker is scaled down")
        again = self.joins(name, 3)
        cluster.rests()
        cluster.dies(again)
        cluster.rests()
        first.does(first.machine.forgets(leaves.node))
        yield self._of("a broker that is gone is forgotten")

    def _of_links(self) -> Iterator[Event]:
        """Of all links the same; the cluster has run without beats."""
        for what, count, ships in (
            ("between members", self.cluster.links, False), ("for messages", self.ways, True)
        ):  # fmt: skip
            link = QuietLink(ships=ships)
            yield Event(f"links {what}: all are made", link.waits(0.0).times(count))
            beats = link.waits(SECONDS).times(count / SECONDS)
            yield Event(f"links {what}: a second in which nothing happens", beats)

    # --- what they have -----------------------------------------------------------------------

    def _shows(self, name: str) -> None:
        self.cluster.named(name).shows(self.rows[name].adverts)

    def _of_consumers(self) -> Iterator[Event]:
        """At one queue of the first broker."""
        name = self.names[0]
        rows = self.rows[name]
        consumers = rows.consumers[rows.first]
        consumers.clear()
        self._shows(name)
        yield self._of("the last consumer of a queue leaves")
        consumers.append(SELECTOR)
        self._shows(name)
        yield self._of("a first consumer of a queue comes")
        consumers.append(SELECTOR)
        self._shows(name)
        yield self._of("another one comes")
        consumers.append(OTHER_SELECTOR)
        self._shows(name)
        yield self._of("one with another selector comes")

    def _of_queues(self) -> Iterator[Event]:
        name = self.names[0]
        rows = self.rows[name]
        rows.consumers["payments"] = []
        self._shows(name)
        yield self._of("a queue is declared")
        del rows.consumers["payments"]
        self._shows(name)
        yield self._of("a queue is deleted")

    def _all_change(self) -> None:
        for name in self.names:
            rows = self.rows[name]
            rows.consumers[rows.first].clear()
            self._shows(name)
