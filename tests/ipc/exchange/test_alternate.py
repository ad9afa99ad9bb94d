"""Where messages go that no binding takes: another exchange, as long as it is there."""

from __future__ import annotations

import pytest

from shmbroker import Broker, DeclaredDifferently, InvalidArgument


def declare(broker: Broker) -> None:
    """As a program does when it starts."""
    broker.declare_exchange("lost", "fanout")
    broker.declare_exchange("news", "topic", alternate="lost")


def test_one_that_was_deleted_and_declared_again_is_it_again(broker: Broker) -> None:
    declare(broker)
    broker.delete_exchange("lost", force=True)
    declare(broker)
    broker.declare_queue("q")
    broker.bind("lost", "q")
    assert broker.exchange("news").publish(b"1", key="eu") == 1
    with pytest.raises(DeclaredDifferently, match="kind or alternate"):
        broker.declare_exchange("news", "topic")


def test_without_the_deleted_one_it_is_declared_as_it_is(broker: Broker) -> None:
    declare(broker)
    broker.delete_exchange("lost", force=True)
    broker.declare_exchange("news", "topic")
    assert [(each.name, each.alternate) for each in broker.exchanges()] == [("news", None)]
    with pytest.raises(DeclaredDifferently):
        broker.declare_exchange("news", "fanout")


def test_none_is_its_own_alternate(broker: Broker) -> None:
    """After a restart of the host neither could be made before the other."""
    declare(broker)
    broker.delete_exchange("lost", force=True)
    broker.declare_exchange("lost", "fanout", alternate="news")
    for spare in ("lost", "news"):
        with pytest.raises(InvalidArgument, match="its own alternate"):
            broker.declare_exchange("news", "topic", alternate=spare)
    broker.delete_exchange("lost", force=True)
    declare(broker)
