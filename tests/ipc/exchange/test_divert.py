"""Diverts: what goes to one exchange goes to another as well, or only there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker, aio
from tests.support.killed import victims


@pytest.fixture
def broker(broker: Broker) -> Broker:
    """Two exchanges, each with a queue of its own that gets all."""
    broker.declare_exchange("orders", "topic")
    broker.declare_exchange("audit", "fanout")
    for name in ("orders", "audit"):
        broker.declare_queue(f"{name}.all", slots=64)
        broker.bind(name, f"{name}.all", "#")
    return broker


def taken(broker: Broker, key: str = "eu") -> set[str]:
    """Which queues a message goes to."""
    broker.exchange("orders").publish(b"1", key=key)
    names = {queue.name for queue in broker.queues() if queue.depth}
    for queue in broker.queues():
        broker.queue(queue.name).purge()
    return names


def test_a_copy_goes_there_as_well(broker: Broker) -> None:
    assert taken(broker) == {"orders.all"}
    broker.divert("orders", "audit")
    assert taken(broker) == {"orders.all", "audit.all"}
    broker.undivert("orders", "audit")
    assert taken(broker) == {"orders.all"}


def test_only_there(broker: Broker) -> None:
    broker.divert(source="orders", to="audit", exclusive=True)
    assert taken(broker) == {"audit.all"}
    broker.undivert("orders", "audit")
    assert taken(broker) == {"orders.all"}


def test_by_key(broker: Broker) -> None:
    broker.divert("orders", "audit", exclusive=True, key="eu.#")
    assert taken(broker, "eu.de") == {"audit.all"}
    assert taken(broker, "us.ny") == {"orders.all"}


def test_several_exclusive_ones_all_get_it(broker: Broker) -> None:
    broker.declare_exchange("other", "fanout")
    broker.declare_queue("other.all", slots=64)
    broker.bind("other", "other.all")
    broker.divert("orders", "audit", exclusive=True)
    broker.divert("orders", "other", exclusive=True, key="eu")
    assert taken(broker, "eu") == {"audit.all", "other.all"}
    assert taken(broker, "us") == {"audit.all"}


def test_loops_end(broker: Broker) -> None:
    broker.divert("orders", "audit")
    broker.divert("audit", "orders")
    assert taken(broker) == {"orders.all", "audit.all"}
    broker.divert("orders", "orders")
    assert taken(broker) == {"orders.all", "audit.all"}


@pytest.mark.parametrize("kind", ["fanout", "headers", "direct"])
def test_from_each_kind(broker: Broker, kind: str) -> None:
    broker.declare_exchange("from", kind)
    broker.divert("from", "audit", key="k" if kind == "direct" else None)
    assert broker.exchange("from").publish(b"1", key="k") == 1
    assert broker.queue("audit.all").receive(timeout=0) == b"1"


def test_where_the_other_exchange_is_deleted_all_is_as_before(broker: Broker) -> None:
    broker.divert("orders", "audit", exclusive=True)
    broker.delete_exchange("audit", force=True)
    assert taken(broker) == {"orders.all"}


def test_they_are_listed_with_the_bindings(broker: Broker) -> None:
    broker.divert("orders", "audit", exclusive=True)
    broker.divert("audit", "orders")
    listed = {(each.exchange, each.to, each.key, each.exclusive) for each in broker.bindings()}
    assert listed == {
        ("orders", "queue", "#", False),
        ("audit", "queue", "#", False),
        ("orders", "exchange", "#", True),
        ("audit", "exchange", "", False),
    }


def test_twice_is_once_and_otherwise_an_error(broker: Broker) -> None:
    for _ in range(2):
        broker.divert("orders", "audit")
    says = "exchange 'orders' is bound to 'audit' and that is not exclusive: unbind first"
    with pytest.raises(shmbroker.DeclaredDifferently, match=says):
        broker.divert("orders", "audit", exclusive=True)
    broker.undivert("orders", "audit")
    broker.divert("orders", "audit", exclusive=True)
    with pytest.raises(shmbroker.DeclaredDifferently, match="and that is exclusive"):
        broker.bind("orders", "audit", "#", to="exchange")


def test_a_row_that_was_exclusive_is_so_no_more(broker: Broker) -> None:
    broker.divert("orders", "audit", exclusive=True)
    broker.undivert("orders", "audit")
    broker.bind("orders", "audit.all", "#")
    assert taken(broker) == {"orders.all", "audit.all"}


def test_what_cannot_be_diverted(broker: Broker) -> None:
    broker.declare_exchange("direct", "direct")
    with pytest.raises(shmbroker.InvalidArgument, match="'direct' is direct: name the key"):
        broker.divert("direct", "audit")
    for source, to in (("nowhere", "audit"), ("orders", "nowhere")):
        with pytest.raises(shmbroker.NotFound, match="there is no exchange 'nowhere'"):
            broker.divert(source, to)
    with pytest.raises(shmbroker.NotFound, match="'audit' is not bound to exchange 'orders'"):
        broker.undivert("orders", "audit")
    with pytest.raises(shmbroker.InvalidName):
        broker.divert("orders", "a/b")


def test_for_asyncio(vhost: str, broker: Broker) -> None:
    async def main() -> None:
        async with aio.connect(f"shm://{vhost}") as connected:
            await connected.divert("orders", "audit", exclusive=True)
            assert taken(broker) == {"audit.all"}
            await connected.undivert("orders", "audit")

    asyncio.run(main())


def divert_and_back(broker: Broker) -> None:
    broker.divert("orders", "audit", exclusive=True)
    broker.undivert("orders", "audit")


def test_whoever_is_killed_a_message_goes_one_way_or_the_other(
    vhost: str, broker: Broker, tmp_path: Path
) -> None:
    for _number, _victim in victims(f"shm://{vhost}", tmp_path, divert_and_back, 5):
        diverted = any(each.exclusive for each in broker.bindings())
        assert taken(broker) == ({"audit.all"} if diverted else {"orders.all"})
        if diverted:
            broker.undivert("orders", "audit")
        broker.divert("orders", "audit")  # another binding would be DeclaredDifferently
        broker.undivert("orders", "audit")
