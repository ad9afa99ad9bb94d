"""Programs on other hosts are told why a message of a group is refused, as those here are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shmbroker import Broker, Error, GroupingTimeout, InvalidArgument, Queue
from tests.netbridge.clustered.conftest import Cluster
from tests.netbridge.clustered.test_grouping import HAS, SHORT, grouping, has_handler
from tests.netbridge.clustered.test_programs import add, connected
from tests.netbridge.clustered.test_redistribution import at
from tests.support.until import until


def refused(kind: type[Error], publishes: Callable[[], object]) -> str:
    with pytest.raises(kind) as error:
        publishes()
    assert type(error.value) is kind
    return str(error.value).rpartition("publishing to ")[2].partition(": ")[2]


def in_transaction(broker: Broker, queue: Queue, **what: Any) -> Callable[[], None]:
    def publishes() -> None:
        with broker.transaction() as tx:
            tx.publish(queue, b"", **what)

    return publishes


def test_a_program_elsewhere_is_told_why(cluster: Cluster) -> None:
    uri = add(cluster, "east", **grouping(False, **SHORT))
    cluster["east"].start().becomes("live")
    with at(cluster, "east") as east, connected(uri) as remote:
        until(lambda: has_handler(east))
        here, far = east.declare_queue("orders", **HAS), remote.queue("orders")
        why = refused(InvalidArgument, lambda: far.publish(b"", group="anna"))
        assert why.startswith("a message of a group of queue 'orders' cannot come from another")
        local = refused(GroupingTimeout, in_transaction(east, here, group="anna"))
        assert local.startswith("to which node group 'anna' of queue 'orders' goes was not decided")
        told = refused(GroupingTimeout, in_transaction(remote, far, group="anna"))
        assert told.startswith("to which node group 'anna' of queue 'orders' goes is not decided")
        far.publish(b"without")
        assert here.statistics().depth == 1
