"""What a link ships."""

from __future__ import annotations

import pytest

import shmbroker
from shmbroker import ReplicaReadOnly
from shmbroker.ipc.queue_replica.copy import declare, detach
from shmbroker.netbridge.carrier.source import Shipped, Source
from shmbroker.netbridge.carrier.thread import NetworkThread


def test_a_replica_is_not_shipped_before_it_is_detached(vhost: str) -> None:
    """It would be emptied, and the original shipped again from each start."""
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        NetworkThread(broker) as thread,
    ):
        broker.declare_queue("copy")
        declare(broker, "copy", 0, b"what it follows")

        def begun() -> None:
            Source(broker, thread.sleeper, "link", Shipped("copy", "there"), lambda: None).close()

        with pytest.raises(ReplicaReadOnly, match="ha detach"):
            thread.ask(begun)
        detach(broker.queue("copy"))
        thread.ask(begun)
