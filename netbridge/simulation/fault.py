"""What goes wrong, and when: drawn from the seed before the run, so that faults can be left out."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

KINDS = (
    "cut",
    "half-open",
    "one-way",
    "partition",
    "drop",
    "kill",
    "power",
    "cut-then-power",
    "stand-still",
    "clock",
    "day",
    "slow-disk",
    "slow-consumer",
    "stop",
    "copy-restored",
)
HOSTS = ("east", "west")


@dataclass(frozen=True, slots=True)
class Fault:
    time: float
    kind: str
    host: str
    seconds: float
    other: str = ""
    """The other end, where more than two hosts are."""

    def __str__(self) -> str:
        other = f" {self.other}" if self.other else ""
        return f"{self.time:.3f} {self.kind} {self.host}{other} {self.seconds:.3f}"


def drawn(seed: int, until: float) -> list[Fault]:
    random = Random(~seed)
    count = random.randint(0, 8)
    liked = random.sample(KINDS, random.randint(1, len(KINDS)))
    faults = [
        Fault(
            random.uniform(0.0, until),
            random.choice(liked),
            random.choice(HOSTS),
            random.choice((0.01, 0.1, 0.5, 1.0, 2.0)) * random.uniform(0.5, 1.5),
        )
        for _ in range(count)
    ]
    return sorted(faults, key=lambda fault: fault.time)
