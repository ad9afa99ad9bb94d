"""A queue that a message goes to cannot be opened: its ring is gone."""

from __future__ import annotations

import pytest

import shmbroker
from shmbroker import Broker, Empty
from tests.conftest import SHM


def test_who_publishes_is_told_and_not_that_there_is_one_queue_less(
    broker: Broker, vhost: str
) -> None:
    broker.declare_exchange("all", "fanout")
    for name in ("first", "second"):
        before = set(SHM.glob(f"shmbroker.{vhost}.queue-*"))
        broker.bind("all", broker.declare_queue(name))
    (ring,) = set(SHM.glob(f"shmbroker.{vhost}.queue-*")) - before
    with shmbroker.connect(f"shm://{vhost}") as other:
        ring.unlink()
        with pytest.raises(shmbroker.Error, match=ring.name):
            other.exchange("all").publish(b"x")
        with pytest.raises(Empty):
            other.queue("first").receive(timeout=0)
        broker.delete_queue("second", force=True)
        assert other.exchange("all").publish(b"x") == 1
