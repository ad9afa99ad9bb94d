"""Messages that wait where nobody consumes go to nodes where somebody does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import shmbroker
from shmbroker import Broker, Empty, InvalidArgument, Queue
from shmbroker.ipc.instance import reloading
from shmbroker.ipc.instance.config.config import FILE
from tests.cli.command import Shell
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.support.trace import TRACE

KEPT = {"durable": True, "max_deliveries": None}
GIVES = {"durable": True, "redistribution_delay": 0, "max_deliveries": None}


def started(cluster: Cluster, *names: str, mode: str = "off-with-redistribution") -> None:
    for name in names:
        cluster.add(
            name, cluster__town__max_hops=1, cluster__town__message_load_balancing=mode
        ).start().becomes("live")
    for name in names:
        cluster.sees(name, *(each for each in names if each != name))


@contextmanager
def at(cluster: Cluster, name: str) -> Iterator[Broker]:
    with shmbroker.connect(f"shm://{cluster.vhosts[name]}", name="test") as broker:
        yield broker


def taken(queue: Queue, count: int) -> list[bytes]:
    found, late = [], time.monotonic() + PATIENCE
    while len(found) < count:
        try:
            with queue.get(timeout=max(0.0, late - time.monotonic())) as message:
                found.append(bytes(message.body))
                message.ack()
        except Empty:
            break
    return found


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % each for each in range(first, end)]


@pytest.mark.parametrize("durable", [True, False])
def test_they_go_where_somebody_consumes_in_order(cluster: Cluster, durable: bool) -> None:
    started(cluster, "east", "west")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        here = east.declare_queue("orders", durable=durable, redistribution_delay=0)
        there = west.declare_queue("orders", durable=durable)
        for body in numbers(0, 500):
            here.publish(body, key="k", properties=TRACE, confirm="shm")
        with pytest.raises(Empty):
            there.get(timeout=0)  # it consumes from now on
        with there.get(timeout=PATIENCE) as first:
            assert (bytes(first.body), first.key) == (b"0", "k")
            assert dict(first.properties) == TRACE
            first.ack()
        assert taken(there, 499) == numbers(1, 500)
        assert here.statistics().depth == 0
    shell, folder = Shell(cluster.vhosts["east"]), str(cluster["east"].folder)
    [row] = [
        each
        for each in shell("cluster", "queues", folder, "--json").json["queues"]
        if each["state"] == "here" and each["queue"] == "orders"
    ]
    assert row["redistributed"] == 500
    nodes = shell("cluster", "list", folder, "--json").json["nodes"]
    assert [(each.get("waiting"), each.get("link")) for each in nodes] == [(None, None), (0, "up")]


def test_nothing_goes_without_a_delay_or_a_consumer_elsewhere(cluster: Cluster) -> None:
    started(cluster, "east", "west")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        stays = east.declare_queue("stays", durable=True)
        waits = east.declare_queue("waits", **GIVES)
        goes = east.declare_queue("goes", **GIVES)
        for name in ("stays", "waits", "goes"):
            west.declare_queue(name, durable=True)
        for queue in (stays, waits, goes):
            queue.publish(b"1")
        with pytest.raises(Empty):
            west.queue("stays").get(timeout=0)
        assert taken(west.queue("goes"), 1) == [b"1"]
        assert (stays.statistics().depth, waits.statistics().depth) == (1, 1)


def test_a_local_consumer_prevents_it_and_the_last_one_that_leaves_lets_it_begin(
    cluster: Cluster,
) -> None:
    started(cluster, "east", "west")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        here = east.declare_queue("orders", **GIVES)
        there = west.declare_queue("orders", durable=True)
        with at(cluster, "east") as consumer:
            with pytest.raises(Empty):
                consumer.queue("orders").get(timeout=0)
            cluster.copied("west", lambda queues: ("orders", "east", True) in queues)
            here.publish(b"1")
            with pytest.raises(Empty):
                there.get(timeout=1.0)
        assert taken(there, 1) == [b"1"]


def test_a_pattern_of_the_configuration_frees_what_is_there(cluster: Cluster) -> None:
    """Read again while it runs: the queue was declared before, with nothing of it."""
    started(cluster, "east", "west")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        here = east.declare_queue("orders.eu", durable=True)
        there = west.declare_queue("orders.eu", durable=True)
        here.publish(b"waits")
        with pytest.raises(Empty):
            there.get(timeout=0.5)
        with (cluster["east"].folder / FILE).open("a") as file:
            file.write('\n[queues."orders.#"]\nredistribution-delay = 0\n')
        answer = reloading.asked(cluster["east"].folder, PATIENCE)
        assert answer is not None
        assert answer["applied"] == ["queues.orders.#.redistribution-delay"]
        assert taken(there, 1) == [b"waits"]
        assert here.explain()["redistribution_delay"].source == "pattern 'orders.#'"


def test_several_nodes_share_what_waits(cluster: Cluster) -> None:
    started(cluster, "east", "west", "north")
    with at(cluster, "east") as east, at(cluster, "west") as west, at(cluster, "north") as north:
        here = east.declare_queue("orders", durable=True, redistribution_delay=1.0)
        others = [each.declare_queue("orders", durable=True) for each in (west, north)]
        for each in others:
            with pytest.raises(Empty):
                each.get(timeout=0)
        for name in ("west", "north"):
            cluster.copied("east", lambda queues, name=name: ("orders", name, True) in queues)
        with east.transaction() as tx:  # all at once: a look between two of them makes it uneven
            for body in numbers(0, 100):
                tx.publish(here, body)
        found = [taken(each, 50) for each in others]
        assert [len(each) for each in found] == [50, 50]
        assert sorted(int(body) for each in found for body in each) == list(range(100))


@pytest.mark.parametrize("victim", ["east", "west"])
def test_each_is_there_once_whoever_is_killed_in_the_middle(cluster: Cluster, victim: str) -> None:
    started(cluster, "east", "west")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        here = east.declare_queue("orders", slots=4096, **GIVES)
        there = west.declare_queue("orders", durable=True, slots=4096, max_deliveries=None)
        with pytest.raises(Empty):
            there.get(timeout=0)
        found: list[bytes] = []
        for round_ in range(4):
            for body in numbers(round_ * 300, round_ * 300 + 300):
                here.publish(body)
            found += taken(there, 20)
            cluster[victim].kill()
            cluster[victim].start().becomes("live")
        found += taken(there, 1200 - len(found))
        assert sorted(map(int, found)) == list(range(1200))


def test_nobody_else_takes_what_is_on_its_way_nor_deletes_it(cluster: Cluster) -> None:
    started(cluster, "east", "west")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        here, there = east.declare_queue("orders", **GIVES), west.declare_queue("orders", **KEPT)
        with pytest.raises(Empty):
            there.get(timeout=0)
        here.publish(b"1")
        assert taken(there, 1) == [b"1"]
        cluster["west"].kill()
        cluster.sees("east", missing=("west",))
        [name] = [each.name for each in east.queues() if each.name.startswith("$sf.")]
        way = east.queue(name)
        way.publish(b"by a program")
        with pytest.raises(Empty):
            way.get(timeout=0)
        with pytest.raises(InvalidArgument, match="another node of the cluster"):
            east.delete_queue(name, force=True)
        waiting = way.statistics().depth
        with pytest.raises(InvalidArgument, match="never resumed"):
            way.resume()
        with pytest.raises(InvalidArgument, match="never purged"):
            way.purge()
        assert (way.statistics().is_paused, way.statistics().depth) == (True, waiting)
        cluster["west"].start().becomes("live")
        dead = east.queue("town.undeliverable")
        assert taken(dead, 1) == [b"by a program"]
        assert there.statistics().depth == 0


def test_what_is_for_a_queue_that_was_deleted_there_is_kept(cluster: Cluster) -> None:
    started(cluster, "east", "west")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        here, there = east.declare_queue("orders", **GIVES), west.declare_queue("orders", **KEPT)
        with pytest.raises(Empty):
            there.get(timeout=0)
        here.publish(b"1")
        assert taken(there, 1) == [b"1"]
        west.delete_queue("orders", force=True)
        for body in (b"2", b"3"):  # before the news are here, or after them
            here.publish(body)
        late = time.monotonic() + PATIENCE
        while True:  # what is being moved is nowhere to be seen
            kept = [*here.browse(), *east.queue("town.undeliverable").browse()]
            if sorted(each.body for each in kept) == [b"2", b"3"]:
                break
            assert time.monotonic() < late, kept
            time.sleep(0.02)  # nothing tells that a way is empty


def test_what_is_on_its_way_outlives_both_brokers(cluster: Cluster) -> None:
    started(cluster, "east", "west")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        east.declare_queue("orders", **GIVES)
        west.declare_queue("orders", durable=True)
        with pytest.raises(Empty):
            west.queue("orders").get(timeout=0)
        cluster.copied("east", lambda queues: ("orders", "west", True) in queues)
        cluster["west"].kill()
        cluster.sees("east", missing=("west",))
    cluster["east"].kill()
    for name in ("east", "west"):
        cluster[name].start().becomes("live")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        east.queue("orders").publish(b"1")
        assert taken(west.queue("orders"), 1) == [b"1"]
