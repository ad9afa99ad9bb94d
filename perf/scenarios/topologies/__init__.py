"""All topologies by name, in the order in which they are run and reported."""

from shmbroker.perf.harness.topology import Topology
from shmbroker.perf.scenarios.topologies.one_to_one import ONE_TO_ONE
from shmbroker.perf.scenarios.topologies.one_to_three_broadcast import ONE_TO_THREE_BROADCAST
from shmbroker.perf.scenarios.topologies.one_to_three_competing import ONE_TO_THREE_COMPETING
from shmbroker.perf.scenarios.topologies.ping_pong import PING_PONG
from shmbroker.perf.scenarios.topologies.three_to_one import THREE_TO_ONE

TOPOLOGIES: dict[str, Topology] = {
    topology.name: topology
    for topology in (
        PING_PONG,
        ONE_TO_ONE,
        THREE_TO_ONE,
        ONE_TO_THREE_COMPETING,
        ONE_TO_THREE_BROADCAST,
    )
}
