"""A cluster with one guard removed: the simulation must object to each.

Some are of what carries the machines out, as it is modelled there.
"""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.cluster import balancing, scale_down
from shmbroker.netbridge.cluster.adverts import Adverts, Copy, _Reading
from shmbroker.netbridge.cluster.board import Board
from shmbroker.netbridge.cluster.machine import Membership
from shmbroker.netbridge.cluster.redistribution import Here, Redistribution
from shmbroker.netbridge.simulation.cluster.carrying import Carrying
from shmbroker.netbridge.simulation.cluster.leaving import Leaving
from shmbroker.netbridge.simulation.cluster.way import Near
from shmbroker.netbridge.simulation.fault import Fault
from tests.netbridge.simulation.mutants import Mutant

MUTANTS: Final = (
    # --- who is in it
    Mutant(
        "an-older-word-counts",
        Membership,
        "_takes",
        "of.age <= known.age",
        "False",
    ),
    Mutant("a-newer-word-does-not-count", Membership, "_takes", "of.age <= known.age", "True"),
    Mutant(
        "not-told-on",
        Membership,
        "_takes",
        "if each != link:",
        "if False:",
    ),
    Mutant(
        "a-newcomer-is-told-of-nobody",
        Membership,
        "up",
        "if self.is_there(node) or node in self.paths:",
        "if False:",
    ),
    Mutant(
        "counts-its-own-node-twice",
        Membership,
        "_takes",
        "if is_ours or (",
        "if (",
    ),
    Mutant(
        "two-of-a-node-are-a-copied-store",
        Membership,
        "_is_twice",
        "former.name == of.name or not is_of_one",
        "True",
    ),
    Mutant(
        "one-that-is-gone-is-still-there",
        Membership,
        "_is_twice",
        "if not is_own and former.incarnation not in self._here_now:",
        "if False:",
    ),
    Mutant(
        "nobody-hears-later-of-one-that-was-away",
        Membership,
        "_met",
        "yield from self._tells_owed(of.node)",
        "pass",
    ),
    # --- forgotten
    Mutant(
        "one-that-came-back-is-forgotten",
        Membership,
        "_drops",
        "known.epoch <= epoch and not self.is_there(node)",
        "True",
    ),
    Mutant("forgotten-here-alone", Membership, "_forgets", "if each != link:", "if False:"),
    Mutant(
        "who-comes-does-not-hear-of-it",
        Membership,
        "up",
        "yield Say(link, Forgotten(node, epoch))",
        "pass",
    ),
    Mutant(
        "counted-as-before-it-was-forgotten",
        Membership,
        "count",
        "if digest == self._digest",
        "if True",
        behind=Mutant(
            "it-has-told-a-number", Membership, "_forgets", "del self._claims[who]", "pass"
        ),
    ),
    # --- what is told of queues
    Mutant(
        "tells-before-it-has-looked",
        Adverts,
        "_page",
        "if self._has_looked else None",
        "",
    ),
    Mutant(
        "tells-what-it-had-when-it-served",
        Membership,
        "becomes",
        "self.adverts.hides()",
        "pass",
    ),
    Mutant("answers-once", Adverts, "shows", 'yield from self._answers(b"")', "yield from ()"),
    Mutant(
        "asked-once",
        Adverts,
        "heard",
        "yield Say(link, reading.ask(what.of))",
        "pass",
    ),
    Mutant(
        "asked-over-a-link-that-is-gone",
        Adverts,
        "links",
        "if not is_direct and beyond.get(node) != link:",
        "if False:",
    ),
    Mutant(
        "another-process-goes-on-with-the-versions",
        Board,
        "page",
        "is_known = asked.incarnation == self.incarnation",
        "is_known = True",
    ),
    Mutant(
        "what-changed-again-is-not-told-again",
        Board,
        "shows",
        "if known is None or known.advert != advert:",
        "if known is None:",
    ),
    Mutant(
        "what-is-gone-is-not-noted",
        Board,
        "shows",
        "self._note(key, None)",
        "pass",
    ),
    Mutant(
        "what-is-gone-stays-known",
        Copy,
        "takes",
        "self.queues.pop(name, None)",
        "pass",
    ),
    Mutant(
        "added-to-what-a-former-process-told",
        _Reading,
        "takes",
        "if told.is_anew:",
        "if False:",
    ),
    # --- balancing
    Mutant(
        "balanced-to-nodes-without-consumers",
        balancing,
        "members",
        "each.is_consumed and node in up",
        "node in up",
    ),
    Mutant(
        "balanced-to-nodes-without-a-link",
        balancing,
        "members",
        "each.is_consumed and node in up",
        "each.is_consumed",
    ),
    Mutant(
        "balanced-whatever-the-mode",
        balancing,
        "sets",
        "if mode not in (STRICT, ON_DEMAND):",
        "if False:",
    ),
    Mutant(
        "selectors-are-not-seen",
        balancing,
        "_member",
        "selectors if is_consumed else ()",
        "()",
    ),
    # --- redistribution
    Mutant("without-delay", Redistribution, "looks", "+ each.delay", ""),
    Mutant(
        "not-cancelled",
        Redistribution,
        "looks",
        "self._since = {",
        "self._since = self._since | {",
    ),
    Mutant(
        "selectors-change-and-the-delay-goes-on",
        Redistribution,
        "_as_since",
        "known is None or known[:2] != which",
        "known is None or known[0] != queue.reference",
    ),
    Mutant(
        "begins-anew-at-each-look",
        Redistribution,
        "_as_since",
        "known is None or known[:2] != which",
        "True",
    ),
    Mutant(
        "to-nodes-without-consumers",
        Redistribution,
        "looks",
        "if queue.is_consumed:",
        "if True:",
    ),
    Mutant(
        "nothing-wakes-it-when-the-delay-is-over",
        Redistribution,
        "looks",
        "self.deadline = min(self.deadline, begins)",
        "pass",
    ),
    Mutant(
        "consumers-here-are-not-seen",
        Here,
        "gives",
        "not self.is_consumed or (self.matches and 0 < len(self.selectors) <= SELECTORS_MAX)",
        "True",
    ),
    Mutant(
        "all-consumers-here-prevent-it",
        Here,
        "gives",
        "not self.is_consumed or (self.matches and 0 < len(self.selectors) <= SELECTORS_MAX)",
        "not self.is_consumed",
    ),
    Mutant(
        "to-nodes-without-a-link",
        Carrying,
        "looks",
        "if node in up}",
        "}",
    ),
    Mutant(
        "given-away-while-somebody-takes",
        Carrying,
        "_some",
        "if others is None:",
        "if False:",
    ),
    # --- ways
    Mutant(
        "goes-on-where-it-sent-last",
        Near,
        "heard",
        "self._cursor = said.mark",
        "self._cursor = max(self._cursor, self._broker.store.memory.towards[self.node].tail)",
    ),
    Mutant(
        "the-way-stays-with-a-former-live",
        Carrying,
        "_follow",
        "if former != live.uri:",
        "if former is None:",
    ),
    # --- leaving
    Mutant(
        "due-again-and-again-while-it-leaves",
        Carrying,
        "looks",
        "self.deadline = math.inf  # else it would be due again and again",
        "pass",
    ),
    Mutant(
        "leaves-before-all-is-there",
        Leaving,
        "_drains",
        "or any(each.messages for each in content.towards.values())",
        "",
    ),
    Mutant(
        "to-one-that-was-not-named",
        scale_down,
        "order_of",
        "if not wanted.connectors:",
        "if True:",
    ),
)
SHOWN_BY: Final = {
    "nobody-hears-later-of-one-that-was-away": 184,
    "one-that-came-back-is-forgotten": 123,
    "forgotten-here-alone": 116,
    "who-comes-does-not-hear-of-it": 74,
    "counted-as-before-it-was-forgotten": 20,
    "what-is-gone-is-not-noted": 18,
    "what-is-gone-stays-known": 18,
    "selectors-change-and-the-delay-goes-on": 8,
    "all-consumers-here-prevent-it": 87,
    "goes-on-where-it-sent-last": 10,
    "the-way-stays-with-a-former-live": 121,
    "two-of-a-node-are-a-copied-store": 43,
    "balanced-to-nodes-without-a-link": 10,
    "leaves-before-all-is-there": 1103,
    "to-one-that-was-not-named": 92,
    "tells-what-it-had-when-it-served": 27,
}
"""The first seed that objects, where not one of the first does."""
GIVEN: Final = {
    "tells-what-it-had-when-it-served": [
        Fault(1.0, "hand-over", "b", 2.0),
        Fault(2.3, "declare", "b", 0.3),
    ]
}
"""What happens, in this order, where drawn faults hardly ever do."""
