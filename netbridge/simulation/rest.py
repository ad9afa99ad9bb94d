"""Programs use what is struck, all is healed, and it comes to rest: then nothing is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.world import World, Wrong

HEALED_SECONDS = 30.0
STEP_SECONDS = 0.25
REST_SECONDS = 0.5


class Resting(Protocol):
    def rest(self) -> None:
        """From now on programs do little."""


class Scene(Protocol):
    @property
    def world(self) -> World: ...
    @property
    def programs(self) -> Resting: ...
    def begin(self, busy_until: float) -> None: ...
    def suffers(self, faults: list[Fault], busy_until: float) -> float: ...
    def misses(self) -> str: ...


def comes_to_rest(
    scene: Scene, faults: list[Fault], busy: float, looks: Callable[[], None] = lambda: None
) -> None:
    """`looks`: at what must hold meanwhile, too."""
    world = scene.world
    scene.begin(busy)
    until = scene.suffers(faults, busy) + HEALED_SECONDS
    scene.programs.rest()
    world.run(world.now + STEP_SECONDS)  # a frame that was dropped last is missed at the next beat
    while missing := scene.misses():
        if world.now >= until:
            raise Wrong(f"it does not come to rest: {missing}")
        looks()
        world.run(world.now + STEP_SECONDS)
        scene.programs.rest()
    world.run(world.now + REST_SECONDS)
    if missing := scene.misses():
        raise Wrong(f"what had come to rest does not last: {missing}")
    looks()
