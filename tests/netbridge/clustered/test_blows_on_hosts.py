"""Random blows to a cluster whose brokers are on hosts of their own: each message is consumed once.

`west` is a live with a backup on a shared store, `north` leaves (scale-down) and comes back empty,
`south` joins in the middle.  Brokers are killed, stopped, stand still; networks are cut, one way
too, and lose packets; consumers come and go; everybody publishes, also messages of groups.

Hosts are network namespaces, so this is for root.  More than in `make test`:
CLUSTER_HOST_SEEDS=1-50 CLUSTER_HOST_BLOWS=20.
"""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack

import pytest

from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.whole import read_whole
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.support.blows import HostBlows, seeds_of
from tests.support.counting import Programs
from tests.support.hosts import Rack, has_hosts

pytestmark = pytest.mark.skipif(not has_hosts(), reason="network namespaces are for root")


SEEDS = seeds_of(os.environ.get("CLUSTER_HOST_SEEDS", "1-2"))
BLOWS = int(os.environ.get("CLUSTER_HOST_BLOWS", "6"))
LIVES = ("east", "west", "north", "south")
BROKERS = ("east", "west", "west2", "north", "south")
WITH_GROUPS = ("east", "west")
"""Others may leave, or are not there yet."""
QUEUE = {"durable": True, "redistribution_delay": 0, "max_deliveries": None, "slots": 1 << 14}
QUEUES = {"orders": QUEUE, "grouped": {"groups": True, **QUEUE}}
KINDS = (
    "kill", "kill", "stop", "still", "isolate", "cut", "deafen", "lose", "leave", "takeover",
)  # fmt: skip


def queues_of(name: str) -> tuple[str, ...]:
    return ("orders", "grouped") if name in WITH_GROUPS else ("orders",)


class Blows(HostBlows):
    def __init__(self, cluster: Cluster, rack: Rack, programs: Programs, seed: int) -> None:
        super().__init__(cluster, BROKERS, rack, programs, seed)
        self._cluster = cluster

    def strike(self) -> None:
        self._somebody_comes_or_goes()
        kind, name = self._random.choice(KINDS), self._random.choice(self._running())
        self.struck.append(f"{kind} {name}")
        if kind == "leave":
            self._leave()
        elif kind == "takeover":
            self._take_over()
        elif kind in ("kill", "stop", "still"):
            self.on_process(kind, name)
        else:
            self.on_network(kind, name)

    def join(self) -> None:
        self.start("south")
        self._programs.publish("south", "orders")

    def end(self) -> None:
        """All are up, and somebody consumes at each."""
        self._programs.is_over.set()
        for name in LIVES:
            for queue in queues_of(name):
                self.stays(name, queue)

    def _running(self) -> list[str]:
        return [name for name in BROKERS if self._cluster[name].process is not None]

    def _somebody_comes_or_goes(self) -> None:
        name, queue = self._random.choice(LIVES), self._random.choice(("orders", "grouped"))
        if queue in queues_of(name):
            self.comes_or_goes(name, queue)

    def start(self, name: str) -> None:
        run = self._cluster[name]
        run.start()
        if name.startswith("west"):
            run.runs()  # the next blow may be a stop, and the other one may serve already
            self._cluster.serves("west", "west2")
        else:
            self._cluster[name].becomes("live")

    def _leave(self) -> None:
        """What it has goes to another node; if that is not reached, it stays in its journal."""
        north = self._cluster["north"]
        status.signalled(north.folder, signal.SIGTERM, PATIENCE)
        assert north.process is not None
        told = read_whole(north.folder / status.RUN / "scale-down")
        assert north.process.has_ended(PATIENCE), f"{told}\n{self._cluster.story()}"
        assert north.process.status in (0, 1)
        self.for_a_while()
        self.start("north")

    def _take_over(self) -> None:
        name = self._cluster.serves("west", "west2")
        self._cluster[name].kill()
        self._cluster.serves("west2" if name == "west" else "west")
        self.for_a_while()
        self.start(name)


def begun(cluster: Cluster, rack: Rack) -> None:
    cluster.addresses |= {name: rack[name].address for name in BROKERS}
    for name in BROKERS:
        more: dict[str, object] = {
            "cluster__town__max_hops": 1,
            "grouping__town__type": "local" if name == "east" else "remote",
            "link_defaults__heartbeat_interval": "500ms",
        }
        if name == "north":
            more |= {"ha__policy": "live-only", "ha__scale_down__connectors": ["east"]}
        if name == "west2":
            cluster.add(name, "backup", shares="west", **more)
        else:
            cluster.add(name, **more)
        cluster[name].before = rack[name].enter
    for name in ("east", "west", "north"):
        cluster[name].start().becomes("live")
    cluster["west2"].start().becomes("passive")
    for name in ("east", "west", "north"):
        cluster.sees(name, *({"east", "west", "north"} - {name}))


@pytest.mark.parametrize("seed", SEEDS)
def test_each_is_consumed_once_and_groups_in_order(cluster: Cluster, seed: int) -> None:
    with ExitStack() as opened:
        rack = Rack(opened, BROKERS)
        begun(cluster, rack)
        programs = Programs(cluster.vhosts, QUEUES)
        blows = Blows(cluster, rack, programs, seed)
        opened.callback(blows.close)
        for name in ("east", "west", "north"):
            programs.publish(name, *queues_of(name))
        for number in range(BLOWS):
            if number == BLOWS // 2:
                blows.join()
            blows.strike()
        blows.end()
        programs.drain(PATIENCE)
        blows.close()
        programs.join()
    wrong = programs.verdict()
    assert not wrong, f"seed {seed}: {blows.struck}\n{wrong}\n{cluster.story()}"
    assert len(programs.acknowledged) > BLOWS
