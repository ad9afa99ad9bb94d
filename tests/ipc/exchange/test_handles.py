"""Handles of exchanges: a program may use many, one after the other."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from shmbroker import Broker, NotFound

MANY = 300
MOST_BYTES = 100 << 20


def address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def test_those_that_were_deleted_keep_no_memory(broker: Broker) -> None:
    broker.declare_queue("q")
    before = address_space()
    for number in range(MANY):
        name = f"job.{number}"
        broker.declare_exchange(name, "fanout")
        broker.bind(name, "q")
        exchange = broker.exchange(name)
        assert exchange.publish(b"x") == 1
        broker.delete_exchange(name, force=True)
    assert address_space() - before < MOST_BYTES


def test_one_that_was_deleted_says_so(broker: Broker) -> None:
    for name in ("former", "later"):
        broker.declare_exchange(name, "fanout")
    former = broker.exchange("former")
    assert former.publish(b"x") == 0
    broker.delete_exchange("former")
    broker.exchange("later")
    for _ in range(2):
        with pytest.raises(NotFound, match="'former' was deleted"):
            former.publish(b"x")
