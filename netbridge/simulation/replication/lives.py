"""The same world with the lives of a cluster as voters, which a member learns one after the other.

Of n lives the others vote, n/2 + 1 of them: with three lives both of the others have to say yes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

from shmbroker.netbridge.simulation.replication import run
from shmbroker.netbridge.simulation.replication.scene import Cast, cast_of

OTHERS = (1, 2, 2, 3, 4)
"""Lives beside that of the node."""


def cast_for(seed: int) -> Cast:
    return replace(cast_of(seed), voters=Random(seed * 104729).choice(OTHERS), lives=True)


faults_of = partial(run.faults_of, casting=cast_for)
simulate = partial(run.simulate, casting=cast_for)
