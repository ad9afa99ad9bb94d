"""Bindings of a cluster's own, beside those of users."""

from __future__ import annotations

import pytest

from shmbroker import Broker, NotFound, Unroutable
from shmbroker.core.layout import BINDING_HERE
from shmbroker.ipc.exchange.own_binding import OwnBinding, bind_own, own_bindings, unbind_own

WAY = "$sf.c.n"


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
