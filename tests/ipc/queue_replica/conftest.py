"""Another host with a replica, and what its original has is in the vhost of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import shmbroker
from shmbroker import Broker
from shmbroker.ipc.queue_replica.copy import declare
from tests.conftest import vhost_for_a_while

ARENA_BYTES = 64 << 20


@contextmanager
def following(slots: int) -> Iterator[Broker]:
    """It has a replica `q`, and another queue."""
    with (
        vhost_for_a_while() as name,
        shmbroker.connect(f"shm://{name}", create=True, arena_bytes=ARENA_BYTES) as made,
    ):
        made.declare_queue("other")
        made.declare_queue("q", slots=slots)
        declare(made, "q", 0, b"what it follows")
        yield made
