"""Transactions that are open when their node leaves: those of programs on other hosts go on at the
other node, and those of programs in shared memory are waited for."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from typing import Any

import pytest

import shmbroker
from shmbroker import Moved, TransactionRolledBack
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.watch import Watch
from shmbroker.ipc.instance.whole import read_whole
from tests.cli.command import Shell
from tests.netbridge.clustered.conftest import PASSWORD, PATIENCE, Cluster
from tests.netbridge.clustered.test_scale_down import (
    TO_EAST,
    at,
    bodies,
    for_programs,
    numbers,
    started,
    stop,
    taken,
)

SOON = {"acceptors__apps__session_ttl": "10s"}
"""Longer than a program takes to come."""


def works(transaction: Any, broker: Any, said: bytes) -> bytes:
    """It publishes this, and acknowledges a message: which one."""
    message = broker.queue("orders").get(timeout=PATIENCE)
    body = bytes(message.body)
    transaction.publish("orders", said)
    transaction.ack(message)
    return body


def test_those_of_programs_on_other_hosts_go_on_at_the_other_node(cluster: Cluster) -> None:
    url = for_programs(cluster, **SOON)
    with ExitStack() as opened:
        commits, rolls_back, publishes, stays_away = (
            opened.enter_context(
                shmbroker.connect(
                    f"{url}?heartbeat-interval=60s&failover-mode={mode}",
                    user="apps",
                    password=PASSWORD,
                )
            )  # on a busy machine nobody is taken for lost
            for mode in ("automatic", "automatic", "automatic", "application")
        )
        orders = commits.declare_queue("orders", durable=True)
        for body in numbers(0, 6):
            orders.publish(body)
        open_ones = [each.transaction() for each in (commits, rolls_back, publishes, stays_away)]
        held = {
            works(transaction, broker, b"not committed")
            for transaction, broker in zip(open_ones[1::2], (rolls_back, stays_away), strict=True)
        }
        done = {works(open_ones[0], commits, b"first"), works(open_ones[0], commits, b"second")}
        open_ones[2].publish("orders", b"third")
        rest = sorted({*numbers(0, 6)} - held - done)
        assert stop(cluster)[0] == 0, cluster.story()

        open_ones[0].publish("orders", b"there")
        open_ones[0].commit()
        open_ones[2].commit()
        with at(cluster, "east") as east:
            found = east.queue("orders")
            there = [b"first", b"second", b"there", b"third"]
            assert bodies(found)[: len(rest)] == rest, "in order, and nobody gets what is held"
            assert taken(found, len(rest)) == rest
            open_ones[1].rollback()
            assert sorted(taken(found, 6)) == sorted([*there, *held])
            assert not len(found)
            with open_ones[0]._broker.transaction() as again:
                again.publish("orders", b"again")
            assert taken(found, 1) == [b"again"]


def test_one_that_is_not_whole_there_is_rolled_back_and_told(cluster: Cluster) -> None:
    """Its program cannot be asked: its broker is stopped for the other one, not for it."""
    url = for_programs(cluster)
    with shmbroker.connect(url, user="apps", password=PASSWORD) as far:
        orders = far.declare_queue("orders", durable=True)
        orders.publish(b"1")
        transaction = far.transaction()
        works(transaction, far, b"not committed")
        far._session._client.travelling.hears = lambda frame: True
        assert stop(cluster)[0] == 0, cluster.story()
        with pytest.raises(TransactionRolledBack, match="was rolled back; it was not done"):
            transaction.commit()
    with at(cluster, "east") as east:
        assert bodies(east.queue("orders")) == [b"1"]


def waits_for(cluster: Cluster, name: str) -> None:
    """`west` waits for a transaction of this program."""
    folder = cluster["west"].folder / status.RUN
    watch = Watch(folder)
    while name not in read_whole(folder / "scale-down").get("why", ""):
        assert watch.wait(PATIENCE), cluster.story()


def test_those_of_programs_in_shared_memory_are_waited_for(cluster: Cluster) -> None:
    started(cluster, "east")
    found: list[tuple[int, str]] = []
    with at(cluster, "west") as near:
        orders = near.declare_queue("orders", durable=True)
        orders.publish(b"1")
        transaction = near.transaction()
        works(transaction, near, b"committed")
        stopping = threading.Thread(target=lambda: found.append(stop(cluster)))
        stopping.start()
        waits_for(cluster, "test")
        shown = Shell(cluster.vhosts["west"])("status", str(cluster["west"].folder))
        assert f"waits for transactions of test ({os.getpid()})" in shown.out
        orders.publish(b"meanwhile")
        transaction.commit()
        stopping.join(10 * PATIENCE)
        assert found[0][0] == 0, cluster.story()
    assert cluster.bodies("east") == [b"meanwhile", b"committed"]


def test_half_of_the_timeout_later_they_are_rolled_back_and_told(cluster: Cluster) -> None:
    started(cluster, "east", **TO_EAST, ha__scale_down__timeout="10s")
    with at(cluster, "west") as near:
        near.declare_queue("orders", durable=True).publish(b"1")
        transaction = near.transaction()
        works(transaction, near, b"not committed")
        assert stop(cluster)[0] == 0, cluster.story()
        with pytest.raises(Moved):
            transaction.commit()
    assert cluster.bodies("east") == [b"1"]
