"""What other nodes have for one that has left goes to its successor, each once and in order."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

import shmbroker
from shmbroker import Queue
from shmbroker.ipc.queue.moving import pass_over
from shmbroker.ipc.sink.target import target_of
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.netbridge.clustered.test_scale_down import (
    HOPS,
    TO_EAST,
    at,
    bodies,
    numbers,
    stop,
    taken,
)


def started(cluster: Cluster) -> str:
    """Three nodes, and `west` is to leave: the name of a queue towards it."""
    for name, more in (("east", HOPS), ("north", HOPS), ("west", TO_EAST)):
        cluster.add(name, **more).start().becomes("live")
    names = ("east", "north", "west")
    for name in names:
        cluster.sees(name, *(each for each in names if each != name))
        with at(cluster, name) as broker:
            broker.declare_queue("orders", durable=True, slots=1 << 12, max_deliveries=None)
    return f"$sf.town.{cluster.told('west')['node']}"


def sends(cluster: Cluster, name: str, way: str, messages: list[bytes]) -> None:
    """For `orders` at the node of this way, as what is redistributed is sent."""
    with at(cluster, name) as broker:
        made = broker.declare_queue("to send", slots=1 << 12)  # of which no journal is needed
        for body in messages:
            made.publish(body, confirm="shm")
        passed = pass_over(
            made, broker.queue(way), None, None, 0, copies=False, towards=target_of("orders")
        )  # fmt: skip
        assert passed.messages == len(messages)
        broker.delete_queue("to send", force=True)


def until(cluster: Cluster, holds: Callable[[], bool]) -> None:
    late = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < late, cluster.story()
        time.sleep(0.05)  # nothing tells


def waits(cluster: Cluster, name: str, queue: str) -> int:
    """How many are in a queue towards a node."""
    with shmbroker.connect(f"shm://{cluster.vhosts[name]}", observe=True) as broker:
        return len(broker.queue(queue))


def test_what_waits_for_it_goes_to_its_successor(cluster: Cluster) -> None:
    way = started(cluster)
    node = cluster.told("west")["node"]
    with at(cluster, "west") as west:
        west.queue("orders").publish(b"west")
    cluster["north"].kill()
    sends(cluster, "north", way, numbers(0, 300))
    assert stop(cluster)[0] == 0, cluster.story()
    cluster["east"].kill()  # it has kept that it is the successor
    sends(cluster, "east", way, [b"own"])
    for name in ("north", "east"):
        cluster[name].start().becomes("live")
    with at(cluster, "east") as east:
        orders = east.queue("orders")
        until(cluster, lambda: len(bodies(orders)) >= 302)  # what is on disk is shown
        found = bodies(orders)
    assert found[0] == b"west"
    assert [each for each in found if each not in (b"west", b"own")] == numbers(0, 300)
    assert found.count(b"own") == 1
    until(cluster, lambda: waits(cluster, "north", way) + waits(cluster, "east", way) == 0)
    assert len(cluster.bodies("east")) == len(found)

    cluster["west"].start().becomes("live")
    cluster.sees("west", "east", "north")
    cluster.sees("north", "east", "west")
    assert cluster.told("west")["node"] == node
    with at(cluster, "west") as west:
        back = west.declare_queue("orders", durable=True)
        sends(cluster, "north", way, [b"back"])
        assert taken(back, 1) == [b"back"]
    assert len(cluster.bodies("east")) == len(found)


def test_its_successor_is_forgotten_and_what_waits_is_routed_anew(cluster: Cluster) -> None:
    way = started(cluster)
    assert (stop(cluster)[0], cluster["west"].ends()) == (0, 0), cluster.story()
    cluster["east"].kill()
    cluster.sees("north", missing=("east",))
    sends(cluster, "north", way, numbers(0, 10))
    assert cluster.order("north", verb="forget", node="east") == ""
    until(cluster, lambda: waits(cluster, "north", way) == 0)
    with at(cluster, "north") as north:
        found = list(north.queue("orders").browse())
    assert [bytes(each.body) for each in found] == numbers(0, 10)
    assert all(each.redelivered for each in found)


def stands_still(cluster: Cluster, name: str, small: Queue, found: list[bytes]) -> bool:
    """Stopped while more than `small` had room for was on its way; False: go on and try again."""
    until(cluster, lambda: len(small) == small.slots)
    process = cluster[name].process
    assert process is not None
    process.stop()
    found += taken(small, 20)
    late = time.monotonic() + 2.0
    while len(small) < small.slots and time.monotonic() < late:
        time.sleep(0.05)  # nothing tells
    if len(small) == small.slots:
        return True
    os.kill(process.pid, signal.SIGCONT)
    return False


def test_what_is_in_doubt_is_there_once(cluster: Cluster) -> None:
    way = started(cluster)
    with at(cluster, "west") as west:
        west.delete_queue("orders", force=True)
        small = west.declare_queue("orders", durable=True, slots=64, max_deliveries=None)
        sends(cluster, "north", way, numbers(0, 500))
        until(cluster, lambda: len(small) == 64)
        first: list[bytes] = []
        while not stands_still(cluster, "north", small, first):
            assert len(first) < 400, "what it sends comes in single messages"
    cluster["north"].kill()
    assert first == numbers(0, len(first))
    assert stop(cluster)[0] == 0, cluster.story()
    cluster["north"].start().becomes("live")
    with at(cluster, "east") as east:
        orders = east.queue("orders")
        until(cluster, lambda: len(bodies(orders)) >= 500 - len(first))
        until(cluster, lambda: waits(cluster, "north", way) == 0)
        assert bodies(orders) == numbers(len(first), 500)


@pytest.mark.parametrize("victim", ["east", "north"])
def test_each_is_there_once_whoever_is_killed_meanwhile(cluster: Cluster, victim: str) -> None:
    way = started(cluster)
    with at(cluster, "east") as east:
        east.delete_queue("orders", force=True)
        east.declare_queue("orders", durable=True, slots=64, max_deliveries=None)
    cluster["north"].kill()
    sends(cluster, "north", way, numbers(0, 500))
    assert stop(cluster)[0] == 0, cluster.story()
    cluster["north"].start().becomes("live")
    with at(cluster, "east") as east:
        until(cluster, lambda: len(east.queue("orders")) == 64)
        found = taken(east.queue("orders"), 40)
        cluster[victim].kill()
        found += taken(east.queue("orders"), 20)
    cluster[victim].start().becomes("live")
    with at(cluster, "east") as east:
        found += taken(east.queue("orders"), 500 - len(found))
        assert found == numbers(0, 500)
        until(cluster, lambda: waits(cluster, "north", way) == 0)
        assert not bodies(east.queue("orders"))


def test_a_node_that_hears_of_it_late_sends_nothing_twice(cluster: Cluster) -> None:
    """It was down while the other one left, and came back."""
    way = started(cluster)
    cluster["north"].kill()
    sends(cluster, "north", way, numbers(0, 100))
    assert stop(cluster)[0] == 0, cluster.story()
    cluster["west"].start().becomes("live")
    with at(cluster, "west") as west, at(cluster, "east") as east:
        here, there = west.declare_queue("orders", durable=True), east.queue("orders")
        cluster["north"].start().becomes("live")
        until(cluster, lambda: len(here) + len(there) >= 100)
        cluster.sees("north", "east", "west")
        sends(cluster, "north", way, [b"100"])
        until(cluster, lambda: len(bodies(here)) + len(bodies(there)) >= 101)
        assert bodies(there) + bodies(here) == numbers(0, 101)


def test_what_is_sent_to_one_that_is_back_stays_for_it(cluster: Cluster) -> None:
    """Its successor is started anew and does not reach it: it may have what was sent last."""
    way = started(cluster)
    assert (stop(cluster)[0], cluster["west"].ends()) == (0, 0), cluster.story()
    cluster["west"].start().becomes("live")
    cluster.sees("east", "west", "north")
    with at(cluster, "west") as west:
        here, count = west.declare_queue("orders", durable=True, max_deliveries=None), 0
        while not bodies(here):  # until then its successor has not heard that it is back
            sends(cluster, "east", way, numbers(count, count + 1))
            until(cluster, lambda: waits(cluster, "east", way) == 0)
            count += 1
        process = cluster["west"].process
        assert process is not None
        process.stop()
        try:
            sends(cluster, "east", way, numbers(count, count + 3))
            cluster["east"].kill()
            cluster["east"].start().becomes("live")
            cluster.until("east", lambda told: any(
                (each["name"], each["state"]) == ("north", "up") for each in told["nodes"]
            ))  # fmt: skip
            with at(cluster, "east") as east:
                assert len(bodies(east.queue("orders"))) == count - 1
        finally:
            process.go_on()
        until(cluster, lambda: waits(cluster, "east", way) == 0)
        assert bodies(here) == numbers(count - 1, count + 3)
    with at(cluster, "east") as east:
        assert bodies(east.queue("orders")) == numbers(0, count - 1)
