"""What strikes independent brokers."""

from __future__ import annotations

from random import Random
from typing import Final

from shmbroker.netbridge.simulation.fault import Fault

KINDS: Final = (
    "cut",
    "half-open",
    "one-way",
    "partition",
    "drop",
    "kill",
    "power",
    "cut-then-power",
    "stand-still",
    "slow-disk",
    "hand-over",
    "stop",
)


ENDS_SECONDS: Final = 0.3
"""A fault that has two parts has had both when programs are busy no more."""


def drawn(seed: int, until: float, hosts: tuple[str, ...]) -> list[Fault]:
    random = Random(~seed)
    liked = random.sample(KINDS, random.randint(1, len(KINDS)))
    faults = []
    for _ in range(random.randint(0, 8)):
        host = random.choice(hosts)
        other = random.choice([each for each in hosts if each != host])
        seconds = random.choice((0.01, 0.1, 0.5, 1.0, 2.0)) * random.uniform(0.5, 1.5)
        time = random.uniform(0.3, until - ENDS_SECONDS)
        faults.append(Fault(time, random.choice(liked), host, seconds, other))
    return sorted(faults, key=lambda fault: fault.time)
