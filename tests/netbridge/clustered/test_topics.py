"""What is published to an exchange at one node comes to queues that are bound at all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from shmbroker import Broker, Queue, Unroutable
from shmbroker.ipc.exchange.own_binding import own_bindings
from tests.netbridge.clustered.conftest import Cluster
from tests.netbridge.clustered.test_balancing import on_their_way, sets_in, until
from tests.netbridge.clustered.test_redistribution import at, numbers, started, taken

NAMES = ("east", "west", "north")


@contextmanager
def at_all(cluster: Cluster, *names: str) -> Iterator[list[Broker]]:
    with ExitStack() as opened:
        yield [opened.enter_context(at(cluster, name)) for name in names]


def subscribed(
    broker: Broker, queue: str, key: str = "eu.#", kind: str = "topic", *, durable: bool = True
) -> Queue:
    broker.declare_exchange("prices", kind)
    made = broker.declare_queue(queue, durable=durable, slots=8192, max_deliveries=None)
    broker.bind("prices", queue, key)
    return made


def carries(broker: Broker, count: int) -> None:
    """Waits until it has so many bindings for others."""
    until(lambda: len(own_bindings(broker)) == count)


def crossed(broker: Broker) -> int:
    """How many messages went to other nodes, or are on their way."""
    return sum(each.published for each in broker.queues() if each.name.startswith("$sf."))


def all_there(broker: Broker) -> None:
    until(lambda: on_their_way(broker) == 0)


@pytest.mark.parametrize("mode", ["off", "strict", "on-demand"])
def test_a_subscriber_at_each_node_gets_each_message_once(cluster: Cluster, mode: str) -> None:
    started(cluster, *NAMES, mode=mode)
    with at_all(cluster, *NAMES) as brokers:
        queues = [subscribed(each, f"of.{name}") for each, name in zip(brokers, NAMES, strict=True)]
        for each in brokers:
            carries(each, 2)
        for number, each in enumerate(brokers):
            exchange = each.exchange("prices")
            assert exchange.publish(b"%d" % number, key="eu.de", confirm="disk") == 3
            assert exchange.publish(b"of no interest", key="us") == 0
        for each in brokers:
            all_there(each)
        for queue in queues:
            assert sorted(message.body for message in queue.browse()) == [b"0", b"1", b"2"]
        [first, *_] = queues[1].browse()
        assert first.key == "eu.de"


def test_two_subscribers_at_a_node_are_one_crossing(cluster: Cluster) -> None:
    started(cluster, "east", "west")
    with at_all(cluster, "east", "west") as (east, west):
        prices = east.declare_exchange("prices", "topic")
        first, second = subscribed(west, "first"), subscribed(west, "second", durable=False)
        other = subscribed(west, "other", "*.de")
        carries(east, 2)
        for body in numbers(0, 10):
            assert prices.publish(body, key="eu.de", properties={"kind": "coffee"}) == 1
        assert crossed(east) == 10
        for queue in (first, second, other):
            assert taken(queue, 10) == numbers(0, 10)
        assert own_bindings(west) == set(), "nobody here wants anything"
        all_there(east)
        assert on_their_way(west) == 0
        assert [len(east.bindings()), east.exchanges()[0].bindings] == [0, 0], "of users"


def test_who_comes_gets_and_who_leaves_does_not(cluster: Cluster) -> None:
    started(cluster, "east", "west")
    with at_all(cluster, "east", "west") as (east, west):
        lost = east.declare_exchange("lost", "fanout")
        kept = east.declare_queue("kept")
        east.bind(lost, kept)
        prices = east.declare_exchange("prices", "topic", alternate="lost")
        prices.publish(b"0", key="eu")
        queue = subscribed(west, "late")
        carries(east, 1)
        assert prices.publish(b"1", key="eu", mandatory=True) == 1
        assert taken(queue, 1) == [b"1"]
        west.unbind("prices", queue, "eu.#")
        carries(east, 0)
        prices.publish(b"2", key="eu")
        assert taken(kept, 2) == [b"0", b"2"]
        west.bind("prices", queue, "eu.#")
        carries(east, 1)
        west.delete_queue("late", force=True)
        carries(east, 0)
        east.delete_queue("kept")
        with pytest.raises(Unroutable):
            prices.publish(b"3", key="eu", mandatory=True)


@pytest.mark.parametrize("kind", ["direct", "fanout", "headers"])
def test_exchanges_of_each_kind(cluster: Cluster, kind: str) -> None:
    started(cluster, "east", "west")
    with at_all(cluster, "east", "west") as (east, west):
        prices = east.declare_exchange("prices", kind)
        west.declare_exchange("prices", kind)
        queue = west.declare_queue("q", durable=True)
        if kind == "headers":
            west.bind("prices", queue, arguments={"a": 1, "b": 2}, match="any")
        else:
            west.bind("prices", queue, "eu")
        carries(east, 1)
        assert prices.publish(b"1", key="eu", properties={"b": 2}) == 1
        assert prices.publish(b"2", key="us", properties={"c": 2}) == (kind == "fanout")
        wanted = [b"1", b"2"] if kind == "fanout" else [b"1"]
        assert taken(queue, len(wanted)) == wanted
        all_there(east)
        assert queue.statistics().depth == 0


@pytest.mark.parametrize("mode", ["strict", "on-demand", "off"])
def test_a_balanced_queue_gets_one_copy_and_others_beside_it_theirs(
    cluster: Cluster, mode: str
) -> None:
    started(cluster, "east", "west", mode=mode)
    with at_all(cluster, "east", "west") as (east, west):
        orders = [subscribed(each, "orders") for each in (east, west)]
        beside = subscribed(west, "beside")
        east.bind("prices", "orders", "#")  # holds at west, too; there it is the same message
        until(lambda: on_their_way(east) + on_their_way(west) == 0)
        carries(east, 1)
        carries(west, 1 if mode != "off" else 2)
        if mode == "strict":  # until the turns of both are there
            until(lambda: [sets_in(east), sets_in(west)] == [1, 1])
        before = [each.statistics().depth for each in orders]
        for broker in (east, west):
            for body in numbers(0, 10):
                broker.exchange("prices").publish(body, key="eu.de")
        for broker in (east, west):
            all_there(broker)
        assert beside.statistics().depth == 20
        came = [each.statistics().depth - at for each, at in zip(orders, before, strict=True)]
        if mode == "off":
            assert came == [20, 20]
        else:
            assert sum(came) == 20
        if mode == "strict":
            assert came == [10, 10]


@pytest.mark.parametrize("victim", ["east", "west"])
def test_each_copy_is_there_once_whoever_is_killed(cluster: Cluster, victim: str) -> None:
    started(cluster, "east", "west")
    with at_all(cluster, "east", "west") as (east, west):
        here = subscribed(east, "here")
        there = [subscribed(west, name) for name in ("first", "second")]
        carries(east, 1)
        prices = east.exchange("prices")
        for round_ in range(3):
            for body in numbers(round_ * 300, round_ * 300 + 300):
                assert prices.publish(body, key="eu", confirm="shm") == 2
            cluster[victim].kill()
            cluster[victim].start().becomes("live")
        for queue in (here, *there):
            assert taken(queue, 900) == numbers(0, 900)
        all_there(east)
        assert [each.statistics().depth for each in there] == [0, 0]


def test_both_are_started_anew_and_what_is_published_before_they_meet_is_not_lost(
    cluster: Cluster,
) -> None:
    started(cluster, "east", "west")
    with at_all(cluster, "east", "west") as (east, west):
        east.declare_exchange("prices", "topic")
        subscribed(west, "there")
        subscribed(west, "gone", "us")
        carries(east, 2)
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
        carries(east, 1)


def test_a_node_that_is_forgotten_gets_no_more(cluster: Cluster) -> None:
    started(cluster, "east", "west")
    with at_all(cluster, "east", "west") as (east, west):
        prices = east.declare_exchange("prices", "topic")
        subscribed(west, "there")
        carries(east, 1)
        cluster["west"].kill()
        cluster.sees("east", missing=("west",))
        assert prices.publish(b"1", key="eu") == 1
        assert cluster.order("east", verb="forget", node="west") == ""
        carries(east, 0)
        assert prices.publish(b"2", key="eu") == 0


def test_ids_schedules_and_transactions(cluster: Cluster) -> None:
    started(cluster, "east", "west")
    with at_all(cluster, "east", "west") as (east, west):
        prices = east.declare_exchange("prices", "topic")
        other = east.declare_exchange("other", "topic")
        queue = subscribed(west, "there")
        west.declare_exchange("other", "topic")
        west.bind("other", queue, "#")
        carries(east, 2)
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
