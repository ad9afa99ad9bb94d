"""Transactions that are open when their node leaves are rolled back, and programs hear of it."""

from __future__ import annotations

import pytest

import shmbroker
from shmbroker import Moved, TransactionRolledBack
from tests.netbridge.clustered.conftest import PASSWORD, PATIENCE, Cluster
from tests.netbridge.clustered.test_scale_down import at, bodies, for_programs, stop, taken


def test_they_are_rolled_back_whole_and_told(cluster: Cluster) -> None:
    url = for_programs(cluster)
    with (
        shmbroker.connect(url, user="apps", password=PASSWORD) as far,
        at(cluster, "west") as near,
    ):
        orders = near.declare_queue("orders", durable=True)
        for body in (b"1", b"2", b"3"):
            orders.publish(body)
        here, remote = near.transaction(), far.transaction()
        for transaction, queue in ((here, orders), (remote, far.queue("orders"))):
            message = queue.get(timeout=PATIENCE)
            transaction.publish("orders", b"not committed")
            transaction.ack(message)
        assert stop(cluster)[0] == 0, cluster.story()
        with pytest.raises(Moved):
            here.commit()
        with pytest.raises(TransactionRolledBack) as told:
            remote.commit()
        assert "the transaction was rolled back; it was not done" in str(told.value)
        with far.transaction() as again:
            again.publish("orders", b"4")
    with at(cluster, "east") as east:
        found = east.queue("orders")
        assert sorted(bodies(found)) == [b"1", b"2", b"3", b"4"]
        assert sorted(taken(found, 4)) == [b"1", b"2", b"3", b"4"]
