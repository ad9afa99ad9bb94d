"""One run of a seed: epochs are asked for while all are struck; healed, somebody serves."""

from __future__ import annotations

from shmbroker.netbridge.simulation.election.fault import cast_of, drawn
from shmbroker.netbridge.simulation.election.scene import Scene
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.run import Outcome, outcome
from shmbroker.netbridge.simulation.world import World, Wrong

BUSY_SECONDS = 4.0
HEALED_SECONDS = 20.0
STEP_SECONDS = 0.25


def faults_of(seed: int) -> list[Fault]:
    return drawn(seed, BUSY_SECONDS)


def simulate(
    seed: int,
    faults: list[Fault] | None = None,
    *,
    traced: bool = False,
    scenes: list[Scene] | None = None,
) -> Outcome:
    scene = Scene(World(seed, is_traced=traced), *cast_of(seed))
    given = faults_of(seed) if faults is None else faults
    return outcome(seed, given, scene, _run, scenes)


def _run(scene: Scene, faults: list[Fault]) -> None:
    world = scene.world
    scene.begin()
    until = scene.suffers(faults, BUSY_SECONDS) + HEALED_SECONDS
    scene.calms()
    while not scene.is_whole:
        if world.now >= until and scene.is_for_a_person:
            return
        if world.now >= until:
            raise Wrong(f"it does not come to rest: {scene.misses()}")
        world.run(world.now + STEP_SECONDS)
