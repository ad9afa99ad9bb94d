"""The same world with backups that do not serve: they give all to another node, which is up always,
and wait for the original."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from shmbroker.netbridge.simulation.replication import run
from shmbroker.netbridge.simulation.replication.scene import Cast, cast_of


def cast_for(seed: int) -> Cast:
    return replace(cast_of(seed), splits=False, drains=True)


faults_of = partial(run.faults_of, casting=cast_for)
simulate = partial(run.simulate, casting=cast_for)
