"""What strikes brokers whose queues follow each other."""

from __future__ import annotations

from random import Random
from typing import Final

from shmbroker.netbridge.simulation.fault import Fault

DRAWN: Final = (
    "cut",
    "half-open",
    "one-way",
    "partition",
    "kill",
    "kill-in-show",
    "power",
    "stand-still",
    "clock",
    "slow-disk",
    "detach",
    "deleted",
    "deleted-here",
    "off",
    "restored",
)
KINDS: Final = (*DRAWN, "lapse")
NAMES: Final = ("a", "b", "c")
OF_REPLICAS: Final = frozenset({"kill-in-show", "detach", "deleted-here"})
OF_ORIGINALS: Final = frozenset({"deleted", "restored"})


def drawn(seed: int, until: float) -> list[Fault]:
    random = Random(~seed)
    liked = random.sample(DRAWN, random.randint(1, len(DRAWN)))
    faults = []
    for _ in range(random.randint(0, 8)):
        kind = random.choice(liked)
        hosts = NAMES[1:] if kind in OF_REPLICAS else NAMES[:1] if kind in OF_ORIGINALS else NAMES
        host = random.choice(hosts)
        other = random.choice([each for each in NAMES if each != host])
        seconds = random.choice((0.01, 0.1, 0.5, 1.0, 2.0)) * random.uniform(0.5, 1.5)
        faults.append(Fault(random.uniform(0.3, until), kind, host, seconds, other))
    return sorted((*faults, *_lapses(seed, until)), key=lambda fault: fault.time)


def _lapses(seed: int, until: float) -> list[Fault]:
    """Drawn apart: beside them all seeds stay what they were."""
    random = Random(f"lapses of {seed}")
    return [
        Fault(
            random.uniform(0.3, until),
            "lapse",
            random.choice(NAMES[:2]),
            random.choice((0.01, 0.1, 0.5, 1.0)) * random.uniform(0.5, 1.5),
        )
        for _ in range(random.choice((0, 0, 0, 1, 2)))
    ]
