"""The same world with all members on one host and nobody to ask: its kernel knows who lives."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

from shmbroker.netbridge.simulation.replication import run
from shmbroker.netbridge.simulation.replication.scene import Cast, cast_of

MEMBERS = (2, 3, 3)
FILLED = 0.5
"""In so many worlds a disk that fails takes no frames."""


def cast_for(seed: int) -> Cast:
    random = Random(seed * 104729)
    cast = replace(cast_of(seed), members=random.choice(MEMBERS), voters=0, splits=False)
    return replace(cast, is_one_host=True, is_filled=random.random() < FILLED)


faults_of = partial(run.faults_of, casting=cast_for)
simulate = partial(run.simulate, casting=cast_for)
