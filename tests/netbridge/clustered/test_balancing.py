"""What is published at one node goes to all that have the queue, in turn."""

from __future__ import annotations

from contextlib import suppress

import pytest

from shmbroker import Broker, Empty, Queue
from shmbroker.core.layout import BALANCES
from shmbroker.ipc._native import lib
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.netbridge.clustered.test_redistribution import at, numbers, started
from tests.support.until import until

NAMES = ("east", "west", "north")


def consumes(queue: Queue) -> None:
    with suppress(Empty):
        queue.get(timeout=0).give_back()


def on_their_way(broker: Broker, missing: str = "") -> int:
    """To other nodes than this one."""
    return sum(
        broker.queue(each.name).statistics().depth
        for each in broker.queues()
        if each.name.startswith("$sf.") and not (missing and each.name.endswith(missing))
    )


def shares(
    broker: Broker, queues: dict[str, Queue], count: int, missing: str = ""
) -> dict[str, int]:
    """Publish so many, and count where they are."""
    [queue] = {each.name for each in queues.values()}
    until(lambda: on_their_way(broker, missing) == 0)
    before = {name: each.statistics().depth for name, each in queues.items()}
    for body in numbers(0, count):
        broker.queue(queue).publish(body)
    until(lambda: on_their_way(broker, missing) == 0)
    return {name: each.statistics().depth - before[name] for name, each in queues.items()}


def sets_in(broker: Broker) -> int:
    count = row = 0
    while (row := lib.sb_row_next(broker._catalog._catalog, BALANCES, row)) >= 0:
        count, row = count + 1, row + 1
    return count


def in_turn(
    broker: Broker, queues: dict[str, Queue], expected: dict[str, int], missing: str = ""
) -> None:
    """Once the set is as it is to be: what is published before that counts for nothing.

    `missing`: a node, to which nothing goes now.
    """
    count = sum(expected.values())
    until(lambda: shares(broker, queues, count, missing) == expected)


@pytest.mark.parametrize("durable", [True, False])
def test_strict_gives_each_node_its_share_whoever_consumes(cluster: Cluster, durable: bool) -> None:
    started(cluster, *NAMES, mode="strict")
    with at(cluster, "east") as east, at(cluster, "west") as west, at(cluster, "north") as north:
        queues = {
            name: broker.declare_queue("orders", durable=durable)
            for name, broker in zip(NAMES, (east, west, north), strict=True)
        }
        in_turn(east, queues, {"east": 10, "west": 10, "north": 10})
        in_turn(west, queues, {"east": 10, "west": 10, "north": 10})
        north.delete_queue("orders", force=True)
        del queues["north"]
        in_turn(east, queues, {"east": 10, "west": 10})


def test_on_demand_goes_where_somebody_consumes(cluster: Cluster) -> None:
    started(cluster, *NAMES, mode="on-demand")
    with at(cluster, "east") as east, at(cluster, "west") as west, at(cluster, "north") as north:
        queues = {
            name: broker.declare_queue("orders", durable=True)
            for name, broker in zip(NAMES, (east, west, north), strict=True)
        }
        in_turn(east, queues, {"east": 12, "west": 0, "north": 0})
        consumes(queues["west"])
        in_turn(east, queues, {"east": 0, "west": 12, "north": 0})
        consumes(queues["north"])
        in_turn(east, queues, {"east": 0, "west": 6, "north": 6})
        consumes(queues["east"])
        in_turn(east, queues, {"east": 4, "west": 4, "north": 4})
        cluster["north"].kill()  # its link is down: no turn of it
        told = cluster.sees("east", "west", missing=("north",))
        [node] = [each["node"] for each in told["nodes"] if each["name"] == "north"]
        del queues["north"]
        in_turn(east, queues, {"east": 6, "west": 6}, missing=node)


def test_a_queue_that_is_made_again_is_balanced_again(cluster: Cluster) -> None:
    started(cluster, "east", "west", mode="strict")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        there = west.declare_queue("orders", durable=True)
        for _ in range(3):
            here = east.declare_queue("orders", durable=True)
            in_turn(east, {"east": here, "west": there}, {"east": 5, "west": 5})
            east.delete_queue("orders", force=True)
        here = east.declare_queue("orders", durable=True)
        in_turn(east, {"east": here, "west": there}, {"east": 5, "west": 5})
        until(lambda: sets_in(east) == 1)


def test_off_leaves_them_where_they_are_published(cluster: Cluster) -> None:
    started(cluster, "east", "west", mode="off")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        queues = {"east": east.declare_queue("orders"), "west": west.declare_queue("orders")}
        consumes(queues["west"])
        cluster.copied("east", lambda told: ("orders", "west", True) in told)
        assert shares(east, queues, 10) == {"east": 10, "west": 0}


def test_each_way_of_publishing(cluster: Cluster) -> None:
    started(cluster, "east", "west", mode="strict")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        here, there = (each.declare_queue("orders", durable=True) for each in (east, west))
        in_turn(east, {"east": here, "west": there}, {"east": 5, "west": 5})
        for queue in (here, there):
            queue.purge()
        positions = [here.publish(b"%d" % each, confirm="shm", key="k") for each in range(10)]
        for position in positions:
            assert here.confirm(position, timeout=PATIENCE) == "disk"
            assert lib.sb_is_confirmed(here._queue, position) == 1
        assert here.publish_many(numbers(10, 20), timeout=PATIENCE) == 10
        east.declare_exchange("shop", "direct")
        east.bind("shop", "orders", "order")
        for body in numbers(20, 30):
            east.exchange("shop").publish(body, key="order")
        with east.transaction() as tx:  # stays: it is all or nothing, here
            tx.publish(here, b"30")
        here.publish(b"31", message_id="31")  # stays: only this ring knows whether it has it
        until(lambda: there.statistics().depth == 15)
        found = [
            [int(each.body) for each in queue.browse(unconfirmed=True)] for queue in (here, there)
        ]
        assert sorted(found[0] + found[1]) == list(range(32))
        assert {30, 31} <= set(found[0])
        assert all(found_in == sorted(found_in) for found_in in found)


def test_asyncio_confirms_what_went_elsewhere(cluster: Cluster) -> None:
    import asyncio

    from shmbroker import aio

    started(cluster, "east", "west", mode="strict")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        queues = {
            name: each.declare_queue("orders", durable=True)
            for name, each in (("east", east), ("west", west))
        }
        in_turn(east, queues, {"east": 5, "west": 5})

        async def publishes() -> None:
            async with aio.connect(f"shm://{cluster.vhosts['east']}") as broker:
                queue = await broker.queue("orders")
                for body in numbers(0, 10):
                    await queue.publish(body, timeout=PATIENCE)

        asyncio.run(publishes())
        until(lambda: sum(each.statistics().depth for each in queues.values()) % 10 == 0)


def test_queues_whose_messages_belong_together_stay(cluster: Cluster) -> None:
    started(cluster, "east", "west", mode="strict")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        for name, settings in (
            ("last", {"last_value": True}), ("groups", {"groups": True}),
            ("single", {"single_active": True}), ("plain", {}),
        ):  # fmt: skip
            for broker in (east, west):
                broker.declare_queue(name, **settings)  # type: ignore[arg-type]
        plain = {"east": east.queue("plain"), "west": west.queue("plain")}

        def goes() -> bool:
            plain["east"].publish(b"")
            return plain["west"].statistics().depth > 0

        until(goes)
        for name in ("last", "groups", "single"):
            for each in range(10):
                east.queue(name).publish(b"%d" % each, key=str(each))
            assert east.queue(name).statistics().depth == 10


@pytest.mark.parametrize("victim", ["east", "west"])
def test_nothing_confirmed_is_lost_or_twice_whoever_is_killed(
    cluster: Cluster, victim: str
) -> None:
    started(cluster, "east", "west", mode="strict")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        queues = {
            name: each.declare_queue("orders", durable=True, slots=8192)
            for name, each in (("east", east), ("west", west))
        }
        in_turn(east, queues, {"east": 5, "west": 5})
        for queue in queues.values():
            queue.purge()
        confirmed = 0
        for _ in range(3):
            for _ in range(200):
                east.queue("orders").publish(b"%d" % confirmed, confirm="shm")
                confirmed += 1
            cluster[victim].kill()
            cluster[victim].start().becomes("live")
            east.queue("orders").confirm(timeout=PATIENCE)
        until(lambda: sum(each.statistics().depth for each in queues.values()) == confirmed)
        found = [
            int(each.body) for queue in queues.values() for each in queue.browse(unconfirmed=True)
        ]
        assert sorted(found) == list(range(confirmed))


def test_without_its_broker_a_program_goes_on_publishing(cluster: Cluster) -> None:
    started(cluster, "east", "west", mode="strict")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        queues = {
            name: each.declare_queue("orders") for name, each in (("east", east), ("west", west))
        }
        in_turn(east, queues, {"east": 5, "west": 5})
        for queue in queues.values():
            queue.purge()
        cluster["east"].kill()
        for body in numbers(0, 20):
            queues["east"].publish(body)
        cluster["east"].start().becomes("live")
        until(lambda: sum(each.statistics().depth for each in queues.values()) == 20)


def passed_on(cluster: Cluster, first: str, second: str) -> None:
    """What went to a node arrives once, whichever broker of it serves."""
    with at(cluster, "east") as east:
        east.declare_queue("orders", durable=True, max_deliveries=None)
        with at(cluster, first) as west:
            there = west.declare_queue("orders", durable=True, max_deliveries=None)
            in_turn(east, {"east": east.queue("orders"), "west": there}, {"east": 5, "west": 5})
            there.purge()
        east.queue("orders").purge()
        for body in numbers(0, 100):
            east.queue("orders").publish(body)
        cluster[first].kill()
        for body in numbers(100, 200):
            east.queue("orders").publish(body)
        cluster[second].becomes("live")
        until(lambda: on_their_way(east) == 0)
        with at(cluster, second) as west:
            found = [
                int(each.body)
                for queue in (east.queue("orders"), west.queue("orders"))
                for each in queue.browse(unconfirmed=True)
            ]
        assert sorted(found) == list(range(200))


def test_a_node_with_a_backup_on_a_shared_store(cluster: Cluster) -> None:
    started(cluster, "east", "west", mode="strict")
    more = {"cluster__town__max_hops": 1, "cluster__town__message_load_balancing": "strict"}
    cluster.add("west2", "backup", shares="west", **more).start().becomes("passive")
    passed_on(cluster, "west", "west2")


def test_a_replicated_node(cluster: Cluster) -> None:
    more = {"cluster__town__max_hops": 1, "cluster__town__message_load_balancing": "strict"}
    started(cluster, "east", mode="strict")
    cluster.add_pair("west", **more)
    cluster.starts("west")
    cluster.sees("east", "west")
    passed_on(cluster, "west", "west2")
