"""One run of a seed: brokers are used while they are struck; then each copy is counted."""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.simulation.agents.cast import cast_of
from shmbroker.netbridge.simulation.agents.scene import Scene
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.peers.fault import drawn
from shmbroker.netbridge.simulation.peers.rest import probed
from shmbroker.netbridge.simulation.rest import comes_to_rest
from shmbroker.netbridge.simulation.run import Outcome, outcome
from shmbroker.netbridge.simulation.world import World

BUSY_SECONDS: Final = 2.5


def faults_of(seed: int) -> list[Fault]:
    return drawn(seed, BUSY_SECONDS, cast_of(seed).hosts())


def simulate(
    seed: int,
    faults: list[Fault] | None = None,
    *,
    traced: bool = False,
    scenes: list[Scene] | None = None,
) -> Outcome:
    scene = Scene(World(seed, is_traced=traced), cast_of(seed))
    return outcome(seed, faults_of(seed) if faults is None else faults, scene, _run, scenes)


def _run(scene: Scene, faults: list[Fault]) -> None:
    comes_to_rest(scene, faults, BUSY_SECONDS, scene.watch.looks)
    scene.watch.counts()
    scene.watch.counts_exactly(probed(scene, scene.probes))
