"""What is published while nothing happens goes where it has to, and no link ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from shmbroker.netbridge.simulation.peers.watch import Watch
from shmbroker.netbridge.simulation.world import World, Wrong

SETTLED_SECONDS: Final = 1.0
PROBED_SECONDS: Final = 5.0
STEP_SECONDS: Final = 0.25
Probes = TypeVar("Probes")


class Scene(Protocol):
    @property
    def world(self) -> World: ...
    @property
    def watch(self) -> Watch: ...
    def misses(self) -> str: ...


def probed(scene: Scene, publish: Callable[[], Probes]) -> Probes:
    world = scene.world
    world.run(world.now + SETTLED_SECONDS)
    scene.watch.is_calm = True
    probes = publish()
    until = world.now + PROBED_SECONDS
    world.run(world.now + STEP_SECONDS)
    while missing := scene.misses():
        if world.now >= until:
            raise Wrong(f"what was published at rest is stuck: {missing}")
        world.run(world.now + STEP_SECONDS)
    scene.watch.looks()
    return probes
