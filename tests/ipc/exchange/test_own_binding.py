"""Bindings of a cluster's own, beside those of users."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from threading import Event, Thread

import pytest

import shmbroker
from shmbroker import Broker, InvalidArgument, NotFound, QueueFull, Unroutable
from shmbroker.core.layout import BINDING_HERE
from shmbroker.ipc.exchange.own_binding import (
    OwnBinding,
    bind_own,
    change_own,
    own_bindings,
    unbind_own,
)
from tests.support.host import PATIENCE

WAY = "$sf.c.n"
CHANGES = 300
MANY = 1500


def own(queue: str = WAY, key: str = "eu.#", target: int = 7) -> OwnBinding:
    return OwnBinding("prices", queue, key, b"", False, target)


@pytest.fixture
def prices(broker: Broker) -> Broker:
    broker.declare_exchange("prices", "topic")
    broker.declare_queue(WAY)
    broker.declare_queue("here")
    return broker


def test_they_route_and_are_in_no_list_of_users(prices: Broker) -> None:
    bind_own(prices, own())
    bind_own(prices, own())
    assert own_bindings(prices) == {own()}
    assert prices.exchange("prices").publish(b"1", key="eu.de", mandatory=True) == 1
    assert prices.queue(WAY).statistics().depth == 1
    assert prices.bindings() == []
    assert [each.bindings for each in prices.exchanges()] == [0]
    prices.delete_exchange("prices")  # it is not in use here
    assert own_bindings(prices) == set()


def test_a_users_binding_is_another_one(prices: Broker) -> None:
    bind_own(prices, own("here", target=BINDING_HERE))
    prices.bind("prices", "here", "eu.#")
    assert len(prices.bindings()) == len(own_bindings(prices)) == 1
    assert prices.exchange("prices").publish(b"1", key="eu.de") == 1, "a queue gets it once"
    prices.unbind("prices", "here", "eu.#")
    with pytest.raises(NotFound):
        prices.unbind("prices", "here", "eu.#")
    assert prices.exchange("prices").publish(b"2", key="eu.de") == 1
    unbind_own(prices, own("here", target=BINDING_HERE))
    with pytest.raises(NotFound):
        unbind_own(prices, own("here", target=BINDING_HERE))
    with pytest.raises(Unroutable):
        prices.exchange("prices").publish(b"3", key="eu.de", mandatory=True)
    assert [message.body for message in prices.queue("here").browse()] == [b"1", b"2"]


def test_a_message_goes_to_a_node_once_with_each_target(prices: Broker) -> None:
    for key, target in (("eu.#", 7), ("#", 7), ("eu.de", 9), ("#", 9)):
        bind_own(prices, own(key=key, target=target))
    assert prices.exchange("prices").publish(b"1", key="eu.de") == 2
    assert prices.queue(WAY).statistics().depth == 2


def test_an_id_is_compared_with_its_target(prices: Broker) -> None:
    way = prices.declare_queue("$sf.c.other", duplicate_ids=100)
    for target in (7, 9):
        bind_own(prices, own(way.name, target=target))
    for _ in range(2):
        assert prices.exchange("prices").publish(b"1", key="eu", message_id="a") == 2
    assert way.statistics().depth == 2


def test_a_subscription_by_name_that_the_cluster_has_bound_is_what_it_was(prices: Broker) -> None:
    with prices.subscription("audit", exchange="prices", key="eu.#", durable=True):
        bind_own(prices, own("sub.audit", "us.#", BINDING_HERE))
    [listed] = prices.subscriptions()
    assert (listed.exchange, listed.key) == ("prices", "eu.#")
    with prices.subscription("audit", exchange="prices", key="eu.#", durable=True) as audit:
        prices.exchange("prices").publish(b"1", key="us.ny")
        assert [message.body for message in audit.browse()] == [b"1"]


def ways_meanwhile(
    prices: Broker, former: list[OwnBinding], later: list[OwnBinding], times: int
) -> set[int]:
    """How many of them messages have followed that were published while they changed."""
    begun, is_over, counts = Event(), Event(), set[int]()

    def publishes() -> None:
        with shmbroker.connect(f"shm://{prices.vhost}") as broker:
            exchange = broker.exchange("prices")
            while not is_over.is_set():
                with suppress(QueueFull):
                    counts.add(exchange.publish(b"", key="5.x", timeout=0))
                    begun.set()

    change_own(prices, former, [])
    program = Thread(target=publishes)
    program.start()
    assert begun.wait(PATIENCE)
    for _ in range(times):
        assert change_own(prices, later, former) == {}
        assert change_own(prices, former, later) == {}
        for each in (former[0], later[0]):
            prices.queue(each.queue).purge()
    is_over.set()
    program.join()
    assert own_bindings(prices) == set(former)
    return counts


def test_several_change_at_one_moment(prices: Broker) -> None:
    """Whoever publishes meanwhile follows what was before, or what is then: one way, not both."""
    prices.declare_queue("there")
    former, later = [own("there", f"{n}.#", 7) for n in range(9)], [own("here", "#", 9)]
    assert ways_meanwhile(prices, former, later, CHANGES) == {1}


def test_no_message_is_lost_if_that_takes_long(prices: Broker) -> None:
    """Nobody waits for the end of it, and follows both rather than none."""
    for name in ("there", "elsewhere"):
        prices.declare_queue(name, when_full="drop-oldest")
    former, later = (
        [own(name, f"{n}.#", target) for n in range(MANY)]
        for name, target in (("there", 7), ("elsewhere", 9))
    )
    assert ways_meanwhile(prices, former, later, 8) <= {1, 2}


def test_those_that_cannot_be_changed_are_told_and_the_others_are(prices: Broker) -> None:
    missing, gone = own("none"), own(key="never")
    failed = change_own(prices, [missing, own()], [gone])
    assert failed.keys() == {missing, gone}
    assert all(isinstance(each, NotFound) for each in failed.values())
    assert "there is no queue 'none'" in str(failed[missing])
    assert own_bindings(prices) == {own()}


@pytest.mark.parametrize(
    "wrong", [own(key="eu\0"), replace(own(), arguments=b"\xc1"), replace(own(), arguments=b"\x01")]
)
def test_one_that_no_binding_can_be_fails_by_itself(prices: Broker, wrong: OwnBinding) -> None:
    bind_own(prices, own(key="ended"))
    failed = change_own(prices, [own(key="1"), wrong, own(key="2")], [own(key="ended")])
    assert failed.keys() == {wrong}
    assert isinstance(failed[wrong], InvalidArgument)
    assert own_bindings(prices) == {own(key="1"), own(key="2")}
