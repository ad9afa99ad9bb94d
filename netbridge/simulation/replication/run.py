"""One run of a seed: clients work while members and voters are struck; then all is accounted."""

from __future__ import annotations

from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.replication.fault import drawn
from shmbroker.netbridge.simulation.replication.scene import Cast, Scene, cast_of
from shmbroker.netbridge.simulation.run import Outcome, outcome
from shmbroker.netbridge.simulation.world import World, Wrong

BUSY_SECONDS = 4.0
HEALED_SECONDS = 40.0
STEP_SECONDS = 0.25


def faults_of(seed: int) -> list[Fault]:
    return faults_for(seed, cast_of(seed))


def simulate(
    seed: int,
    faults: list[Fault] | None = None,
    *,
    traced: bool = False,
    scenes: list[Scene] | None = None,
) -> Outcome:
    return played(seed, cast_of(seed), faults, traced=traced, scenes=scenes)


def faults_for(seed: int, cast: Cast) -> list[Fault]:
    return drawn(seed, cast.members, cast.voters, BUSY_SECONDS)


def played(
    seed: int,
    cast: Cast,
    faults: list[Fault] | None,
    *,
    traced: bool = False,
    scenes: list[Scene] | None = None,
) -> Outcome:
    if faults is None:
        faults = faults_for(seed, cast)
    scene = Scene(World(seed, is_traced=traced), cast)
    if scenes is not None:
        scenes.append(scene)
    return outcome(seed, faults, scene, _run)


def _run(scene: Scene, faults: list[Fault]) -> None:
    world = scene.world
    scene.begin(BUSY_SECONDS)
    healed = scene.suffers(faults, BUSY_SECONDS)
    until = healed + HEALED_SECONDS
    while not scene.is_whole:
        if world.now >= until:
            raise Wrong(f"it does not come to rest: {scene.misses()}")
        world.run(world.now + STEP_SECONDS)
    scene.check()
