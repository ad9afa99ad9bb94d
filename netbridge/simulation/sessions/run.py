"""One run of a seed: a program works while faults come, everything heals, and all is decided."""

from __future__ import annotations

from shmbroker.netbridge.simulation.fault import Fault, drawn
from shmbroker.netbridge.simulation.run import Outcome, outcome
from shmbroker.netbridge.simulation.sessions.history import SessionHistory
from shmbroker.netbridge.simulation.sessions.scene import Scene
from shmbroker.netbridge.simulation.world import World, Wrong

BUSY_SECONDS = 3.0
HEALED_SECONDS = 60.0
STEP_SECONDS = 0.25


def faults_of(seed: int) -> list[Fault]:
    return drawn(seed, BUSY_SECONDS)


def simulate(
    seed: int,
    faults: list[Fault] | None = None,
    *,
    traced: bool = False,
    histories: list[SessionHistory] | None = None,
) -> Outcome:
    if faults is None:
        faults = faults_of(seed)
    scene = Scene(World(seed, is_traced=traced))
    if histories is not None:
        histories.append(scene.history)
    return outcome(seed, faults, scene, _run)


def _run(scene: Scene, faults: list[Fault]) -> None:
    world = scene.world
    scene.begin()
    healed = scene.suffers(faults, BUSY_SECONDS)
    scene.program.is_draining = True
    until = healed + HEALED_SECONDS
    while not scene.is_whole:
        if world.now >= until:
            raise Wrong(f"it does not come to rest: {scene.misses()}")
        world.run(world.now + STEP_SECONDS)
        scene.check()
    world.run(world.now + 2 * STEP_SECONDS)
    scene.check()
