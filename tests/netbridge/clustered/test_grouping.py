"""Messages of a group go to one queue at one node, wherever they are published."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, GroupingTimeout, InvalidArgument, Queue, aio
from shmbroker.ipc.queue.grouped import ASKED, ROUTES
from shmbroker.netbridge.clustered.former import KEPT
from tests.cli.command import Shell
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.netbridge.clustered.test_balancing import consumes, on_their_way
from tests.netbridge.clustered.test_redistribution import at, numbers, taken
from tests.support.until import until

NAMES = ("east", "west", "north")
HAS: dict[str, Any] = {
    "durable": True, "groups": True, "max_deliveries": None, "redistribution_delay": 0,
}  # fmt: skip
ANNA = {"JMSXGroupID": "anna"}
SHORT = {"grouping__mine__timeout": "500ms"}
"""Where nobody decides: it is over soon."""
IN_TIME = {"grouping__mine__timeout": "5s"}
"""Where a decision has to come, on a busy machine too."""


def grouping(local: bool, **more: object) -> dict[str, object]:
    return {"cluster__town__max_hops": 1,
            "grouping__mine__type": "local" if local else "remote", **more}  # fmt: skip


def started(cluster: Cluster, *names: str, local: str = "east", **more: object) -> None:
    for name in names:
        cluster.add(name, **grouping(name == local, **more)).start().becomes("live")
    for name in names:
        cluster.sees(name, *(each for each in names if each != name))
        with at(cluster, name) as broker:
            until(lambda broker=broker: has_handler(broker))  # type: ignore[misc]


def has_handler(broker: Broker) -> bool:
    return any(each.name.startswith(ROUTES) for each in broker.queues())


def declared(cluster: Cluster, **brokers: Broker) -> list[Queue]:
    """The queue at each of these nodes, with a consumer, and all know of it."""
    queues = [broker.declare_queue("orders", **HAS) for broker in brokers.values()]
    for queue in queues:
        consumes(queue)
    wanted = {("orders", name, True) for name in brokers}
    for name in (each for each, run in cluster.runs.items() if run.status.state == "live"):
        cluster.copied(name, lambda told: wanted <= told)
    return queues


def groups(cluster: Cluster, name: str) -> dict[str, str]:
    """Of each group the name of the node that it goes to, as this broker says."""
    told = Shell(cluster.vhosts[name])("group", "list", str(cluster[name].folder), "--json").json
    return {each["group"]: each["name"] for each in told["groups"]}


def depths(*queues: Queue) -> list[int]:
    return [each.statistics().depth for each in queues]


def arrived(count: int, *queues: Queue) -> list[int]:
    until(lambda: sum(depths(*queues)) >= count)
    return depths(*queues)


def test_one_group_from_all_brokers_at_once_goes_to_one_consumer_in_order(cluster: Cluster) -> None:
    started(cluster, *NAMES)
    with at(cluster, "east") as east, at(cluster, "west") as west, at(cluster, "north") as north:
        queues = declared(cluster, east=east, west=west, north=north)

        def publish(name: str) -> None:
            with at(cluster, name) as broker:
                for each in range(100):
                    broker.queue("orders").publish(f"{name} {each}".encode(), group="anna")

        with ThreadPoolExecutor(len(NAMES)) as pool:
            list(pool.map(publish, NAMES))
        assert sorted(arrived(300, *queues)) == [0, 0, 300]
        [one] = [each for each in queues if each.statistics().depth]
        found = [body.decode().split() for body in taken(one, 300)]
        for name in NAMES:
            assert [int(each) for who, each in found if who == name] == list(range(100))
        told = [groups(cluster, name) for name in NAMES]
        assert told[0] == told[1] == told[2]


def test_many_groups_are_spread(cluster: Cluster) -> None:
    started(cluster, *NAMES)
    with at(cluster, "east") as east, at(cluster, "west") as west, at(cluster, "north") as north:
        queues = declared(cluster, east=east, west=west, north=north)
        for each in range(30):
            for broker in (east, west, north):
                broker.queue("orders").publish(b"", group=f"{each}")
        assert arrived(90, *queues) == [30, 30, 30]
        there = [{info.group for info in queue.groups()} for queue in queues]
        assert sum(map(len, there)) == 30
        assert set().union(*there) == {f"{each}" for each in range(30)}


def test_the_route_stays_when_its_consumer_leaves(cluster: Cluster) -> None:
    started(cluster, "east", "west")
    with at(cluster, "east") as east:
        east.declare_queue("orders", **HAS)
        with at(cluster, "west") as west:
            declared(cluster, west=west)
            east.queue("orders").publish(b"0", group="anna")
            assert groups(cluster, "east") == {"anna": "west"}
        consumes(east.queue("orders"))
        for name in ("east", "west"):
            cluster.copied(
                name, lambda told: {("orders", "west", False), ("orders", "east", True)} <= told
            )
        for body in numbers(1, 10):
            east.queue("orders").publish(body, group="anna")
        east.queue("orders").publish(b"new", group="berta")
        until(lambda: on_their_way(east) == 0)
        with at(cluster, "west") as west:
            assert taken(west.queue("orders"), 10) == numbers(0, 10)
        assert taken(east.queue("orders"), 1) == [b"new"]


def test_it_ends_when_the_queue_is_deleted(cluster: Cluster) -> None:
    started(cluster, "east", "west")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        here = east.declare_queue("orders", **HAS)
        [there] = declared(cluster, west=west)
        here.publish(b"0", group="anna")
        assert groups(cluster, "east") == {"anna": "west"}
        assert taken(there, 1) == [b"0"]
        west.delete_queue("orders", force=True)
        until(lambda: groups(cluster, "east") == {})
        here.publish(b"1", group="anna")
        assert groups(cluster, "east") == {"anna": "east"}
        assert taken(here, 1) == [b"1"]


def test_a_node_that_is_down_keeps_its_groups(cluster: Cluster) -> None:
    started(cluster, "east", "west")
    with at(cluster, "east") as east:
        here = east.declare_queue("orders", **HAS)
        with at(cluster, "west") as west:
            declared(cluster, west=west)
            here.publish(b"0", group="anna")
            until(lambda: on_their_way(east) == 0)
        cluster["west"].kill()
        cluster.sees("east", missing=("west",))
        consumes(here)
        for body in numbers(1, 20):
            here.publish(body, group="anna")
        assert (here.statistics().depth, on_their_way(east)) == (0, 19)
        cluster["west"].start().becomes("live")
        until(lambda: on_their_way(east) == 0)
        with at(cluster, "west") as west:
            assert taken(west.queue("orders"), 20) == numbers(0, 20)


def goes_on(cluster: Cluster, comes: Callable[[Queue], str]) -> None:
    """East decides, and is killed; then another broker of its node comes."""
    with at(cluster, "west") as west:
        with at(cluster, "east") as east:
            east.declare_queue("orders", **HAS)
            [there] = declared(cluster, west=west)
            there.publish(b"0", group="anna")
        cluster["east"].kill()
        there.publish(b"1", group="anna")
        name = comes(there)
        cluster.sees("west", name)
        until(lambda: _publishes(there, "berta"))
        assert groups(cluster, name)["anna"] == "west"
        assert there.statistics().depth == 3


def _publishes(queue: Queue, group: str) -> bool:
    try:
        queue.publish(b"", group=group)
    except GroupingTimeout:
        return False
    return True


def test_without_its_arbiter_known_groups_go_on_and_new_ones_time_out(cluster: Cluster) -> None:
    started(cluster, "east", "west", **IN_TIME)

    def comes(there: Queue) -> str:
        cluster.sees("west", missing=("east",))
        with pytest.raises(GroupingTimeout, match="group 'berta' of queue 'orders'"):
            there.publish(b"2", group="berta")
        cluster["east"].start().becomes("live")
        return "east"

    goes_on(cluster, comes)


def test_the_backup_of_the_arbiter_knows_its_routes(cluster: Cluster) -> None:
    started(cluster, "east", "west", **IN_TIME)
    cluster.add("east2", "backup", shares="east", **grouping(True, **IN_TIME))
    cluster["east2"].start().becomes("passive")
    cluster.until("west", lambda told: any("east2" in each["backups"] for each in told["nodes"]))

    def comes(there: Queue) -> str:
        cluster["east2"].becomes("live")
        return "east2"

    goes_on(cluster, comes)


def test_without_a_local_handler_new_groups_time_out(cluster: Cluster) -> None:
    started(cluster, "east", local="", **SHORT)
    with at(cluster, "east") as east:
        queue = east.declare_queue("orders", **HAS)
        with pytest.raises(GroupingTimeout):
            queue.publish(b"", group="anna")
        queue.publish(b"without")
        with pytest.raises(GroupingTimeout), east.transaction() as tx:
            tx.publish(queue, b"", properties=ANNA)

        async def publish() -> None:
            async with aio.connect(f"shm://{cluster.vhosts['east']}") as broker:
                found = await broker.queue("orders")
                with pytest.raises(GroupingTimeout):
                    await found.publish(b"", group="anna")

        asyncio.run(publish())
        assert queue.statistics().depth == 1
    [line] = [each for each in cluster["east"].said() if each["event"] == "grouping"]
    assert line["state"] == "nobody decides"


def test_a_group_that_is_not_used_is_forgotten(cluster: Cluster) -> None:
    more = {"grouping__mine__group_timeout": "1s", "grouping__mine__reaper_period": "100ms"}
    started(cluster, "east", "west", **more)
    with at(cluster, "east") as east, at(cluster, "west") as west:
        declared(cluster, east=east, west=west)
        west.queue("orders").publish(b"", group="anna")
        for name in ("west", "east"):
            until(lambda name=name: groups(cluster, name) == {})  # type: ignore[misc]
        # a note that it has none stays for a second
        until(lambda: east.queue(KEPT).value("orders\x01anna") is None)
        west.queue("orders").publish(b"", group="anna")


def test_what_cannot_wait_for_a_decision_is_refused(cluster: Cluster) -> None:
    started(cluster, "east", "west")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        here = east.declare_queue("orders", **HAS)
        [there] = declared(cluster, west=west)
        here.publish(b"0", group="anna", message_id="0")
        assert here.publish(b"0", group="anna", message_id="0") is None
        with east.transaction() as tx:
            tx.publish(here, b"1", properties=ANNA)
        with pytest.raises(InvalidArgument, match="named producer"):
            here.producer("me").publish(b"", properties=ANNA)
        with pytest.raises(InvalidArgument, match="cannot be lent"):
            here.loan(5, properties=ANNA)
        position = here.publish(b"2", group="anna", confirm="disk")
        assert here.confirm(position, timeout=PATIENCE) == "disk"
        assert taken(there, 3) == numbers(0, 3)
        assert here.statistics().depth == 0


def test_nobody_but_the_broker_deletes_its_routes(cluster: Cluster) -> None:
    started(cluster, "east")
    with at(cluster, "east") as east:
        queue = east.declare_queue("orders", **HAS)
        queue.publish(b"", group="anna")
        for name in (ROUTES, ASKED, KEPT):
            with pytest.raises(InvalidArgument, match="where the groups of the cluster go"):
                east.delete_queue(name, force=True)
            with pytest.raises(InvalidArgument, match="never purged"):
                east.queue(name).purge()
        queue.publish(b"", group="bert")  # there is somebody who decides
        assert groups(cluster, "east") == {"anna": "east", "bert": "east"}


def test_a_broker_without_a_handler_forgets_the_routes(cluster: Cluster) -> None:
    started(cluster, "east")
    with at(cluster, "east") as east:
        queue = east.declare_queue("orders", **HAS)
        queue.publish(b"", group="anna")
        assert east.queue(ROUTES).value("orders\x01anna") is not None
    cluster["east"].stop()
    cluster.add("east2", shares="east", cluster__town__max_hops=1).start().becomes("live")
    with shmbroker.connect(f"shm://{cluster.vhosts['east']}") as east:
        until(lambda: not has_handler(east))


def test_what_is_no_group_ends_nobody(cluster: Cluster) -> None:
    """Programs can publish to this queue; the network thread would end with what it cannot tell."""
    started(cluster, "east", "west")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        _, there = declared(cluster, east=east, west=west)
        for body in (b"", b"x" * 300, b"\xff" * 200):
            west.queue(ASKED).publish(body, key="orders")
        there.publish(b"1", group="anna")
        until(lambda: not west.queue(ASKED).statistics().depth)
    assert cluster["west"].status.state == "live", cluster.story()
