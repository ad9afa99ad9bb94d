"""What programs on other hosts are told of the nodes of a cluster, and how sessions spread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.ipc.instance import reloading
from shmbroker.ipc.instance.config.config import FILE
from shmbroker.perf.machine.port import free_port
from tests.netbridge.clustered.conftest import PASSWORD, PATIENCE, Cluster

NAMES = ("east", "north", "west")
LOGIN = {"user": "site", "password": PASSWORD}
Uris = dict[str, str]


def add(
    cluster: Cluster, name: str, role: str = "live", *, listens: str = "127.0.0.1", **more: object
) -> str:
    """A broker to which programs may connect; where they do."""
    port = free_port()
    given: dict[str, object] = {
        "acceptors__apps__uri": f"tcp://{listens}:{port}",
        "acceptors__apps__roles": ["client"],
        "acceptors__apps__update-cluster-clients": True,
        "credentials__site__password": PASSWORD,
        "credentials__site__role": "client",
        **more,
    }
    cluster.add(name, role, **given)
    return f"tcp://127.0.0.1:{port}"


@pytest.fixture
def three(cluster: Cluster) -> Callable[..., Uris]:
    def begun(**more: object) -> Uris:
        uris = {name: add(cluster, name, **more) for name in NAMES}
        for name in NAMES:
            cluster[name].start()
        for name in NAMES:
            cluster[name].becomes("live")
            cluster.sees(name, *(each for each in NAMES if each != name))
        return uris

    return begun


@contextmanager
def connected(uri: str) -> Iterator[Broker]:
    late = time.monotonic() + PATIENCE
    while True:
        try:
            broker = shmbroker.connect(f"failover:({uri})?prefer-shared-memory=false", **LOGIN)
            break
        except shmbroker.ConnectionClosed:  # live, and not listening yet
            assert time.monotonic() < late
            time.sleep(0.05)
    with broker:
        yield broker


def until(broker: Broker, wanted: set[tuple[str, str]]) -> None:
    """It is told of these: address and standing."""
    late = time.monotonic() + PATIENCE
    while True:
        told = {(each.uri, each.standing) for each in broker.topology()}
        if told == wanted:
            return
        assert time.monotonic() < late, told
        time.sleep(0.02)


def test_a_program_learns_of_all_nodes_and_of_one_that_comes(cluster: Cluster) -> None:
    uris = {name: add(cluster, name, listens="*") for name in NAMES}
    for name in ("east", "north"):
        cluster[name].start().becomes("live")
    with connected(uris["east"]) as broker:
        until(broker, {(uris["east"], "live"), (uris["north"], "live")})
        cluster["west"].start().becomes("live")
        until(broker, {(uri, "live") for uri in uris.values()})


def test_of_a_node_that_is_forgotten_it_is_told_no_more(cluster: Cluster) -> None:
    """Also where no other node is left to say anything."""
    uris = {name: add(cluster, name) for name in ("east", "west")}
    for name in uris:
        cluster[name].start().becomes("live")
    with connected(uris["east"]) as broker:
        until(broker, {(uri, "live") for uri in uris.values()})
        cluster["west"].kill()
        cluster.sees("east", missing=("west",))
        assert cluster.order("east", verb="forget", node="west") == ""
        until(broker, {(uris["east"], "live")})


def test_an_address_that_is_reloaded_is_told_at_all_nodes(cluster: Cluster) -> None:
    """Also that of a backup."""
    east, west = add(cluster, "east"), add(cluster, "west")
    west2 = add(cluster, "west2", "backup", shares="west")
    for name, state in (("east", "live"), ("west", "live"), ("west2", "passive")):
        cluster[name].start().becomes(state)
    with connected(east) as broker:
        until(broker, {(east, "live"), (west, "live"), (west2, "backup")})
        others = {name: f"tcp://127.0.0.2:{free_port()}" for name in ("west", "west2")}
        for name, uri in others.items():
            file = cluster[name].folder / FILE
            file.write_text(f'{file.read_text()}\n[connectors.outside]\nuri = "{uri}"\n')
            answer = reloading.asked(cluster[name].folder, PATIENCE)
            assert answer is not None
            assert answer["applied"] == ["connectors.outside.uri"]
        until(broker, {(east, "live"), (others["west"], "live"), (others["west2"], "backup")})


def test_a_backup_of_another_node_is_told_as_one(cluster: Cluster) -> None:
    east = add(cluster, "east")
    west = add(cluster, "west")
    cluster["east"].start().becomes("live")
    cluster["west"].start().becomes("live")
    successor = add(cluster, "west2", "backup", shares="west")
    cluster["west2"].start().becomes("passive")
    with connected(east) as broker:
        until(broker, {(east, "live"), (west, "live"), (successor, "backup")})
        cluster["west"].kill()
        until(broker, {(east, "live"), (successor, "live")})


def test_sessions_spread_over_nodes_that_the_list_does_not_name(three: Callable[..., Uris]) -> None:
    uris = three()
    with connected(uris["east"]) as broker:
        until(broker, {(uri, "live") for uri in uris.values()})
    found = shmbroker.cluster(f"failover:({uris['east']})?prefer-shared-memory=false", **LOGIN)
    with found.session() as first:
        until(first, {(uri, "live") for uri in uris.values()})
        with found.session() as second, found.session() as third:
            assert {each.uri for each in (first, second, third)} == set(uris.values())
    assert len(found.members) == 3
    given = "use-topology-for-load-balancing=false&prefer-shared-memory=false"
    found = shmbroker.cluster(f"failover:({uris['east']})?{given}", **LOGIN)
    with found.session() as first, found.session() as second:
        assert {first.uri, second.uri} == {uris["east"]}


def test_a_session_goes_on_at_another_node(three: Callable[..., Uris], cluster: Cluster) -> None:
    uris = three()
    with connected(uris["east"]) as broker:
        until(broker, {(uri, "live") for uri in uris.values()})
        orders = broker.declare_queue("orders")
        orders.publish(b"before")
        cluster["east"].kill()
        with pytest.raises(shmbroker.NotFound, match="'orders'"):  # no other node has it
            orders.publish(b"after", timeout=PATIENCE)
        assert broker.uri in (uris["north"], uris["west"])
        broker.declare_queue("orders").publish(b"after", timeout=PATIENCE)


def test_each_acceptor_says_of_whom_its_programs_are_told(cluster: Cluster) -> None:
    acceptors = {
        "quiet": {},
        "few": {"update-cluster-clients": True, "update-cluster-filter": ["n*", "north"]},
        "present": {"update-cluster-clients": True, "update-cluster-clients-on-remove": True},
    }
    ports = {name: f"tcp://127.0.0.1:{free_port()}" for name in acceptors}
    settings: dict[str, object] = {}
    for name, more in acceptors.items():
        given = {"uri": ports[name], "roles": ["client"], **more}
        settings |= {f"acceptors__{name}__{key}": value for key, value in given.items()}
    # what programs are told of this broker is the address of its first acceptor
    uris = {"east": add(cluster, "east", **settings)}
    uris |= {name: add(cluster, name) for name in ("north", "west")}
    for name in NAMES:
        cluster[name].start().becomes("live")
    cluster.sees("east", "north", "west")
    told = {
        name: {(uris[each], "live") for each in each_one}
        for name, each_one in {
            "quiet": ("east",), "few": ("east", "north"), "present": NAMES
        }.items()
    }  # fmt: skip
    with ExitStack() as opened:
        brokers = {
            name: opened.enter_context(connected(uri))
            for name, uri in {"apps": uris["east"], **ports}.items()
        }
        until(brokers["apps"], {(uri, "live") for uri in uris.values()})
        for name, wanted in told.items():
            until(brokers[name], {(ports[name], "live"), *wanted})
        cluster["west"].stop()
        cluster.sees("east", "north", missing=("west",))
        left = told["present"] - {(uris["west"], "live")}
        until(brokers["present"], {(ports["present"], "live"), *left})
        until(brokers["apps"], {(uri, "live") for uri in uris.values()})
