"""What a broker sees of its vhost, and tells the others of its cluster."""

from __future__ import annotations

import pytest

import shmbroker
from shmbroker.core.codes import OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.exchange.binding import binding_for_c
from shmbroker.ipc.queue_replica.copy import declare, detach
from shmbroker.netbridge.cluster.address import Addresses
from shmbroker.netbridge.cluster.advert import SELECTORS_MAX, Binding, Queue
from shmbroker.netbridge.clustered.looking import Looked, Looking


def seen_of(vhost: str, undeliverable: str = "") -> Looked:
    with Looking(vhost, undeliverable, Addresses()) as looking:
        seen = looking.look()
    assert seen is not None
    return seen


@pytest.mark.parametrize("arguments", [b"\xc1", b"\x01", b"\x81\xa1a"])
def test_a_binding_whose_arguments_cannot_be_read_hides_nothing(
    broker: shmbroker.Broker, vhost: str, arguments: bytes
) -> None:
    broker.declare_exchange("prices", "topic")
    broker.declare_queue("orders")
    made, _kept = binding_for_c("prices", "orders", "eu", None, "all", "queue")
    given = ffi.from_buffer(arguments)
    made.arguments, made.arguments_length = given, len(arguments)
    assert lib.sb_bind(broker._connection, made) == OK  # as a program in C may
    assert [(each.key, each.arguments) for each in broker.bindings()] == [("eu", {})]
    seen = seen_of(vhost)
    bound = [each for each in seen.adverts if isinstance(each, Binding)]
    assert [(each.exchange, each.destination, each.key) for each in bound] == [
        ("prices", "orders", "eu")
    ]


def test_values_and_what_is_kept_are_given_to_nobody(broker: shmbroker.Broker, vhost: str) -> None:
    broker.settings("#", redistribution_delay=0)
    broker.declare_queue("prices", last_value=True)
    broker.declare_queue("kept", non_destructive=True)
    broker.declare_queue("orders")
    broker.declare_queue("town.undeliverable")
    own = broker.temporary_queue()
    seen = seen_of(vhost, "town.undeliverable")
    assert {each.name for each in seen.here if each.gives} == {"orders"}
    assert own.name in {each.name for each in broker.queues()}


@pytest.mark.parametrize("count", [SELECTORS_MAX, SELECTORS_MAX + 1])
def test_a_node_with_more_selectors_than_it_tells_keeps_its_messages(
    broker: shmbroker.Broker, other: shmbroker.Broker, vhost: str, count: int
) -> None:
    """Else two of them would send all that waits to and fro.  It knows them itself."""
    broker.declare_queue("orders", redistribution_delay=0, redistribution_filters="match")
    for number in range(count):
        queue = (broker, other)[number % 2].queue("orders")
        with pytest.raises(shmbroker.Empty):
            queue.select(f"n = {number}", timeout=0)
    seen = seen_of(vhost)
    [here], [told] = seen.here, seen.adverts
    assert isinstance(told, Queue)
    assert len(here.selectors) == count
    assert told.selectors == (here.selectors if count <= SELECTORS_MAX else ())
    assert here.gives == bool(told.selectors)


def test_a_replica_is_balanced_when_it_is_detached(broker: shmbroker.Broker, vhost: str) -> None:
    broker.declare_queue("orders")
    declare(broker, "orders", 0, b"tcp://far")
    looking = Looking(vhost, "", Addresses())
    for is_detached in (False, True):
        found = looking.look()
        assert found is not None
        assert [each.may_be_balanced for each in found.here] == [is_detached]
        detach(broker.queue("orders"))
    looking.close()
