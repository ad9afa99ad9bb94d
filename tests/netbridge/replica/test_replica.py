"""Replication for real: loopback TCP, CURVE, two journals; the live is killed, and the other takes
over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import shmbroker
from tests.conftest import vhost_for_a_while
from tests.support.replicas import PATIENCE, Pair, wait_for

BOTH = "disk+replicated"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with vhost_for_a_while() as one, vhost_for_a_while() as two:
        shmbroker.vhost.create(one, arena_bytes=64 << 20)
        yield Pair(tmp_path, {"one": one, "two": two})


def test_a_confirm_waits_for_the_replica(pair: Pair) -> None:
    with (
        pair.live("one") as live,
        shmbroker.connect(f"shm://{pair.vhosts['one']}") as broker,
        ExitStack() as other,
    ):
        orders = broker.declare_queue("orders", durable=True)
        assert orders.publish(b"alone", timeout=PATIENCE) == 0
        assert orders.level == "disk"
        replica = other.enter_context(pair.replica("two"))
        wait_for(lambda: replica.may_take_over, lambda: (pair.lines("one"), pair.lines("two")))
        assert live.in_sync == ("two",)
        for number in range(1, 20):
            assert orders.publish(b"%d" % number, confirm="replicated", timeout=PATIENCE) == number
        assert orders.confirm(timeout=PATIENCE) == BOTH
        other.close()
        wait_for(lambda: orders.level == "disk")
        assert orders.publish(b"alone again", timeout=PATIENCE) == 20
        assert live.in_sync == ()


def test_what_is_replicated_is_there_after_a_takeover(pair: Pair) -> None:
    with (
        pair.live("one"),
        shmbroker.connect(f"shm://{pair.vhosts['one']}") as broker,
        pair.replica("two") as replica,
    ):
        orders = broker.declare_queue("orders", durable=True)
        wait_for(lambda: replica.may_take_over)
        bodies = [b"%d" % number for number in range(100)]
        for body in bodies:
            orders.publish(body, confirm="replicated", timeout=PATIENCE)
        with orders.get(timeout=PATIENCE):
            pass
        held = orders.get(timeout=PATIENCE)
        orders.confirm(timeout=PATIENCE)
        with pytest.raises(shmbroker.Error, match="is being restored"):
            shmbroker.connect(f"shm://{pair.vhosts['two']}")
        held.ack()
        there, journaler = replica.take_over(2)
        with there, journaler, shmbroker.connect(f"shm://{pair.vhosts['two']}") as program:
            queue = program.queue("orders")
            left = [message.body for message in queue.consume(timeout=0)]
            assert left in (bodies, bodies[1:], bodies[2:]), "the last acknowledgements may lag"
            queue.publish(b"more", timeout=PATIENCE)
            assert queue.confirm(timeout=PATIENCE) == "disk"
