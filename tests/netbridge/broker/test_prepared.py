"""The network of a broker that is about to be live takes part in its vhost.  Programs that wait for
it shake hands by then, and nobody is heard before it serves."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import shmbroker
from shmbroker import ConnectionClosed, vhost
from shmbroker.ipc.instance.creation import create
from shmbroker.ipc.instance.log import Log
from shmbroker.netbridge.broker.group import OfMembers
from shmbroker.netbridge.broker.owner import Owner
from shmbroker.netbridge.carrier import link as links
from shmbroker.netbridge.cluster.programs import Other
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
FOR_EVER = "startup-max-reconnect-attempts=-1"


@contextmanager
def owned(folder: Path, **more: object) -> Iterator[tuple[Owner, str, str]]:
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
        owner = Owner(config, network, known, Log(config.log, config.name), OfMembers())
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


def test_programs_that_were_held_back_are_heard_by_a_broker_that_serves_again(
    tmp_path: Path,
) -> None:
    """It has given back its role while another node left for it, whose programs waited."""
    with owned(tmp_path / "first") as (owner, uri, _):
        owner.begin(NODE, 2)
        owner.settles()
        owner.holds(True)
        owner.end(at_once=True)
        owner.begin(NODE, 4)
        owner.settles()
        shmbroker.connect(uri, user="site", password=PASSWORD).close()


def test_programs_are_not_told_of_nodes_that_were_known_before_it_serves_again(
    tmp_path: Path,
) -> None:
    other = Other(Node(bytes(16), 1, "other", "tcp://127.0.0.1:1"), is_there=True)
    with owned(tmp_path / "first", **{"acceptors.site.update-cluster-clients": True}) as (
        owner, uri, _
    ):  # fmt: skip
        for epoch, others in ((2, (other,)), (4, ())):
            owner.begin(NODE, epoch)
            if others:  # whoever joins a cluster anew and meets nobody says nothing
                owner.others_are(others)
            owner.settles()
            with shmbroker.connect(uri, user="site", password=PASSWORD) as program:
                program.declare_queue("orders")  # it has heard by then what is told
                assert len(program.topology()) == 1 + len(others)
            owner.end(at_once=True)


def participants(name: str) -> list[str]:
    with shmbroker.connect(f"shm://{name}", name="looks") as broker:
        return [each.name for each in broker.participants() if each.name != "looks"]
