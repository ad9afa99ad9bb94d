"""Who takes part, by the seed, and what strikes them."""

from __future__ import annotations

from random import Random
from typing import Final

from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.replication.fault import MEMBERS, VOTERS

VOTERS_AT_ALL: Final = (1, 2, 3, 3, 3, 4)
KINDS: Final = (
    "cut", "half-open", "one-way", "partition", "isolated", "no-voters", "some-voters", "kill",
    "power", "stand-still", "clock", "slow-disk",
)  # fmt: skip
OF_MEMBERS: Final = frozenset({"no-voters", "some-voters", "clock"})
LOST_AND_MID_VOTE: Final = "lost-and-mid-vote"
"""Whoever serves is lost, and so is one who asks to be next, in the middle of that."""
LIVE: Final = "live"
"""Whoever serves when it is struck."""
FAULTS: Final = 3, 25


def cast_of(seed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Members and voters."""
    random = Random(seed * 6007)
    return MEMBERS[: random.choice((2, 3, 3, 3))], VOTERS[: random.choice(VOTERS_AT_ALL)]


def drawn(seed: int, until: float) -> list[Fault]:
    random = Random(~seed)
    members, voters = cast_of(seed)
    liked = random.sample(KINDS, random.randint(1, len(KINDS)))
    faults = []
    for _ in range(random.randint(*FAULTS)):
        kind = random.choice(liked) if random.random() < 0.6 else LOST_AND_MID_VOTE
        hosts = members if kind in OF_MEMBERS else (*members, *voters)
        host = LIVE if kind not in liked or random.random() < 0.3 else random.choice(hosts)
        other = random.choice([each for each in (*members, *voters) if each != host])
        seconds = random.choice((0.05, 0.2, 0.5, 1.0)) * random.uniform(0.5, 1.5)
        faults.append(Fault(random.uniform(0.1, until), kind, host, seconds, other))
    return sorted(faults, key=lambda fault: fault.time)
