"""A transaction with a group of which nobody knows yet where it goes: others do not wait for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import shmbroker
from shmbroker import Broker, GroupingTimeout
from shmbroker.ipc.queue.grouped import ASKED, ROUTES, SEPARATOR, TIMEOUT
from tests.netbridge.client.conftest import calm
from tests.support.serving import Site

LOGIN = {"user": "site", "password": "correct horse battery"}
PATIENCE = 60.0


def declared(broker: Broker, timeout_ms: int) -> None:
    """A queue with groups, of which a broker keeps routes; the test is the broker."""
    broker.declare_queue(ROUTES, last_value=True, when_full="fail")
    broker.declare_queue(ASKED)
    broker.declare_queue("orders", groups=True, durable=False)
    broker.queue(ROUTES).publish(b"%d" % timeout_ms, key=TIMEOUT)


def test_others_are_served_meanwhile_and_it_is_committed_when_it_is_decided(served: Site) -> None:
    declared(served.broker, 60_000)
    orders = served.broker.queue("orders")
    with (
        shmbroker.connect(calm(served), **LOGIN) as far,
        shmbroker.connect(calm(served), **LOGIN) as other,
        ThreadPoolExecutor() as pool,
    ):

        def commits() -> None:
            with far.transaction() as tx:
                tx.publish("orders", b"1", group="anna")
                tx.publish("orders", b"2")

        def schedules() -> int:
            return far.queue("orders").publish(b"3", group="anna", deliver_after=3600)

        doing = [pool.submit(commits), pool.submit(schedules)]
        with served.broker.queue(ASKED).get(timeout=PATIENCE) as message:
            message.ack()
        other.declare_queue("other").publish(b"")
        assert not any(each.done() for each in doing)
        assert orders.statistics().depth == 0
        key = f"orders{SEPARATOR}anna"
        served.broker.queue(ROUTES).publish(b"orders", key=key, ttl=PATIENCE)
        doing[0].result(PATIENCE)
        assert sorted(bytes(each.body) for each in orders.browse()) == [b"1", b"2"]
        number = doing[1].result(PATIENCE)
        assert [each.id for each in orders.scheduled()] == [number]


def test_what_is_not_decided_in_time_is_not_published(served: Site) -> None:
    declared(served.broker, 50)
    with shmbroker.connect(calm(served), **LOGIN) as far:
        with pytest.raises(GroupingTimeout), far.transaction() as tx:
            tx.publish("orders", b"1", group="anna")
        with pytest.raises(GroupingTimeout):
            far.queue("orders").publish(b"", group="anna", deliver_after=3600)
        with far.transaction() as tx:
            tx.publish("orders", b"2")
    assert [bytes(each.body) for each in served.broker.queue("orders").browse()] == [b"2"]
