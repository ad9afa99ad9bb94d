"""One run of a seed: brokers are used while they are struck; then each copy is counted."""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.simulation.agents.cast import cast_of
from shmbroker.netbridge.simulation.agents.scene import Scene
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.peers.fault import drawn
from shmbroker.netbridge.simulation.rest import comes_to_rest
from shmbroker.netbridge.simulation.run import Outcome, outcome
from shmbroker.netbridge.simulation.world import World, Wrong

BUSY_SECONDS: Final = 2.5
SETTLED_SECONDS: Final = 1.0
PROBED_SECONDS: Final = 5.0
STEP_SECONDS: Final = 0.25


def faults_of(seed: int) -> list[Fault]:
    return drawn(seed, BUSY_SECONDS, cast_of(seed).hosts())


def simulate(
    seed: int,
    faults: list[Fault] | None = None,
    *,
    traced: bool = False,
    scenes: list[Scene] | None = None,
) -> Outcome:
    if faults is None:
        faults = faults_of(seed)
    scene = Scene(World(seed, is_traced=traced), cast_of(seed))
    if scenes is not None:
        scenes.append(scene)
    return outcome(seed, faults, scene, _run)


def _run(scene: Scene, faults: list[Fault]) -> None:
    world, watch = scene.world, scene.watch
    comes_to_rest(scene, faults, BUSY_SECONDS, watch.looks)
    watch.counts()
    world.run(world.now + SETTLED_SECONDS)
    watch.is_calm = True
    probes = scene.probes()
    until = world.now + PROBED_SECONDS
    while True:
        world.run(world.now + STEP_SECONDS)
        missing = scene.misses()
        if not missing:
            break
        if world.now >= until:
            raise Wrong(f"what was published at rest is stuck: {missing}")
    watch.looks()
    watch.counts_exactly(probes)
