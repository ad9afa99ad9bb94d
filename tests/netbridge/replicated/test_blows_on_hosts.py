"""A pair, who says which of them is live, and programs on hosts and disks of their own, under
random blows.

Processes are killed and stopped; networks are cut, one way too, slow and lossy; disks are full.

Hosts are network namespaces and disks are mounted, so this is for root.  REPLICATED_BLOWS and
REPLICATED_SEEDS as in test_random.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.netbridge.replicated.conftest import NAMES, Node, nodes
from tests.netbridge.replicated.test_partitions import lives_on
from tests.netbridge.replicated.test_random import SEEDS, STILL_SECONDS, Blows, Programs, bear
from tests.support.forwarder import SlowRack
from tests.support.guards import Database, Guard, Lives, Nobody, Witness, ZooKeeper
from tests.support.hosts import Host, has_hosts
from tests.support.small_disk import empty, fill, small_disk

pytestmark = pytest.mark.skipif(not has_hosts(), reason="network namespaces are for root")
DISK_BYTES = 96 << 20
BLOW_SECONDS = 4.0
"""The longest."""
SLOW_SECONDS = 0.2


class Hard(Blows):
    kinds = (
        "kill live", "kill backup", "kill guard", "hand over", "still live", "still backup",
        "still guard", "isolate live", "isolate backup", "between live", "deafen live",
        "deafen backup", "unguard live", "unguard backup", "lose live", "lose backup",
        "slow live", "slow backup", "fill live", "fill backup",
    )  # fmt: skip

    def __init__(self, node: Node, seed: int, guard: Guard, rack: SlowRack) -> None:
        super().__init__(node, seed)
        self._guard, self._rack = guard, rack
        self._filled: str | None = None

    def carry_out(self, verb: str, name: str, live: str) -> None:
        self._filled = None
        if self.struck[-1].split()[2].startswith("guard"):
            self._strike_guard(verb)
        elif verb in ("kill", "hand", "still"):
            super().carry_out(verb, name, live)
        elif verb == "fill":
            self._fill(name)
        else:
            self._on_the_network(verb, name)
            self._for_a_while()
            self._rack.heal()

    def _for_a_while(self) -> None:
        time.sleep(self.random.random() * BLOW_SECONDS)

    def _strike_guard(self, verb: str) -> None:
        if verb == "kill":
            self._guard.kill()
            self._for_a_while()
            self._guard.begin()
        else:
            self._guard.stop()
            time.sleep(STILL_SECONDS)
            self._guard.go_on()

    def _fill(self, name: str) -> None:
        run = self.node[name]
        fill(run.folder / "data")
        self._for_a_while()
        empty(run.folder / "data")
        self._filled = name

    def begin_again(self) -> None:
        """A member may say on a full disk that it cannot go on, and take a moment to end."""
        run = self.node[self._filled] if self._filled is not None else None
        if run is not None and run.process is not None and run.process.has_ended():
            run.start()
            self._filled = None

    def _on_the_network(self, verb: str, name: str) -> None:
        other = next(each for each in NAMES if each != name)
        strike: dict[str, Callable[[], None]] = {
            "isolate": lambda: self._rack.isolate(name),
            "between": lambda: self._rack.cut(name, other),
            "deafen": lambda: self._rack.cut(other, name, both_ways=False),
            "unguard": lambda: self._rack.cut(name, "guard"),
            "lose": lambda: self._rack[name].loses(20),
        }
        if verb == "slow":
            self._rack.delays[name].seconds = self.random.random() * SLOW_SECONDS
        else:
            strike[verb]()


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
@pytest.mark.parametrize("kind", [Witness, Lives, ZooKeeper, Database, Nobody])
def test_blow_upon_blow_on_hosts(
    opened: ExitStack, tmp_path: Path, kind: Callable[[Host, Path], Guard], seed: int
) -> None:
    rack = SlowRack(opened, (*NAMES, "guard", "programs"), tmp_path)
    for name in NAMES:
        (tmp_path / name).mkdir(mode=0o700)
        opened.enter_context(small_disk(tmp_path / name / "data", DISK_BYTES))
    guard = kind(rack["guard"], tmp_path / "guard")
    opened.callback(guard.close)
    made = opened.enter_context(nodes(tmp_path, {name: rack[name].address for name in NAMES}))
    of_both = {
        "link-defaults.heartbeat-interval": "500ms",
        "ha.allow-failback": True,
        "ha.replication.check-for-live-server": True,
        "ha.replication.on-partition": None,
        **guard.settings,
    }
    two = made(of_both, **{name: guard.settings_of(name, rack[name].address) for name in NAMES})
    for name in NAMES:
        two[name].before = partial(lives_on, name, rack[name].enter)
    two.up()
    with rack["programs"].entered():
        bear(Programs(two.uri()), Hard(two, seed, guard, rack), seed)
