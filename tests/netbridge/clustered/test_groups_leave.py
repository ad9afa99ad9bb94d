"""Groups of a node that is scaled down go on at its successor, in their order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from shmbroker import Broker, GroupingTimeout
from tests.netbridge.clustered.conftest import Cluster
from tests.netbridge.clustered.test_balancing import consumes, on_their_way
from tests.netbridge.clustered.test_grouping import HAS, NAMES, grouping, groups, has_handler
from tests.netbridge.clustered.test_redistribution import at, taken
from tests.netbridge.clustered.test_scale_down import stop
from tests.support.until import until

QUEUE = {**HAS, "slots": 1 << 14}
LEAVES = {"ha__policy": "live-only", "ha__scale_down__connectors": ["east"]}


def started(cluster: Cluster) -> None:
    """East decides; group anna is at west, which is to leave."""
    for name in NAMES:
        more = LEAVES if name == "west" else {}
        cluster.add(name, **grouping(name == "east"), **more).start().becomes("live")
    for name in NAMES:
        cluster.sees(name, *(each for each in NAMES if each != name))
        with at(cluster, name) as broker:
            until(lambda broker=broker: has_handler(broker))  # type: ignore[misc]
            broker.declare_queue("orders", **QUEUE)
    with at(cluster, "west") as west:
        consumes(west.queue("orders"))
        for name in NAMES:
            cluster.copied(name, lambda told: ("orders", "west", True) in told)
        for name in NAMES:
            with at(cluster, name) as broker:
                broker.queue("orders").publish(f"{name} 0".encode(), group="anna")
    assert {groups(cluster, name)["anna"] for name in NAMES} == {"west"}


def published(broker: Broker, name: str, numbers: range) -> None:
    for each in numbers:
        while True:
            try:
                broker.queue("orders").publish(f"{name} {each}".encode(), group="anna")
                break
            except GroupingTimeout:
                pass


def test_they_go_on_at_the_successor_in_order(cluster: Cluster) -> None:
    started(cluster)
    others = ("east", "north")
    goes_on = threading.Event()
    count = dict.fromkeys(others, 1)

    def publishes(name: str) -> None:
        with at(cluster, name) as broker:
            while not goes_on.is_set():
                published(broker, name, range(count[name], count[name] + 1))
                count[name] += 1

    programs = [threading.Thread(target=publishes, args=(each,)) for each in others]
    for each in programs:
        each.start()
    try:
        with at(cluster, "west") as west:
            until(lambda: west.queue("orders").statistics().depth > 200)
        code, said = stop(cluster)
        assert code == 0, f"{said}\n{cluster.story()}"
        with at(cluster, "east") as east:
            orders = east.queue("orders")
            before = orders.statistics().depth
            until(lambda: orders.statistics().depth > before + 200)
    finally:
        goes_on.set()
        for each in programs:
            each.join()
    with at(cluster, "east") as east, at(cluster, "north") as north:
        orders = east.queue("orders")
        until(lambda: orders.statistics().depth == sum(count.values()) + 1)
        for broker, name in ((east, "east"), (north, "north")):
            until(lambda name=name: groups(cluster, name) == {"anna": "east"})  # type: ignore[misc]
            published(broker, name, range(count[name], count[name] + 50))
        found = [body.decode().split() for body in taken(orders, sum(count.values()) + 101)]
        for name in others:
            own = [int(each) for who, each in found if who == name]
            assert own == list(range(count[name] + 50))
        assert north.queue("orders").statistics().depth == 0


def test_a_node_that_hears_of_it_late_keeps_the_order_also_when_the_former_one_is_back(
    cluster: Cluster,
) -> None:
    started(cluster)
    cluster["north"].kill()
    count = 1

    def publishes(until: Callable[[], bool], pause: float = 0.0) -> None:
        """`pause`: nobody consumes, and there is room for so many until then."""
        nonlocal count
        while not until():
            time.sleep(pause)
            with suppress(GroupingTimeout):
                north.queue("orders").publish(
                    f"north {count}".encode(), group="anna", confirm="shm"
                )
                count += 1

    with at(cluster, "north") as north, at(cluster, "east") as east:
        publishes(lambda: count == 3000)
        assert stop(cluster)[0] == 0, cluster.story()
        cluster["north"].start()
        orders = east.queue("orders")
        # also while that which waited goes there
        publishes(lambda: orders.published > 3000, pause=0.002)
        until(lambda: groups(cluster, "north") == {"anna": "east"})
        first = count
        cluster["west"].start().becomes("live")
        cluster.sees("north", "east", "west")
        published(north, "north", range(first, first + 50))
        with at(cluster, "west") as west:
            consumes(west.declare_queue("orders", **QUEUE))
            published(north, "north", range(first + 50, first + 100))
            until(lambda: on_their_way(north) == 0)
            assert west.queue("orders").statistics().depth == 0
        found = [body.decode().split() for body in taken(orders, first + 102)]
        own = [int(each) for who, each in found if who == "north"]
        assert own == list(range(first + 100))
        assert groups(cluster, "east") == {"anna": "east"}
