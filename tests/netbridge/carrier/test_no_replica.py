"""A queue that follows one of another broker is neither shipped nor shipped to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import shmbroker
from shmbroker import Broker, ReplicaReadOnly
from shmbroker.ipc.queue_replica.copy import declare, detach
from shmbroker.netbridge.carrier.opening import Opening
from shmbroker.netbridge.carrier.source import Shipped, Source
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.action import OpenSink
from shmbroker.netbridge.wire.words import Level, TargetKind


def ships(broker: Broker, thread: NetworkThread) -> None:
    """It would be emptied, and the original shipped again from each start."""
    Source(broker, thread.sleeper, "link", Shipped("copy", "there"), lambda: None).close()


def is_shipped_to(broker: Broker, thread: NetworkThread) -> None:
    said = OpenSink(0, TargetKind.QUEUE, "copy", b"o" * 16, Level.SHM, True, 0)
    opening = Opening(broker, said, 1.0)
    opening.begin()
    opening.drop()


@pytest.mark.parametrize("does", [ships, is_shipped_to])
def test_a_replica_has_no_link_before_it_is_detached(
    vhost: str, does: Callable[[Broker, NetworkThread], None]
) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        NetworkThread(broker) as thread,
    ):
        broker.declare_queue("copy")
        declare(broker, "copy", 0, b"what it follows")
        with pytest.raises(ReplicaReadOnly, match="ha detach"):
            thread.ask(lambda: does(broker, thread))
        detach(broker.queue("copy"))
        thread.ask(lambda: does(broker, thread))
