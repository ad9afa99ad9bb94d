"""One run of a seed: a program works while faults come, everything heals, and all is decided."""

from __future__ import annotations

from shmbroker.netbridge.simulation.fault import Fault, drawn
from shmbroker.netbridge.simulation.run import Outcome
from shmbroker.netbridge.simulation.sessions.history import SessionHistory
from shmbroker.netbridge.simulation.sessions.scene import Scene, strike
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
    world = World(seed)
    world.trace = [] if traced else None
    scene = Scene(world)
    wrong = ""
    try:
        _run(scene, faults)
    except Wrong as error:
        wrong = str(error)
    if histories is not None:
        histories.append(scene.history)
    return Outcome(seed, tuple(faults), wrong, scene.program.messages, tuple(world.trace or ()))


def _run(scene: Scene, faults: list[Fault]) -> None:
    world = scene.world
    scene.begin()
    for fault in faults:
        world.at(fault.time, lambda fault=fault: strike(scene, fault))  # type: ignore[misc]
    healed = max([BUSY_SECONDS, *(fault.time + fault.seconds for fault in faults)])
    world.run(healed)
    scene.network.drops.clear()
    scene.program.is_draining = True
    until = healed + HEALED_SECONDS
    while not scene.is_whole:
        if world.now >= until:
            raise Wrong(f"it does not come to rest: {scene.misses()}")
        world.run(world.now + STEP_SECONDS)
        scene.check()
    world.run(world.now + 2 * STEP_SECONDS)
    scene.check()
