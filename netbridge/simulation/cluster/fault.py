"""What strikes a cluster."""

from __future__ import annotations

from random import Random
from typing import Final

from shmbroker.netbridge.simulation.cluster.cast import Cast
from shmbroker.netbridge.simulation.fault import Fault

KINDS: Final = (
    "cut",
    "cut-off",
    "half-open",
    "one-way",
    "partition",
    "isolated",
    "kill",
    "power",
    "stop",
    "stand-still",
    "slow-disk",
    "hand-over",
    "scale-down",
    "gone",
    "forget",
    "declare",
    "delete",
)
OF_PEOPLE: Final = ("scale-down", "gone", "forget", "hand-over", "partition", "kill")
"""What happens to one cluster in four: nodes come, go and change hands."""


def drawn(seed: int, until: float, cast: Cast) -> list[Fault]:
    random = Random(~seed)
    liked = random.sample(KINDS, random.randint(1, len(KINDS)))
    if seed % 4 == 1:
        liked = list(OF_PEOPLE)
    hosts = cast.hosts()
    faults = []
    for _ in range(random.randint(0, 8)):
        host = random.choice(hosts)
        other = random.choice([each for each in hosts if each != host])
        seconds = random.choice((0.05, 0.3, 0.8, 1.5, 2.5)) * random.uniform(0.5, 1.5)
        faults.append(Fault(random.uniform(0.3, until), random.choice(liked), host, seconds, other))
    return sorted(faults, key=lambda fault: fault.time)
