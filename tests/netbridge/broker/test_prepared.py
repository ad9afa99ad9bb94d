"""The network of a broker that is about to be live takes part in its vhost.  Programs that wait for
it shake hands by then, and nobody is heard before it serves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

import shmbroker
from shmbroker import ConnectionClosed, vhost
from shmbroker.ipc.instance.creation import create
from shmbroker.ipc.instance.log import Log
from shmbroker.netbridge.broker.group import OfMembers
from shmbroker.netbridge.broker.network import Network
from shmbroker.netbridge.broker.owner import Owner
from shmbroker.netbridge.carrier import link as links
from shmbroker.netbridge.cluster.programs import Other
from shmbroker.netbridge.clustered.owner import ClusterOwner
from shmbroker.netbridge.config.config import load
from shmbroker.netbridge.config.logins import credentials
from shmbroker.netbridge.link.ending import State
from shmbroker.netbridge.remote.topology import Node
from shmbroker.perf.machine.port import free_port
from tests.cli.command import eventually
from tests.conftest import vhost_for_a_while
from tests.netbridge.broker.conftest import PASSWORD, PATIENT, TIMES
from tests.support.link import PATIENCE

NODE = bytes(range(16))
ARENA_BYTES = 16 << 20
OTHER = Other(Node(bytes(16), 1, "other", "tcp://127.0.0.1:1"), is_there=True)
TOLD: dict[str, object] = {"acceptors.site.update-cluster-clients": True}
FOR_EVER = "startup-max-reconnect-attempts=-1"


@contextmanager
def owned(
    folder: Path, of: type[ClusterOwner] | None = None, **more: object
) -> Iterator[tuple[Owner, str, str]]:
    """It listens at the uri once it is told to, and is of the vhost."""
    uri = f"tcp://127.0.0.1:{free_port()}"
    with vhost_for_a_while() as name:
        create(folder, {
            "instance.name": "first", "instance.vhost": name, "ha.role": "live",
            "acceptors.site.uri": uri, "acceptors.site.roles": ["client"],
            **{f"link-defaults.{key}": each for key, each in TIMES.items()},
            "credentials.site.password": PASSWORD, "credentials.site.role": "client",
            **more,
        })  # fmt: skip
        vhost.create(name, arena_bytes=ARENA_BYTES)
        config, network = load(folder)
        known, _ = credentials(network)
        log = Log(config.log, config.name)
        owner = (
            Owner(config, network, known, log, OfMembers()) if of is None
            else of(config, network, known, log)
        )  # fmt: skip
        try:
            yield owner, f"{uri}?{PATIENT}", name
        finally:
            owner.end(at_once=True)


def test_who_comes_before_a_broker_serves_finds_nobody(tmp_path: Path) -> None:
    with owned(tmp_path / "first") as (owner, uri, name):
        owner.prepare(NODE, 2)
        owner.settles()
        assert participants(name) == ["network of first"]
        with pytest.raises(ConnectionClosed):
            shmbroker.connect(uri, user="site", password=PASSWORD)
        owner.begin(NODE, 2)
        owner.settles()
        assert participants(name) == ["network of first"], "the same"
        shmbroker.connect(uri, user="site", password=PASSWORD).close()


def test_a_program_that_waits_shakes_hands_before_a_broker_serves_and_is_heard_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "WAITS_SECONDS", PATIENCE)
    with owned(tmp_path / "first") as (owner, uri, _), ThreadPoolExecutor(1) as beside:
        owner.waits(NODE, 1)
        owner.settles()
        network = owner._network
        assert network is not None
        ends = network.listeners["site"]._ids
        url = f"failover:({uri})?{FOR_EVER}"
        program = beside.submit(shmbroker.connect, url, user="site", password=PASSWORD)
        eventually(lambda: [each.machine.state for each in list(ends)] == [State.PEER_PASSIVE])
        owner.prepare(NODE, 2)
        owner.settles()
        assert network._sessions is not None
        held = network._sessions._held
        eventually(lambda: any(list(held.values())))  # what it says first
        assert [each.machine.state for each in list(ends)] == [State.UP]
        owner.holds(False)  # as if others of its cluster had held programs back until now
        assert network._sessions._is_held
        assert not network._sessions.sessions
        owner.begin(NODE, 2)
        program.result(PATIENCE).close()


def in_cluster() -> dict[str, object]:
    """Of a broker that meets nobody there."""
    uri = f"tcp://127.0.0.1:{free_port()}"
    return {
        "cluster.town.connector": "first", "cluster.town.static-connectors": ["first"],
        "cluster.town.user": "town", "cluster.town.password": PASSWORD,
        "connectors.first.uri": uri, "acceptors.town.uri": uri, "acceptors.town.roles": ["cluster"],
    }  # fmt: skip


def known(uri: str) -> int:
    """Nodes that programs are told of."""
    with shmbroker.connect(uri, user="site", password=PASSWORD) as program:
        program.declare_queue("orders")  # it has heard by then what is told
        return len(program.topology())


def test_programs_that_were_held_back_are_heard_by_a_broker_that_joins_its_cluster_again(
    tmp_path: Path,
) -> None:
    """It has given back its role while another node left for it, whose programs waited."""
    with owned(tmp_path / "first", ClusterOwner, **in_cluster()) as (owner, uri, _):
        owner.begin(NODE, 2)
        owner.settles()
        owner.holds(True)
        owner.end(at_once=True)
        owner.begin(NODE, 4)
        owner.settles()
        shmbroker.connect(uri, user="site", password=PASSWORD).close()


def test_programs_are_not_told_of_nodes_that_were_known_before_it_joins_again(
    tmp_path: Path,
) -> None:
    """Whoever joins a cluster anew and meets nobody says nothing."""
    with owned(tmp_path / "first", ClusterOwner, **in_cluster(), **TOLD) as (owner, uri, _):
        owner.begin(NODE, 2)
        owner.others_are((OTHER,))
        owner.settles()
        assert known(uri) == 2
        owner.end(at_once=True)
        owner.begin(NODE, 4)
        owner.settles()
        assert known(uri) == 1


def test_what_members_that_live_on_have_said_counts_when_it_serves_again(tmp_path: Path) -> None:
    """As a replicated one does that has failed, and is live again later."""
    with owned(tmp_path / "first", **TOLD) as (owner, uri, _):
        owner.others_are((OTHER,))
        owner.holds(True)
        owner.begin(NODE, 2)
        owner.settles()
        owner.end(at_once=True)
        owner.begin(NODE, 4)
        owner.settles()
        network = owner._network
        assert network is not None
        assert network._sessions is not None
        assert network._sessions._is_held
        owner.holds(False)
        assert known(uri) == 2


def test_programs_that_are_to_wait_from_a_reload_on_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said from another thread, as the network that was reloaded is told how it is."""
    with owned(tmp_path / "first") as (owner, _, _):
        owner.begin(NODE, 2)
        owner.settles()
        beside = Thread(target=owner.holds, args=(True,))
        hold = Network.hold

        def late(network: Network, is_held: bool) -> None:
            if threading.current_thread() is not beside:
                beside.start()
                beside.join(0.2)  # until it has said so, or waits
            hold(network, is_held)

        monkeypatch.setattr(Network, "hold", late)
        owner.reload(owner._wanted, owner._credentials)
        owner.settles()
        beside.join(PATIENCE)
        network = owner._network
        assert network is not None
        assert network._sessions is not None
        assert network._sessions._is_held
        assert owner._is_held


def participants(name: str) -> list[str]:
    with shmbroker.connect(f"shm://{name}", name="looks") as broker:
        return [each.name for each in broker.participants() if each.name != "looks"]
