"""One run of a seed: clients work while members and voters are struck; then all is accounted."""

from __future__ import annotations

from collections.abc import Callable

from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.replication.fault import drawn
from shmbroker.netbridge.simulation.replication.scene import Cast, Scene, cast_of
from shmbroker.netbridge.simulation.run import Outcome, outcome
from shmbroker.netbridge.simulation.world import World, Wrong

BUSY_SECONDS = 4.0
HEALED_SECONDS = 40.0
STEP_SECONDS = 0.25
Casting = Callable[[int], Cast]
"""Who takes part, by the seed."""


def faults_of(seed: int, casting: Casting = cast_of) -> list[Fault]:
    cast = casting(seed)
    return drawn(seed, cast.members, cast.voters, BUSY_SECONDS)


def simulate(
    seed: int,
    faults: list[Fault] | None = None,
    *,
    traced: bool = False,
    scenes: list[Scene] | None = None,
    casting: Casting = cast_of,
) -> Outcome:
    scene = Scene(World(seed, is_traced=traced), casting(seed))
    given = faults_of(seed, casting) if faults is None else faults
    return outcome(seed, given, scene, _run, scenes)


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
