"""What is published to an exchange at one node comes to queues that are bound at all of them.

Tests share a cluster, and each has an exchange and queues of its own in it.  More kills than in
`make test`: TOPIC_KILLS=30.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from shmbroker import Broker, Exchange, Queue, Unroutable
from shmbroker.core.layout import BINDING_HERE
from shmbroker.ipc.exchange.own_binding import OwnBinding, bind_own, own_bindings
from shmbroker.netbridge.clustered.stand_ins import StandIns, stand_in
from shmbroker.netbridge.clustered.topics import TopicBindings
from shmbroker.netbridge.clustered.towards import towards
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.netbridge.clustered.test_balancing import consumes, on_their_way, sets_in
from tests.netbridge.clustered.test_redistribution import at, numbers, started, taken
from tests.support.trace import TRACE
from tests.support.until import until

KILLS = int(os.environ.get("TOPIC_KILLS", "1"))
EACH_KILL = 2000
"""Messages."""
NAMES = ("east", "west", "north")
NUMBERS = count()

in_each_mode = pytest.mark.parametrize("shared", ["strict", "off", "on-demand"], indirect=True)
in_one_mode = pytest.mark.parametrize("shared", ["on-demand"], indirect=True)


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Three brokers, or two in other modes; those of the mode before are gone."""
    names = NAMES if request.param == "on-demand" else NAMES[:2]
    with ExitStack() as opened:
        made = Cluster(tmp_path_factory.mktemp("town"), opened)
        started(made, *names, mode=request.param)
        yield made


@contextmanager
def at_all(cluster: Cluster, *names: str) -> Iterator[list[Broker]]:
    with ExitStack() as opened:
        yield [opened.enter_context(at(cluster, name)) for name in names]


@dataclass
class Town:
    """A cluster, with a program at each of its nodes, and the exchange of this test."""

    cluster: Cluster
    brokers: list[Broker]
    exchange: str

    @property
    def east(self) -> Broker:
        return self.brokers[0]

    @property
    def west(self) -> Broker:
        return self.brokers[1]

    @property
    def north(self) -> Broker:
        return self.brokers[2]

    def publishes(self, broker: Broker, kind: str = "topic", **more: str) -> Exchange:
        return broker.declare_exchange(self.exchange, kind, **more)  # type: ignore[arg-type]

    def named(self, queue: str) -> str:
        return f"{self.exchange}.{queue}"

    def subscribed(
        self, broker: Broker, queue: str, key: str = "eu.#", *, durable: bool = True
    ) -> Queue:
        self.publishes(broker)
        name = self.named(queue)
        made = broker.declare_queue(name, durable=durable, slots=8192, max_deliveries=None)
        broker.bind(self.exchange, name, key)
        return made

    def carried(self, broker: Broker) -> set[OwnBinding]:
        return {each for each in own_bindings(broker) if each.exchange == self.exchange}

    def carries(self, broker: Broker, wanted: int) -> None:
        """Waits until it has so many bindings for others."""
        until(lambda: len(self.carried(broker)) == wanted)


def crossings(broker: Broker) -> int:
    """How many messages went to other nodes, or are on their way."""
    return sum(each.published for each in broker.queues() if each.name.startswith("$sf."))


def steadily(exchange: Exchange, bodies: list[bytes]) -> None:
    """So that the stream is still going on when a broker is killed."""
    for number, body in enumerate(bodies):
        exchange.publish(body, key="eu", confirm="shm")
        if number % 5 == 0:
            time.sleep(0.001)


def all_there(*brokers: Broker) -> None:
    until(lambda: not any(on_their_way(each) for each in brokers))


@pytest.fixture
def town(shared: Cluster) -> Iterator[Town]:
    with at_all(shared, *shared.runs) as brokers:
        yield Town(shared, brokers, f"prices-{next(NUMBERS)}")


@in_each_mode
def test_a_subscriber_at_each_node_gets_each_message_once(town: Town) -> None:
    brokers, others = town.brokers, len(town.brokers) - 1
    before = [crossings(each) for each in brokers]
    queues = [town.subscribed(each, f"of.{at}") for at, each in enumerate(brokers)]
    for each in brokers:
        town.carries(each, others)
    bodies = numbers(0, len(brokers))
    for body, each in zip(bodies, brokers, strict=True):
        exchange = each.exchange(town.exchange)
        assert exchange.publish(body, key="eu.de", confirm="disk") == len(brokers)
        assert exchange.publish(b"of no interest", key="us") == 0
    all_there(*brokers)
    for queue in queues:
        assert sorted(message.body for message in queue.browse()) == bodies
    [first, *_] = queues[1].browse()
    assert first.key == "eu.de"
    for each, was in zip(brokers, before, strict=True):
        assert crossings(each) - was == others, "nothing went on from another node"


@in_each_mode
def test_a_balanced_queue_gets_one_copy_and_others_beside_it_theirs(
    town: Town, request: pytest.FixtureRequest
) -> None:
    mode, east, west = request.node.callspec.params["shared"], town.east, town.west
    sets = [sets_in(each) for each in (east, west)]
    orders = [town.subscribed(each, "orders") for each in (east, west)]
    beside = town.subscribed(west, "beside")
    east.bind(town.exchange, town.named("orders"), "#")  # also at west; there it is the same
    town.carries(east, 1)
    town.carries(west, 1 if mode != "off" else 2)
    if mode == "strict":  # until the turns of both are there
        until(lambda: [sets_in(each) for each in (east, west)] == [each + 1 for each in sets])
    before = [each.statistics().depth for each in orders]
    for broker in (east, west):
        for body in numbers(0, 10):
            broker.exchange(town.exchange).publish(body, key="eu.de")
    all_there(east, west)
    assert beside.statistics().depth == 20
    came = [each.statistics().depth - was for each, was in zip(orders, before, strict=True)]
    if mode == "off":
        assert came == [20, 20]
    else:
        assert sum(came) == 20
    if mode == "strict":
        assert came == [10, 10]


@in_one_mode
def test_two_subscribers_at_a_node_are_one_crossing(town: Town) -> None:
    east, west = town.east, town.west
    before, prices = crossings(east), town.publishes(east)
    first, second = town.subscribed(west, "first"), town.subscribed(west, "second", durable=False)
    other = town.subscribed(west, "other", "*.de")
    town.carries(east, 2)
    for body in numbers(0, 10):
        assert prices.publish(body, key="eu.de", properties=TRACE) == 1
    assert crossings(east) - before == 10
    until(lambda: any(other.browse()))  # it is synced there
    assert dict(next(iter(other.browse())).properties) == TRACE
    for queue in (first, second, other):
        assert taken(queue, 10) == numbers(0, 10)
    assert town.carried(west) == set(), "nobody here wants anything"
    all_there(east, west)
    assert [each for each in east.bindings() if each.exchange == town.exchange] == []
    assert [each.bindings for each in east.exchanges() if each.name == town.exchange] == [0]


@in_one_mode
def test_who_comes_gets_and_who_leaves_does_not(town: Town) -> None:
    east, west = town.east, town.west
    lost = east.declare_exchange("lost", "fanout")
    kept = east.declare_queue("kept")
    east.bind(lost, kept)
    prices = town.publishes(east, alternate="lost")
    prices.publish(b"0", key="eu")
    queue = town.subscribed(west, "late")
    town.carries(east, 1)
    assert prices.publish(b"1", key="eu", mandatory=True) == 1
    assert taken(queue, 1) == [b"1"]
    west.unbind(town.exchange, queue, "eu.#")
    town.carries(east, 0)
    prices.publish(b"2", key="eu")
    assert taken(kept, 2) == [b"0", b"2"]
    west.bind(town.exchange, queue, "eu.#")
    town.carries(east, 1)
    west.delete_queue(queue.name, force=True)
    town.carries(east, 0)
    east.delete_queue("kept")
    with pytest.raises(Unroutable):
        prices.publish(b"3", key="eu", mandatory=True)


@in_one_mode
@pytest.mark.parametrize("kind", ["direct", "fanout", "headers"])
def test_exchanges_of_each_kind(town: Town, kind: str) -> None:
    prices, west = town.publishes(town.east, kind), town.west
    town.publishes(west, kind)
    queue = west.declare_queue(town.named("q"), durable=True)
    if kind == "headers":
        west.bind(town.exchange, queue, arguments={"a": 1, "b": 2}, match="any")
    else:
        west.bind(town.exchange, queue, "eu")
    town.carries(town.east, 1)
    assert prices.publish(b"1", key="eu", properties={"b": 2}) == 1
    assert prices.publish(b"2", key="us", properties={"c": 2}) == (kind == "fanout")
    wanted = [b"1", b"2"] if kind == "fanout" else [b"1"]
    assert taken(queue, len(wanted)) == wanted
    all_there(town.east)
    assert queue.statistics().depth == 0


@in_one_mode
def test_ids_schedules_and_transactions(town: Town) -> None:
    east, west = town.east, town.west
    prices = town.publishes(east)
    other = east.declare_exchange(town.named("other"), "topic")
    queue = town.subscribed(west, "there")
    west.declare_exchange(other.name, "topic")
    west.bind(other.name, queue, "#")
    until(lambda: {each.exchange for each in own_bindings(east)} >= {town.exchange, other.name})
    for _ in range(2):
        prices.publish(b"once", key="eu", message_id="7")
        other.publish(b"another", key="eu", message_id="7")
    with east.transaction() as transaction:
        transaction.publish(prices, b"together", key="eu")
    prices.publish(b"later", key="eu", deliver_after=0.2)
    assert taken(queue, 4) == [b"once", b"another", b"together", b"later"]
    all_there(east)
    assert queue.statistics().depth == 0
    assert east.queue("town.undeliverable").statistics().depth == 0


@in_one_mode
def test_what_is_on_its_way_goes_to_those_who_are_bound_when_it_arrives(town: Town) -> None:
    east, west, cluster = town.east, town.west, town.cluster
    prices, kept = town.publishes(east), town.subscribed(west, "kept")
    left, late = town.subscribed(west, "left"), west.declare_queue(town.named("late"))
    deleted = east.declare_exchange(town.named("deleted"), "topic")
    west.declare_exchange(deleted.name, "topic")
    west.bind(deleted.name, kept, "#")
    town.carries(east, 1)
    until(lambda: deleted.name in {each.exchange for each in own_bindings(east)})
    cluster["west"].kill()
    cluster.sees("east", "north", missing=("west",))
    for body in numbers(0, 3):
        assert prices.publish(body, key="eu") == 1
    assert deleted.publish(b"of the exchange that is deleted") == 1
    assert on_their_way(east) == 4
    west.unbind(town.exchange, left, "eu.#")
    west.bind(town.exchange, late, "eu.#")
    west.delete_exchange(deleted.name, force=True)
    cluster["west"].start().becomes("live")
    for queue in (kept, late):
        assert taken(queue, 3) == numbers(0, 3)
    undeliverable = east.queue("town.undeliverable")
    assert taken(undeliverable, 1) == [b"of the exchange that is deleted"]
    all_there(east)
    assert [each.statistics().depth for each in (kept, left, late, undeliverable)] == [0, 0, 0, 0]


def in_turn(town: Town, count: int = 20) -> list[int]:
    """Publish so many at north, which has not the queue, and count where they are."""
    queues = [each.queue(town.named("orders")) for each in (town.east, town.west)]
    all_there(town.north)
    before = [each.statistics().published for each in queues]
    for body in numbers(0, count):
        assert town.north.exchange(town.exchange).publish(body, key="eu") == 1
    all_there(town.north)
    return [each.statistics().published - was for each, was in zip(queues, before, strict=True)]


@in_one_mode
def test_a_balanced_queue_that_is_not_here_gets_them_in_turn(town: Town) -> None:
    prices = town.publishes(town.north)
    orders = [town.subscribed(each, "orders") for each in (town.east, town.west)]
    town.west.bind(town.exchange, orders[1], "#")  # a second binding is no second copy
    town.carries(town.north, 2)
    assert sum(in_turn(town)) == 20
    until(lambda: sorted(in_turn(town)) == [0, 20])  # nobody consumes: to the first that it knows
    consumes(orders[1])
    until(lambda: in_turn(town) == [0, 20])
    consumes(orders[0])
    until(lambda: in_turn(town) == [10, 10])
    for each in orders:
        each.purge()
    for _ in range(2):
        prices.publish(b"once", key="eu", message_id="7")
    with town.north.transaction() as transaction:
        for body in numbers(0, 4):
            transaction.publish(prices, body, key="eu")
    prices.publish(b"later", key="eu", deliver_after=0.2)
    until(lambda: sum(each.statistics().depth for each in orders) == 6)
    found = [message.body for each in orders for message in each.browse(unconfirmed=True)]
    assert sorted(found) == [b"0", b"1", b"2", b"3", b"later", b"once"]
    here = town.subscribed(town.north, "orders")
    consumes(here)
    town.carries(town.north, 1)
    until(lambda: prices.publish(b"", key="eu") == 1 and here.statistics().depth > 0)


@in_one_mode
def test_what_is_published_for_it_before_its_nodes_are_known_is_passed_on(town: Town) -> None:
    """Once, also while one of its nodes is known and another is not."""
    town.publishes(town.north)
    orders = [town.subscribed(each, "orders") for each in (town.east, town.west)]
    for each in orders:
        consumes(each)
    town.carries(town.north, 1)
    until(lambda: in_turn(town) == [10, 10])
    for each in orders:
        each.purge()
    bodies = numbers(0, EACH_KILL)
    publishes = Thread(target=steadily, args=(town.north.exchange(town.exchange), bodies))
    publishes.start()
    until(lambda: orders[0].statistics().depth > EACH_KILL // 20)
    town.cluster["north"].kill()
    town.cluster["north"].start().becomes("live")
    publishes.join()
    until(lambda: sum(each.statistics().depth for each in orders) >= EACH_KILL)
    all_there(town.north)
    found = [message.body for each in orders for message in each.browse(unconfirmed=True)]
    assert sorted(found, key=int) == bodies


@in_one_mode
@pytest.mark.parametrize("victim", ["east", "west"])
def test_each_copy_is_there_once_whoever_is_killed(town: Town, victim: str) -> None:
    east, west, cluster = town.east, town.west, town.cluster
    here = town.subscribed(east, "here")
    there = [town.subscribed(west, name) for name in ("first", "second")]
    town.carries(east, 1)
    for round_ in range(KILLS):
        bodies = numbers(round_ * EACH_KILL, round_ * EACH_KILL + EACH_KILL)
        before = there[0].statistics().published
        publishes = Thread(target=steadily, args=(east.exchange(town.exchange), bodies))
        publishes.start()
        until(lambda before=before: there[0].statistics().published > before + EACH_KILL // 10)
        cluster[victim].kill()
        cluster[victim].start().becomes("live")
        publishes.join()
        for queue in (here, *there):
            assert taken(queue, EACH_KILL) == bodies
    all_there(east)
    assert [each.statistics().depth for each in there] == [0, 0]


def test_bindings_stay_until_all_nodes_were_read(broker: Broker) -> None:
    nodes = [bytes([each]) * 16 for each in range(2)]
    broker.declare_exchange("prices", "topic")
    for name in ("orders", "$sf.town.only-named-so", *(towards("town", node) for node in nodes)):
        broker.declare_queue(name)
    ours = OwnBinding("prices", "orders", "eu", b"", False, BINDING_HERE)
    theirs = OwnBinding("prices", towards("town", nodes[0]), "eu", b"", False, 7)
    for each in (ours, theirs):
        bind_own(broker, each)
    bound = TopicBindings(broker, "town", lambda line: pytest.fail(str(line)))
    bound.carries([], frozenset())
    assert own_bindings(broker) == {ours, theirs}
    bound.carries([], frozenset(nodes[:1]))
    assert own_bindings(broker) == {ours}, "of which node it is, its row does not say"
    bound.carries([], frozenset(nodes))
    assert own_bindings(broker) == set()


def test_a_stand_in_counts_until_all_nodes_were_read(broker: Broker) -> None:
    nodes = [bytes([each]) * 16 for each in range(2)]
    broker.declare_exchange("prices", "topic")
    ways = [towards("town", node) for node in nodes]
    for name in (*ways, "$sf.town.only-named-so", stand_in("orders")):
        broker.declare_queue(name)
    bind_own(broker, OwnBinding("prices", stand_in("orders"), "eu", b"", False, BINDING_HERE))
    bound = TopicBindings(broker, "town", lambda line: pytest.fail(str(line)))
    for read, kept in ((nodes[:1], {"orders"}), (nodes, set())):
        assert bound.kept_in_turn({"orders", "bills"}, frozenset(read)) == kept


def test_a_stand_in_has_room_while_nobody_has_its_queue(broker: Broker) -> None:
    exchange = broker.declare_exchange("prices", "topic")
    broker.declare_queue("here", slots=1 << 13)
    broker.bind("prices", "here", "#")
    own: Any = SimpleNamespace(emptied=None, stands_for={})
    stand_ins = StandIns(own, broker, own, own, lambda line: pytest.fail(str(line)))
    assert len(stand_ins.sets({"orders": ()})) == 1
    bind_own(broker, OwnBinding("prices", stand_in("orders"), "#", b"", False, BINDING_HERE))
    for _ in range(3000):
        exchange.publish(b"", key="eu", timeout=PATIENCE)


def test_a_stand_in_of_a_former_version_stays(broker: Broker) -> None:
    declared = {"durable": True, "max_deliveries": None, "replicate": "all"}
    broker.declare_queue(stand_in("orders"), slots=1024, **declared)  # type: ignore[arg-type]
    own: Any = SimpleNamespace(emptied=None, stands_for={})
    stand_ins = StandIns(own, broker, own, own, lambda line: pytest.fail(str(line)))
    assert len(stand_ins.sets({"orders": ()})) == 1


def test_both_are_started_anew_and_what_is_published_before_they_meet_is_not_lost(
    cluster: Cluster,
) -> None:
    started(cluster, "east", "west")
    with at_all(cluster, "east", "west") as (east, west):
        east.declare_exchange("prices", "topic")
        west.declare_exchange("prices", "topic")
        for queue, key in (("there", "eu"), ("gone", "us")):
            west.declare_queue(queue, durable=True)
            west.bind("prices", queue, key)
        until(lambda: len(own_bindings(east)) == 2)
        cluster["west"].kill()
        cluster.sees("east", missing=("west",))
        east.exchange("prices").publish(b"1", key="eu")
    cluster["east"].kill()
    cluster["east"].start().becomes("live")  # it has not heard of the other one
    with at(cluster, "east") as east:
        for name in ("a look", "another"):  # what follows from one is done before the next
            east.declare_queue(name)
            cluster.copied("east", lambda queues, name=name: (name, "east", False) in queues)
        assert len(own_bindings(east)) == 2
        assert east.exchange("prices").publish(b"2", key="eu", mandatory=True) == 1
        with at(cluster, "west") as west:
            west.delete_queue("gone", force=True)
        cluster["west"].start().becomes("live")
        with at(cluster, "west") as west:
            assert taken(west.queue("there"), 2) == [b"1", b"2"]
        until(lambda: len(own_bindings(east)) == 1)
        cluster["west"].kill()
        cluster.sees("east", missing=("west",))
        assert east.exchange("prices").publish(b"3", key="eu") == 1
        assert cluster.order("east", verb="forget", node="west") == ""
        until(lambda: own_bindings(east) == set())
        assert east.exchange("prices").publish(b"4", key="eu") == 0
