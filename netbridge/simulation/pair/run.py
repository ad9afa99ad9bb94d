"""One run of a seed: applications connect while both brokers are struck; then one serves."""

from __future__ import annotations

from shmbroker.netbridge.simulation.fault import Fault, drawn
from shmbroker.netbridge.simulation.pair.scene import Scene
from shmbroker.netbridge.simulation.run import Outcome, outcome
from shmbroker.netbridge.simulation.world import World, Wrong

BUSY_SECONDS = 10.0
HEALED_SECONDS = 20.0
STEP_SECONDS = 0.25
REST_SECONDS = 5.0


def faults_of(seed: int) -> list[Fault]:
    return drawn(seed, BUSY_SECONDS)


def simulate(seed: int, faults: list[Fault] | None = None, *, traced: bool = False) -> Outcome:
    if faults is None:
        faults = faults_of(seed)
    return outcome(seed, faults, Scene(World(seed, is_traced=traced)), _run)


def _run(scene: Scene, faults: list[Fault]) -> None:
    world = scene.world
    scene.begin()
    healed = scene.suffers(faults, BUSY_SECONDS)
    scene.is_calm = True
    _comes_to_rest(scene, healed + HEALED_SECONDS)
    world.run(world.now + REST_SECONDS)
    if not scene.is_whole:
        raise Wrong(f"what had come to rest is not any more: {scene.misses()}")


def _comes_to_rest(scene: Scene, until: float) -> None:
    """Both may have stopped; then a person has to say who goes on, unless the primary wins."""
    world = scene.world
    while not scene.is_whole:
        if world.now >= until or (scene.is_in_conflict and scene.has_primary_win):
            raise Wrong(f"it does not come to rest: {scene.misses()}")
        world.run(world.now + STEP_SECONDS)
        if world.now > until - HEALED_SECONDS / 2:
            scene.reset()
