"""What strikes members and voters."""

from __future__ import annotations

from random import Random

from shmbroker.netbridge.simulation.fault import Fault

KINDS = (
    "cut",
    "half-open",
    "one-way",
    "partition",
    "isolated",
    "no-voters",
    "kill",
    "power",
    "stand-still",
    "sync-then-still",
    "clock",
    "slow-disk",
    "disk-full",
    "stop",
    "park",
    "hand-over",
    "replaced",
)
MEMBERS = ("a", "b", "c")
VOTERS = ("v1", "v2", "v3", "v4")
OF_MEMBERS = frozenset(
    {"sync-then-still", "no-voters", "disk-full", "stop", "park", "hand-over", "replaced"}
)


def drawn(seed: int, members: int, voters: int, until: float) -> list[Fault]:
    random = Random(~seed)
    liked = random.sample(KINDS, random.randint(1, len(KINDS)))
    faults = []
    for _ in range(random.randint(0, 8)):
        kind = random.choice(liked)
        names = MEMBERS[:members]
        everybody = (*names, *names, *VOTERS[:voters])
        host = random.choice(names if kind in OF_MEMBERS else everybody)
        other = random.choice([each for each in everybody if each != host])
        seconds = random.choice((0.01, 0.1, 0.5, 1.0, 2.0)) * random.uniform(0.5, 1.5)
        faults.append(Fault(random.uniform(0.3, until), kind, host, seconds, other))
    return sorted(faults, key=lambda fault: fault.time)
