"""Agents with one guard removed: the simulation must object to each.

Some are of what carries the machines out, as it is modelled there.
"""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.agent import party
from shmbroker.netbridge.agent.subscription import Asked, Asking
from shmbroker.netbridge.link import inflow, outflow
from shmbroker.netbridge.link.machine import Machine
from shmbroker.netbridge.simulation.agents import routing
from shmbroker.netbridge.simulation.agents.broker import AgentsBroker
from shmbroker.netbridge.simulation.agents.journey import Journey
from shmbroker.netbridge.simulation.peers.broker import Broker
from shmbroker.netbridge.simulation.peers.dialler import Dialler
from shmbroker.netbridge.simulation.peers.end import PeerEnd
from shmbroker.netbridge.simulation.peers.sink import Sink
from tests.netbridge.simulation.mutants import Mutant

FORGETFUL: Final = Mutant("what-is-appended-is-not-told", PeerEnd, "_of_sink",
                          "sink.mark, sink.confirmed,", "sink.confirmed, sink.confirmed,")
MUTANTS: Final = (
    # --- what the ends of a link say and do
    Mutant(
        "asks-before-it-is-joined",
        party.Near,
        "looks",
        "self._is_joined and self.mode.subscribes",
        "self.mode.subscribes",
    ),
    Mutant(
        "ships-before-what-it-wants-is-bound",
        party.Near,
        "heard",
        "Look() if self.mode.subscribes else Ship()",
        "Look() if not self.mode.forwards else Ship()",
    ),
    Mutant("ships-at-each-binding", party.Far, "bound", "if not self.is_open:", "if True:"),
    Mutant("does-not-say-that-it-is-bound", party.Far, "bound", "yield Say(Bound())", "pass"),
    Mutant(
        "answers-without-being-joined",
        party.Far,
        "answered",
        "self._is_joined = isinstance(said, Joined)",
        "pass",
    ),
    Mutant(
        "unbound-and-not-told",
        Asking,
        "wants",
        "(told or frozenset()) - wanted",
        "frozenset()",
    ),
    Mutant("told-once", Asking, "wants", "told == wanted", "told is not None"),
    Mutant("unbound-and-not-heard", Asked, "heard", "self._coming -= set(what.gone)", "pass"),
    Mutant(
        "told-anew-is-all-that-is-wanted",
        Asked,
        "heard",
        "self._coming |= set(what.bindings)",
        "self._coming = set(what.bindings)",
    ),
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
    Mutant("shipped-before-it-is-synced", AgentsBroker, "_tells", "if not is_synced:", "if False:"),
    Mutant(
        "passed-before-that-is-synced",
        inflow.Inflow,
        "_skip",
        "self.appended = max(self.appended, end)",
        "pass",
    ),
    # --- where a message was
    Mutant("been-here-is-not-seen", Journey, "was_here",
           "self.here in (*been, self.sender)", "False"),
    Mutant("the-sender-is-not-noted", Journey, "onward",
           "(*self.message.visited, self.sender)", "self.message.visited"),
    Mutant("hops-without-end", Journey, "goes_on", "self.hops < hops_max and", ""),
    Mutant("nothing-comes-back", Journey, "was_here",
           "self.message.comes_back and been == (self.here,)", "False"),
    Mutant("not-said-that-it-comes-back", Journey, "onward",
           "to_subscriber and self.message.comes_back and self.hops == 1", "False"),
    # --- where it goes
    Mutant("sent-up-again", routing, "route", "alone and not has_arrived", "alone"),
    Mutant("forwarded-though-it-is-taken", routing, "route", "and not is_taken", ""),
    Mutant("bindings-of-subscribers-take-nothing", routing, "route",
           "() if exclusive else tuple(", "() if True else tuple("),
    Mutant("nothing-is-returned", AgentsBroker, "verdict",
           "found.is_empty and message.is_mandatory", "False"),
    # --- what is there as long as its connection
    Mutant("queues-of-a-former-broker-stay", AgentsBroker, "drops_all",
           "self.catalog.subscriptions.clear()", "pass"),
    Mutant("queues-of-a-lost-connection-stay", AgentsBroker, "gone",
           "isinstance(at, Accepted) and at.queue", "False"),
    Mutant("connections-share-a-queue", AgentsBroker, "_serves",
           ".{self._connections}", ""),
    # --- pairs
    Mutant("a-late-beat-breaks-the-handshake", Machine, "_received",
           "and not self._has_waited(frame)", ""),
    Mutant("a-passive-broker-serves", Broker, "accepts",
           "PEERING if self.is_live else frozenset[Role]()", "PEERING"),
    Mutant("a-lost-member-is-not-left", Dialler, "ended",
           "self._does(self._plan.lost(now, how.reason.value, is_malformed=is_failed))", "pass"),
)  # fmt: skip
SHOWN_BY: Final = {
    "what-is-appended-is-not-told": 19,
    "known-messages-are-taken-again": 19,
    "confirmed-before-it-is-synced": 44,
    "confirmed-when-it-is-appended": 44,
    "released-when-it-is-sent": 26,
    "shipped-before-it-is-synced": 218,
    "passed-before-that-is-synced": 28001178,
    "a-late-beat-breaks-the-handshake": 20,
}
"""The first seed that objects, where not one of the first does."""
