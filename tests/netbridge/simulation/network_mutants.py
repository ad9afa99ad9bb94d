"""Network links with one guard removed: the simulation must object to each.

Some are of what carries the machines out, as it is modelled there.
"""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.link import inflow, outflow
from shmbroker.netbridge.network import supply
from shmbroker.netbridge.network.demand import Demand, Terms
from shmbroker.netbridge.network.supply import Supply
from shmbroker.netbridge.simulation.networks import broker
from shmbroker.netbridge.simulation.networks.broker import NetworksBroker
from shmbroker.netbridge.simulation.peers.end import PeerEnd
from shmbroker.netbridge.simulation.peers.sink import Sink
from tests.netbridge.simulation.mutants import Mutant

FORGETFUL: Final = Mutant("what-is-appended-is-not-told", PeerEnd, "_of_sink",
                          "sink.mark, sink.confirmed,", "sink.confirmed, sink.confirmed,")
MUTANTS: Final = (
    # --- what is wanted
    Mutant("told-once", Demand, "looks", "self._told == self._wanted", "True"),
    Mutant("wanted-no-more-and-not-told", Demand, "_pages",
           "_paged(sorted(told - self._wanted))", "_paged([])"),
    Mutant("wanted-though-excluded", Terms, "wants", "_is_any(self.exclude, queue.name)", "False"),
    Mutant("static-without-being-wanted", Terms, "wants",
           "_is_any(self.include_static, queue.name)", "False"),
    Mutant("wanted-by-nobody", Terms, "wants", "queue.is_consumed and not", "not"),
    Mutant("static-and-on-demand", Terms, "wants", "and not self.static_bridge", ""),
    Mutant("not-told-when-it-is-up", NetworksBroker, "_says", "if not at.has_told:", "if False:"),
    Mutant("wanted-no-more-and-not-heard", Supply, "heard",
           "self._coming -= set(what.gone)", "pass"),
    Mutant("told-anew-is-all-that-is-wanted", Supply, "heard",
           "self._coming |= set(what.queues)", "self._coming = set(what.queues)"),
    # --- whose turn it is
    Mutant("more-than-may-be-on-its-way", supply, "turns",
           "each.prefetch - waiting.get(each.ring, 0)", "each.prefetch"),
    Mutant("to-those-that-do-not-want-it", supply, "turns", "if queue in each.queues", ""),
    Mutant("one-turn-for-all-links", supply, "turns", "consumers + number", "consumers"),
    Mutant("it-travels-again", broker, "is_fetched", "not message.has_travelled and", ""),
    Mutant("a-ring-for-each-life", NetworksBroker, "_ring_of",
           "{end.peer}.{end.link}", "{end.peer}.{end.link}.{self.life}"),
    # --- each message once
    FORGETFUL,
    Mutant("known-messages-are-taken-again", Sink, "pour", "position < self.mark", "False",
           behind=FORGETFUL),
    Mutant("confirmed-before-it-is-synced", Sink, "confirmed",
           "self._store.synced.marks", "self._store.memory.marks"),
    Mutant(
        "confirmed-when-it-is-appended",
        inflow.Inflow,
        "_reached",
        "self.passed if self.confirmed >= self.appended else self.confirmed",
        "self.passed",
    ),
    Mutant(
        "released-when-it-is-sent",
        outflow.Outflow,
        "confirm",
        "self._confirmed(said.end,",
        "self._confirmed(self.cursor,",
    ),
    Mutant(
        "resumed-at-its-own-confirm",
        outflow.Outflow,
        "opened",
        "max(said.mark, self.confirmed) if",
        "self.confirmed if",
    ),
)  # fmt: skip
SHOWN_BY: Final = {
    "static-and-on-demand": 27,
    "to-those-that-do-not-want-it": 26,
    "what-is-appended-is-not-told": 19,
    "known-messages-are-taken-again": 19,
    "confirmed-before-it-is-synced": 62,
    "confirmed-when-it-is-appended": 67,
    "released-when-it-is-sent": 53,
}
"""The first seed that objects, where not one of the first does."""
