"""The same world with all members on one host and nobody to ask: its kernel knows who lives."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

from shmbroker.netbridge.simulation.replication import run
from shmbroker.netbridge.simulation.replication.scene import Cast, cast_of

MEMBERS = (2, 3, 3)


def cast_for(seed: int) -> Cast:
    members = Random(seed * 104729).choice(MEMBERS)
    return replace(cast_of(seed), members=members, voters=0, splits=False, is_one_host=True)


faults_of = partial(run.faults_of, casting=cast_for)
simulate = partial(run.simulate, casting=cast_for)
