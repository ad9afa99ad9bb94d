"""Members, a witness and programs on hosts of their own, and networks that are cut: rows of
SEMANTICS 3.3 and 3.6.

Hosts are network namespaces, so this is for root.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from shmbroker import Broker, Empty, Unconfirmed
from shmbroker.netbridge.member.codec import Here
from shmbroker.netbridge.replicated.instance import ReplicatedInstance
from tests.cli.command import Shell
from tests.netbridge.replicated.conftest import NAMES, PATIENCE, Made, Node, nodes
from tests.netbridge.replicated.test_losing import MANY, filled
from tests.netbridge.replicated.test_witness import guarded
from tests.support.hosts import Rack, has_hosts, rack
from tests.support.witness import Place

pytestmark = pytest.mark.skipif(not has_hosts(), reason="network namespaces are for root")
LINKS: dict[str, object] = {"link-defaults.heartbeat-interval": "500ms"}


def lives_on(host: str, enter: Callable[[], None]) -> None:
    """In its process: another host, and nobody there can see it die."""
    enter()

    def here(self: ReplicatedInstance, group: str) -> Here:
        me = self._process
        return Here(group, me.pid, me.started, host, me.namespace)

    ReplicatedInstance._here = here  # type: ignore[method-assign]


@dataclass
class Stage:
    rack: Rack
    made: Made
    witness: Place

    def begin(self, node: Node) -> Node:
        for name in NAMES:
            node[name].before = partial(lives_on, name, self.rack[name].enter)
        return node

    def guarded(self, *, fails_back: bool = False) -> Node:
        self.witness.begin(self.rack["witness"].enter)
        settings = {**LINKS, "ha.allow-failback": fails_back}
        more = {"check_for_live_server": True, "lease": "1.5s"}
        return self.begin(guarded(self.made, self.witness, settings=settings, **more)).up()

    def unguarded(self, on_partition: str) -> Node:
        settings = {"ha.replication.on-partition": on_partition, **LINKS}
        return self.begin(self.made(settings)).up()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with rack(*NAMES, "witness", "programs") as hosts:
        addresses = {name: hosts[name].address for name in NAMES}
        witness = Place(tmp_path / "witness", address=hosts["witness"].address)
        with nodes(tmp_path, addresses) as made:
            try:
                yield Stage(hosts, made, witness)
            finally:
                witness.kill()


def is_confirmed(broker: Broker, body: bytes, seconds: float) -> bool:
    try:
        broker.queue("orders").publish(body, timeout=seconds)
    except Unconfirmed:
        return False
    return True


def test_replication_link_lost_both_alive(stage: Stage) -> None:
    """The live asks the witness, and goes on alone."""
    two = stage.guarded()
    filled(two)
    stage.rack.cut("a", "b")
    two.says("a", "alone")
    assert is_confirmed(two.connected("a"), b"alone", PATIENCE)
    assert two["a"].status.epoch == 2
    assert two["b"].status.state == "passive"
    stage.rack.heal()
    two.says("b", "in sync")
    assert "took over" not in two["b"].events()
    two["a"].kill()
    two["b"].becomes("live")
    assert two.bodies("b") == [*MANY, b"alone"]


def test_a_live_that_reaches_nobody_confirms_nothing(stage: Stage) -> None:
    two = stage.guarded()
    filled(two)
    stage.rack.isolate("a")
    two["b"].becomes("live")
    cut_off = two.connected("a")
    assert not is_confirmed(cut_off, b"of nobody", 0.5)
    with pytest.raises(Empty):
        cut_off.queue("orders").get(timeout=0.2)
    assert is_confirmed(two.connected("b"), b"of b", PATIENCE)
    stage.rack.heal()
    two.says("a", "in sync")
    assert "fenced" in two["a"].events()
    assert two["b"].status.state == "live"
    assert two.bodies("b") == [*MANY, b"of b"]


def test_a_backup_that_reaches_nobody_does_not_activate(stage: Stage) -> None:
    two = stage.guarded()
    filled(two)
    stage.rack.isolate("b")
    two.says("a", "alone")
    assert is_confirmed(two.connected("a"), b"alone", PATIENCE)
    stage.rack.heal()
    two.says("b", "in sync")
    assert "took over" not in two["b"].events()


def test_a_lost_witness_changes_nothing(stage: Stage) -> None:
    two = stage.guarded()
    orders = filled(two)
    stage.rack.isolate("witness")
    time.sleep(2)  # longer than the lease
    assert is_confirmed(two.connected("a"), b"by both", PATIENCE)
    for body in MANY:
        assert orders.receive(timeout=PATIENCE) == body
    assert two["a"].status.epoch == 1
    stage.rack.heal()
    two.says("a", "in sync")


def test_stop_confirming_when_the_network_is_cut(stage: Stage) -> None:
    two = stage.unguarded("stop-confirming")
    filled(two)
    stage.rack.cut("a", "b")
    two.says("a", "suspended")
    two.says("b", "held")
    assert not is_confirmed(two.connected("a"), b"of nobody", 0.5)
    stage.rack.heal()
    two.says("a", "in sync")
    two.says("b", "in sync")
    assert two["a"].status.epoch == 1
    assert is_confirmed(two.connected("a"), b"again", PATIENCE)


def test_continue_alone_when_the_network_is_cut(stage: Stage) -> None:
    """Both serve, and one of them has its tail set aside when they meet."""
    two = stage.unguarded("continue-alone")
    filled(two)
    stage.rack.cut("a", "b")
    two["b"].becomes("live")
    two.says("a", "alone")
    assert is_confirmed(two.connected("a"), b"of a", PATIENCE)
    assert is_confirmed(two.connected("b"), b"of b", PATIENCE)
    stage.rack.heal()
    two.says("a", "in sync")
    two.says("b", "in sync")
    stays, goes = ("a", "b") if two["a"].status.state == "live" else ("b", "a")
    assert two.bodies(stays) == [*MANY, b"of " + stays.encode()]
    assert (two[goes].folder / "data" / "oldreplica.1").is_dir()
    assert "conflict" in (*two["a"].events(), *two["b"].events())


GATEWAY = "10.99.1.77"
CHECKED = {"ha.replication.network-check": [f"{GATEWAY}:7"]}
"""Nobody listens there: the host refuses, and so is there."""


def with_a_gateway(stage: Stage) -> Node:
    """The host of the programs, by another name."""
    gateway = stage.rack["programs"]
    gateway.run("ip", "address", "add", f"{GATEWAY}/24", "dev", "wire")
    settings = {"ha.replication.on-partition": "continue-alone", **LINKS, **CHECKED}
    return stage.begin(stage.made(settings)).up()


def loses_its_gateway(stage: Stage, name: str) -> None:
    stage.rack[name].hears_nothing_of([GATEWAY])


def test_a_live_that_reaches_no_peer_is_suspended(stage: Stage) -> None:
    two = with_a_gateway(stage)
    orders = filled(two)
    loses_its_gateway(stage, "a")
    two.says("a", f"suspended: it reaches none of {GATEWAY}:7")
    assert not is_confirmed(two.connected("a"), b"of nobody", 0.5)
    with pytest.raises(Empty):
        orders.get(timeout=0.2)
    two.says("b", "in sync")
    stage.rack["a"].heal()
    two.says("a", "in sync")
    assert is_confirmed(two.connected("a"), b"again", PATIENCE)


@pytest.mark.parametrize(("goes", "stays"), [("a", "b"), ("b", "a")])
def test_whose_cable_is_pulled_does_not_go_on_alone(stage: Stage, goes: str, stays: str) -> None:
    """It loses the other one before it has missed its gateway often enough to be isolated."""
    two = with_a_gateway(stage)
    filled(two)
    stage.rack.isolate(goes)
    two.says(stays, "alone")
    assert is_confirmed(two.connected(stays), b"of one", PATIENCE)
    two.logs(goes, "isolated")
    stage.rack.heal()
    for name in NAMES:
        two.says(name, "in sync")
    assert two[stays].status.state == "live"
    assert two.bodies(stays) == [*MANY, b"of one"]
    assert two[stays].status.epoch == 2
    assert "conflict" not in (*two["a"].events(), *two["b"].events())
    assert not list((two[goes].folder / "data").glob("oldreplica.*"))


def test_a_backup_that_reaches_no_peer_never_activates(stage: Stage) -> None:
    two = with_a_gateway(stage)
    filled(two)
    loses_its_gateway(stage, "b")
    two.logs("b", "isolated")
    two["a"].kill()
    two.says("b", f"held: it reaches none of {GATEWAY}:7")
    stage.rack["b"].heal()
    two["b"].becomes("live")
    assert two.bodies("b") == MANY


def test_peers_are_read_again_by_a_reload(stage: Stage) -> None:
    two = with_a_gateway(stage)
    loses_its_gateway(stage, "a")
    two.says("a", "suspended")
    file = two["a"].folder / "shmbroker.toml"
    file.write_text(file.read_text().replace(f'"{GATEWAY}:7"', ""))
    assert Shell("no-vhost")("config", "reload", str(two["a"].folder)).code == 0
    two.says("a", "in sync")
