"""Queue replicas with one guard removed: the simulation must object to each.

Some are of what carries the machines out, as it is modelled there.
"""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.queue_replica import original
from shmbroker.netbridge.queue_replica.machine import Replica
from shmbroker.netbridge.queue_replica.unshown import Unshown
from shmbroker.netbridge.queue_replica.waited import Waited
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.queue_replicas.copy import Copy
from shmbroker.netbridge.simulation.queue_replicas.follower import Follower
from shmbroker.netbridge.simulation.queue_replicas.reading import Reading
from tests.netbridge.simulation.mutants import Mutant

MUTANTS: Final = (
    # --- which queue, and how far
    Mutant(
        "another-incarnation-goes-on",
        original,
        "begins_at",
        "wish.identity == identity and wish.next <= tail",
        "wish.next <= tail",
    ),
    Mutant(
        "goes-on-behind-the-end",
        original,
        "begins_at",
        "wish.identity == identity and wish.next <= tail",
        "wish.identity == identity",
    ),
    Mutant(
        "has-positions-that-the-original-lost",
        Replica,
        "follows",
        "if is_other or said.begins != next:",
        "if is_other or said.begins > next:",
    ),
    Mutant(
        "what-another-queue-had-is-not-saved",
        Replica,
        "follows",
        "saves = is_other and said.identity != self._stale",
        "saves = False",
    ),
    Mutant(
        "all-of-it-comes-again",
        Replica,
        "_ask",
        "next if self.identity else 0",
        "0",
    ),
    # --- rings, and who may delete it
    Mutant("a-ring-is-let-be", Replica, "_is_ring", "each.node == self.node", "False"),
    Mutant(
        "a-ring-that-is-seen-later-is-let-be",
        Replica,
        "chained",
        "if self._is_ring and self.state in (State.SYNCING, State.FOLLOWING):",
        "if False:",
    ),
    # --- detached
    Mutant("goes-on-once-detached", Replica, "detach", "yield Stop()", "pass"),
    Mutant(
        "fed-once-it-left",
        Replica,
        "detach",
        "if self._is_linked:",
        "if False:",
    ),
    Mutant("not-asked-for-again", Replica, "unserved", "now + ASK_SECONDS", "NEVER"),
    Mutant("not-tried-again", Replica, "fails", "now + ANEW_SECONDS", "NEVER"),
    # --- moments
    Mutant(
        "seen-while-a-transaction-stands-half-way",
        Reading,
        "_see",
        "if not self._memory.is_between:",
        "if False:",
    ),
    Mutant(
        "shown-though-a-transaction-was-in-between",
        Reading,
        "read",
        "not self._is_late or self._committed == self._memory.committed",
        "True",
    ),
    Mutant(
        "whoever-comes-is-of-the-moment-before",
        Reading,
        "add",
        "self._in_moment = False",
        "pass",
    ),
    Mutant(
        "what-is-not-delivered-now-is-left-out",
        Reading,
        "_messages",
        "while one.cursor < one.seen.end",
        "while self._memory.is_delivered(one.queue) and one.cursor < one.seen.end",
    ),
    Mutant(
        "what-never-came-was-lost-there",
        Copy,
        "_has_what_is_lost_there",
        "min(self.end, known)",
        "self.end",
    ),
    Mutant(
        "a-part-is-shown-where-all-has-no-room",
        Copy,
        "_all_has_place",
        "if self.end - first > queue.slots:",
        "if False:",
    ),
    Mutant(
        "compared-with-its-original-once-only",
        Follower,
        "came",
        "self.copies.pop(each.machine.number, None)",
        "pass",
    ),
    # --- confirms
    Mutant(
        "counts-before-it-has-shown",
        Waited,
        "sent",
        "found = self._replicas[who]",
        "found = self._replicas[who]; found.counts = True; found.below = 1 << 40",
    ),
    Mutant(
        "told-before-it-is-on-disk",
        Follower,
        "look",
        "if not self._broker.memory.has_synced_all or not self._is_linked:",
        "if not self._is_linked:",
    ),
    Mutant(
        "counts-what-it-had-before-it-began-anew",
        Unshown,
        "drop",
        "ends.pop(number, None)",
        "pass",
    ),
)
SHOWN_BY: Final = {
    "another-incarnation-goes-on": 3,
    "goes-on-behind-the-end": 79,
    "has-positions-that-the-original-lost": 79,
    "what-another-queue-had-is-not-saved": 1,
    "a-ring-is-let-be": 2,
    "a-ring-that-is-seen-later-is-let-be": 2,
    "goes-on-once-detached": 92,
    "fed-once-it-left": 6,
    "not-asked-for-again": 3,
    "not-tried-again": 15,
    "shown-though-a-transaction-was-in-between": 43,
    "whoever-comes-is-of-the-moment-before": 1,
    "what-is-not-delivered-now-is-left-out": 55,
    "what-never-came-was-lost-there": 6,
    "a-part-is-shown-where-all-has-no-room": 2,
    "compared-with-its-original-once-only": 83,
    "told-before-it-is-on-disk": 41,
    "counts-what-it-had-before-it-began-anew": 1304,
}
"""The first seed that objects, where not one of the first does."""

LET_FOR_GOOD: Final = Mutant(
    "may-be-deleted-for-good",
    Replica,
    "follows",
    "if self._is_let is not False:",
    "if self._is_let:",
)
"""It takes three faults in this order: the original is deleted, the broker of its replica killed,
and the store of the original replaced by an older copy."""
IN_THAT_ORDER: Final = (
    Fault(1.0, "restored", "a", 1.5, "b"),
    Fault(1.2, "deleted", "a", 4.0, "b"),
    Fault(1.9, "kill", "b", 0.1, "a"),
)
LET_FOR_GOOD_SEED: Final = 0
