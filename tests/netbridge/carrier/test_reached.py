"""What has to be confirmed before all that a queue, or an exchange, was given is."""

from __future__ import annotations

from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.core.layout import IN_INBOX
from shmbroker.netbridge.carrier.reached import everything_in, is_confirmed, queues_behind
from tests.ipc.paging.test_paging_durable import Host, declare


@pytest.fixture
def host(vhost: str, tmp_path: Path) -> Host:
    return Host(vhost, tmp_path)


def test_what_waits_in_pages_is_a_part_of_it(host: Host, vhost: str) -> None:
    with host.up() as broker:
        declare(broker).publish(b"x" * 100)
    with shmbroker.connect(f"shm://{vhost}") as broker:  # nobody writes journal or pages
        queue = broker.queue("orders")
        while queue.statistics().paged == 0:
            queue.publish(b"x" * 100, confirm="shm")
        places = everything_in(queue._queue)
        assert len(places) == 2
        assert places[1][1] & IN_INBOX
        assert [is_confirmed(each) for each in places] == [False, False]


def test_of_a_queue_that_is_not_durable_or_was_deleted_nothing_is_waited_for(
    broker: Broker,
) -> None:
    queue = broker.declare_queue("q")
    queue.publish(b"x")
    assert everything_in(queue._queue) == []
    durable = broker.declare_queue("d", durable=True)
    durable.publish(b"x", confirm="shm")
    [place] = everything_in(durable._queue)
    assert not is_confirmed(place)
    broker.delete_queue("d", force=True)
    assert is_confirmed(place)


def test_alternates_and_diverts_lead_to_queues_too(broker: Broker) -> None:
    for name, alternate in (("last", None), ("side", None), ("first", "last")):
        broker.declare_exchange(name, "topic", alternate=alternate)
        broker.declare_queue(f"of-{name}")
        broker.bind(name, f"of-{name}", "#")
    broker.divert("first", "side")
    broker.bind("side", "first", "#", to="exchange")  # in a circle
    broker.declare_queue("of-nobody")
    found = [each.name for each in queues_behind(broker, "first")]
    assert found == ["of-first", "of-last", "of-side"]
