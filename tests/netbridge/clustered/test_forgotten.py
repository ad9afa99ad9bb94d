"""What was on its way to a node that is forgotten is routed anew; each message says that it may
have come before."""

from __future__ import annotations

import pytest

from shmbroker.ipc.exchange.own_binding import own_bindings
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.ipc.queue.moving import pass_over
from shmbroker.ipc.sink.target import target_of, target_of_exchange
from shmbroker.netbridge.clustered.setup import WAYS
from tests.netbridge.clustered.conftest import Cluster
from tests.netbridge.clustered.test_redirect import until, waits
from tests.netbridge.clustered.test_scale_down import HOPS, at, bodies, numbers, taken

NAMES = ("east", "north", "west")
UNDELIVERABLE = "town.undeliverable"


def started(cluster: Cluster, mode: str = "off") -> str:
    """Three nodes, and `west` is killed: the name of a queue towards it."""
    for name in NAMES:
        more = HOPS | {"cluster__town__message_load_balancing": mode}
        cluster.add(name, **more).start().becomes("live")
    for name in NAMES:
        cluster.sees(name, *(each for each in NAMES if each != name))
    way = f"$sf.town.{cluster.told('west')['node']}"
    cluster["west"].kill()
    for name, other in (("east", "north"), ("north", "east")):
        cluster.sees(name, other, missing=("west",))
    return way


def sends(cluster: Cluster, way: str, messages: list[bytes], target: int) -> None:
    """As what is redistributed, or published to an exchange, goes into the queue at `east`."""
    with at(cluster, "east") as broker:
        made = broker.declare_queue("to send", slots=1 << 12)  # of which no journal is needed
        for body in messages:
            made.publish(body, confirm="shm")
        passed = pass_over(
            made, broker.queue(way), None, None, 0, copies=False, towards=target
        )  # fmt: skip
        assert passed.messages == len(messages)
        broker.delete_queue("to send", force=True)


def has_a_link(cluster: Cluster, name: str) -> bool:
    """`east`, which ships what is in its queue towards that one."""
    assert cluster.order("east", verb="show") == ""
    nodes = {each["name"]: each for each in cluster.told("east")["nodes"]}
    return name in nodes and nodes[name].get("link") == "up"


def test_it_goes_where_there_is_a_queue_of_its_name(cluster: Cluster) -> None:
    way = started(cluster)
    with at(cluster, "east") as east, at(cluster, "north") as north:
        here = east.declare_queue("orders", durable=True, slots=1 << 12)
        north.declare_queue("orders", durable=True, slots=1 << 12)
        there = north.declare_queue("prices", durable=True)
        east.declare_exchange("news", "topic")  # its queues have copies of their own
        east.bind("news", "orders", "#")
        sends(cluster, way, numbers(0, 300), target_of("orders"))
        sends(cluster, way, numbers(300, 305), target_of("prices"))
        sends(cluster, way, [b"for nobody"], target_of("nowhere"))
        sends(cluster, way, [b"a copy"], target_of_exchange("news"))
        assert waits(cluster, "east", way) == 307
        assert cluster.order("east", verb="forget", node="west") == ""
        until(cluster, lambda: waits(cluster, "east", way) == 0)
        assert bodies(here) == numbers(0, 300)
        until(cluster, lambda: len(bodies(there)) == 5)  # synced, too
        assert all(each.redelivered for each in (*here.browse(), *there.browse()))
        assert bodies(there) == numbers(300, 305)
        assert bodies(east.queue(UNDELIVERABLE)) == [b"for nobody", b"a copy"]
        assert bodies(north.queue("orders")) == []

        cluster["west"].start().becomes("live")
        until(cluster, lambda: has_a_link(cluster, "west"))
        with at(cluster, "west") as west:
            back = west.declare_queue("orders", durable=True)
            sends(cluster, way, [b"back"], target_of("orders"))
            assert taken(back, 1) == [b"back"]
        assert len(bodies(here)) == 300


@pytest.mark.parametrize("others", ["remember", "forget it too"])
def test_each_is_there_once_if_the_broker_is_killed_meanwhile(
    cluster: Cluster, others: str
) -> None:
    way = started(cluster)
    with at(cluster, "east") as east:
        east.declare_queue("orders", durable=True, slots=64, max_deliveries=None)
        sends(cluster, way, numbers(0, 500), target_of("orders"))
        assert cluster.order("east", verb="forget", node="west") == ""
        until(cluster, lambda: len(east.queue("orders")) == 64)
        found = taken(east.queue("orders"), 40)
        cluster["east"].kill()
        found += taken(east.queue("orders"), 20)
    if others != "remember":
        cluster["north"].kill()
        cluster["north"].start().becomes("live")
    cluster["east"].start().becomes("live")
    with at(cluster, "east") as east:
        found += taken(east.queue("orders"), 500 - len(found))
        assert found == numbers(0, 500)
        until(cluster, lambda: waits(cluster, "east", way) == 0)
        assert not bodies(east.queue("orders"))


def test_it_is_kept_before_that_is_said(cluster: Cluster) -> None:
    """Nobody else is there who could tell it after a crash."""
    node = started(cluster).rpartition(".")[2]
    cluster["north"].kill()
    assert cluster.order("east", verb="forget", node="west") == ""
    assert node in read_whole(cluster["east"].folder / "data" / WAYS)


def test_one_that_is_forgotten_twice_goes_by_what_is_there_the_second_time(
    cluster: Cluster,
) -> None:
    way = started(cluster)
    with at(cluster, "east") as east:
        for name in ("orders", "fresh"):
            queue = east.declare_queue(name, durable=True)
            sends(cluster, way, numbers(0, 5), target_of(name))
            assert cluster.order("east", verb="forget", node="west") == ""
            until(cluster, lambda: waits(cluster, "east", way) == 0)
            assert bodies(queue) == numbers(0, 5)
            if name == "orders":
                cluster["west"].start().becomes("live")
                until(cluster, lambda: has_a_link(cluster, "west"))
                cluster["west"].kill()
                cluster.sees("east", "north", missing=("west",))


def test_one_that_nobody_has_met_since_all_were_started_anew(cluster: Cluster) -> None:
    way = started(cluster)
    node = way.rpartition(".")[2]
    with at(cluster, "east") as east:
        east.declare_queue("orders", durable=True)
        sends(cluster, way, numbers(0, 5), target_of("orders"))
    for name in ("east", "north"):
        cluster[name].kill()
    for name in ("east", "north"):
        cluster[name].start().becomes("live")
    cluster.sees("east", "north")
    assert "there is no node" in cluster.order("east", verb="forget", node="west")
    assert cluster.order("east", verb="forget", node=node) == ""
    with at(cluster, "east") as east:
        until(cluster, lambda: waits(cluster, "east", way) == 0)
        assert bodies(east.queue("orders")) == numbers(0, 5)


def test_bindings_follow_the_others_when_all_were_started_anew(cluster: Cluster) -> None:
    node = started(cluster, "strict").rpartition(".")[2]
    assert cluster.order("east", verb="forget", node="west") == ""
    for name in ("east", "north"):
        ways = cluster[name].folder / "data" / WAYS
        until(cluster, lambda ways=ways: node in read_whole(ways))  # type: ignore[misc]
        cluster[name].kill()
    for name in ("east", "north"):
        cluster[name].start().becomes("live")
    with at(cluster, "east") as east, at(cluster, "north") as north:
        for broker in (east, north):
            broker.declare_exchange("news", "topic")
            broker.declare_queue("orders", durable=True)
        north.bind("news", "orders", "eu")
        until(cluster, lambda: own_bindings(east))
        north.unbind("news", "orders", "eu")
        until(cluster, lambda: not own_bindings(east))


def test_a_queue_that_is_full_does_not_keep_the_node_from_coming_back(cluster: Cluster) -> None:
    way = started(cluster)
    with at(cluster, "east") as east:
        small = east.declare_queue("small", durable=True, slots=16)
        east.declare_queue("other", durable=True)
        sends(cluster, way, numbers(0, 40), target_of("small"))
        sends(cluster, way, numbers(40, 45), target_of("other"))
        assert cluster.order("east", verb="forget", node="west") == ""
        until(cluster, lambda: len(small) == 16)
        cluster["west"].start().becomes("live")
        with at(cluster, "west") as west:
            rest = west.declare_queue("small", durable=True)
            others = west.declare_queue("other", durable=True)
            until(cluster, lambda: has_a_link(cluster, "west"))
            until(cluster, lambda: waits(cluster, "east", way) == 0)
            until(cluster, lambda: len(bodies(rest)) + len(bodies(others)) == 29)  # synced, too
            assert bodies(small) == numbers(0, 16)
            assert bodies(rest) == numbers(16, 40)
            assert bodies(others) == numbers(40, 45)
