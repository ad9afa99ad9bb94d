"""The same world with the lives of a cluster as voters, which a member learns one after the other.

Of n lives the others vote, n/2 + 1 of them: with three lives both of the others have to say yes.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.replication.run import faults_for, played
from shmbroker.netbridge.simulation.replication.scene import Cast, Scene, cast_of
from shmbroker.netbridge.simulation.run import Outcome

OTHERS = (1, 2, 2, 3, 4)
"""Lives beside that of the node."""


def cast_for(seed: int) -> Cast:
    return replace(cast_of(seed), voters=Random(seed * 104729).choice(OTHERS), lives=True)


def faults_of(seed: int) -> list[Fault]:
    return faults_for(seed, cast_for(seed))


def simulate(
    seed: int,
    faults: list[Fault] | None = None,
    *,
    traced: bool = False,
    scenes: list[Scene] | None = None,
) -> Outcome:
    return played(seed, cast_for(seed), faults, traced=traced, scenes=scenes)
