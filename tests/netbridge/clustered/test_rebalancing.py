"""Programs that are asked to go to a node that joins: their share, and nothing is lost or twice."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.netbridge.cluster.newcomers import SETTLING_SECONDS
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.netbridge.clustered.test_programs import add, connected
from tests.support.until import until

PROGRAMS = 4
Uris = dict[str, str]


def of(cluster: Cluster, name: str) -> Broker:
    return shmbroker.connect(f"shm://{cluster.vhosts[name]}", name="test")


@pytest.fixture
def uris(cluster: Cluster) -> Uris:
    """Of two nodes, of which the first is there; the other one has `orders`."""
    names = ("east", "west")
    found = {
        name: add(cluster, name, **{"acceptors__apps__rebalance-cluster-clients": True})
        for name in names
    }
    cluster["west"].start().becomes("live")
    cluster.publishes("west", b"first")
    cluster["west"].stop()
    cluster["east"].start().becomes("live")
    return found


@pytest.fixture
def programs(uris: Uris) -> Iterator[list[Broker]]:
    with ExitStack() as opened:
        yield [opened.enter_context(connected(uris["east"])) for _ in range(PROGRAMS)]


def joins(cluster: Cluster) -> None:
    time.sleep(SETTLING_SECONDS)  # who comes before is taken for one that was there
    cluster["west"].start().becomes("live")


def at(programs: list[Broker]) -> dict[str, int]:
    return Counter(each.uri for each in programs)


def test_nothing_is_lost_or_twice_while_programs_that_work_go(
    cluster: Cluster, uris: Uris, programs: list[Broker]
) -> None:
    """Two of them publish and two consume, without a pause; one of each kind goes."""
    programs[0].declare_queue("orders", durable=True)
    published: list[bytes] = [b"first"]
    consumed: list[bytes] = []
    ends = threading.Event()
    failures: list[BaseException] = []
    said: list[tuple[str, str]] = []
    for each in programs:
        each.on_event(lambda event, detail: said.append((event.value, detail)))

    def publishes(broker: Broker) -> None:
        orders = broker.queue("orders")
        while not ends.is_set():
            bodies = [b"%d.%d" % (id(broker), len(published) + n) for n in range(3)]
            orders.publish_many(bodies)
            published.extend(bodies)

    def consumes(broker: Broker) -> None:
        while not ends.is_set():
            for message in broker.queue("orders").consume(prefetch=4, timeout=0.1):
                consumed.append(message.body)

    def works(work: Callable[[Broker], None], broker: Broker) -> None:
        try:
            work(broker)
        except BaseException as error:  # noqa: BLE001  # told below
            failures.append(error)

    threads = [
        threading.Thread(target=works, args=(work, broker))
        for work, broker in zip((publishes, consumes) * 2, programs, strict=True)
    ]
    for each in threads:
        each.start()
    joins(cluster)
    wanted = {uris["east"]: 2, uris["west"]: 2}
    until(lambda: at(programs) == wanted or bool(failures), lambda: at(programs))
    here = len(published)
    until(lambda: len(published) > here + 30 or bool(failures), lambda: failures)
    ends.set()
    for each in threads:
        each.join(PATIENCE)
    assert failures == []
    told = Counter(said)
    if "reattached" not in dict(said):  # on a busy machine; those are the ones that came last
        assert {programs[2].uri, programs[3].uri} == {uris["west"]}
        assert told == {
            ("moving", uris["west"]): 2, ("failure-detected", ""): 2, ("failover-completed", ""): 2
        }  # fmt: skip
    for name in uris:
        with of(cluster, name) as broker:
            consumed += [each.body for each in broker.queue("orders").browse()]
    assert Counter(consumed) == Counter(published)


def test_what_is_open_ends_first(cluster: Cluster, uris: Uris, programs: list[Broker]) -> None:
    """A message in hand and a transaction keep their sessions where they are, for a while."""
    orders = programs[3].declare_queue("orders", durable=True)
    orders.publish(b"held")
    held = orders.get(timeout=PATIENCE)
    other = programs[2].queue("orders")
    with programs[2].transaction() as transaction:
        transaction.publish(other, b"set")
        joins(cluster)
        west = uris["west"]
        known = lambda each: west in {member.uri for member in each.topology()}  # noqa: E731
        until(lambda: known(programs[2]) and known(programs[3]), lambda: programs[3].topology())
        time.sleep(0.5)  # by now they have been asked; nothing tells that they stay
        assert at(programs) == {uris["east"]: PROGRAMS}
    held.ack()
    with of(cluster, "east") as broker:
        assert [each.body for each in broker.queue("orders").browse()] == [b"set"]


def test_a_program_comes_back_if_the_new_node_has_not_its_queues(
    cluster: Cluster, uris: Uris, programs: list[Broker]
) -> None:
    queues = [each.declare_queue(f"only.east.{n}") for n, each in enumerate(programs)]
    said: list[str] = []
    for each in programs:  # the last two are asked, unless links were lost before
        each.on_event(lambda event, detail: said.append(event.value))
    joins(cluster)
    until(lambda: said.count("failover-completed") >= 2, lambda: said)
    until(lambda: at(programs) == {uris["east"]: PROGRAMS}, lambda: at(programs))
    for each in queues:
        each.publish(b"x", timeout=PATIENCE)
        with each.get(timeout=PATIENCE) as message:
            assert message.body == b"x"
