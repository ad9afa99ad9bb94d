"""One run of a seed: nodes are used while they are struck; then each message is counted."""

from __future__ import annotations

from shmbroker.netbridge.simulation.cluster.cast import cast_of
from shmbroker.netbridge.simulation.cluster.fault import drawn
from shmbroker.netbridge.simulation.cluster.scene import Scene
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.rest import comes_to_rest
from shmbroker.netbridge.simulation.run import Outcome, outcome
from shmbroker.netbridge.simulation.world import World

BUSY_SECONDS = 4.0


def faults_of(seed: int) -> list[Fault]:
    return drawn(seed, BUSY_SECONDS, cast_of(seed))


def simulate(
    seed: int,
    faults: list[Fault] | None = None,
    *,
    traced: bool = False,
    scenes: list[Scene] | None = None,
) -> Outcome:
    scene = Scene(World(seed, is_traced=traced), cast_of(seed))
    return outcome(seed, faults_of(seed) if faults is None else faults, scene, _run, scenes)


def _run(scene: Scene, faults: list[Fault]) -> None:
    comes_to_rest(scene, faults, BUSY_SECONDS)
    scene.watch.counts()
