"""One run of a seed: publish while faults come, heal everything, and see what has arrived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from shmbroker.netbridge.simulation.fault import Fault, drawn
from shmbroker.netbridge.simulation.scene import Scene
from shmbroker.netbridge.simulation.stage import Stage
from shmbroker.netbridge.simulation.world import World, Wrong

BUSY_SECONDS = 2.0
HEALED_SECONDS = 40.0
STEP_SECONDS = 0.25
SETTLED_SECONDS = 6.0
"""Longer than a handshake that a fault has stopped."""
REST_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    faults: tuple[Fault, ...]
    wrong: str
    """Empty: nothing is."""
    published: int
    steps: int
    trace: tuple[str, ...] = ()


AnyStage = TypeVar("AnyStage", bound=Stage)


def outcome(
    seed: int,
    faults: list[Fault],
    stage: AnyStage,
    run: Callable[[AnyStage, list[Fault]], None],
    stages: list[AnyStage] | None = None,
) -> Outcome:
    """`stages`: gets this one, for who looks at it afterwards."""
    if stages is not None:
        stages.append(stage)
    wrong = ""
    try:
        run(stage, faults)
    except Wrong as error:
        wrong = str(error)
    world = stage.world
    return Outcome(
        seed, tuple(faults), wrong, stage.published, world.steps, tuple(world.trace or ())
    )


def faults_of(seed: int) -> list[Fault]:
    return drawn(seed, BUSY_SECONDS)


def simulate(seed: int, faults: list[Fault] | None = None, *, traced: bool = False) -> Outcome:
    if faults is None:
        faults = faults_of(seed)
    return outcome(seed, faults, Scene(World(seed, is_traced=traced)), _run)


def _run(scene: Scene, faults: list[Fault]) -> None:
    world, history = scene.world, scene.history
    scene.begin(BUSY_SECONDS)
    healed = scene.suffers(faults, BUSY_SECONDS)
    until = healed + HEALED_SECONDS
    while not history.is_whole(scene.rings, scene.targets):
        if world.now >= until:
            history.fails("not all arrived: " + history.misses(scene.rings, scene.targets))
        world.run(world.now + STEP_SECONDS)
        history.check(scene.rings, scene.targets)
    began = world.now + SETTLED_SECONDS
    world.run(began + REST_SECONDS)
    history.check(scene.rings, scene.targets)
    if not history.is_whole(scene.rings, scene.targets):
        history.fails("what had arrived is gone")
    late = [reason.value for time, reason in history.endings if time > began]
    if late:
        history.fails(f"a link that nothing happens to has ended: {late}")
