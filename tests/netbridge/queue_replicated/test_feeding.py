"""The side of originals, on a link that is lost in the middle of what it says."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

import shmbroker
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.queue_replica.codec import encode
from shmbroker.netbridge.queue_replica.told import Follow
from shmbroker.netbridge.queue_replicated.confirming import Confirming
from shmbroker.netbridge.queue_replicated.feeding import Feedings
from shmbroker.netbridge.wire.frame import Frame, Talk

FOLLOWS = 1
"""What a link says first: that the queue is followed.  Then the messages, then the moment."""


class LostInSaying:
    """An end of a link: libzmq finds in a send that the connection is gone."""

    machine = SimpleNamespace(handshake=SimpleNamespace(frame_bytes=1 << 16))

    def __init__(self, at: int) -> None:
        self.at = at
        self.said = 0
        self.feedings: Feedings

    def say(self, frame: Frame) -> None:
        self.said += 1
        if self.said == self.at:
            self.feedings.gone(self)  # type: ignore[arg-type]


@pytest.mark.parametrize("at", [FOLLOWS + 1, FOLLOWS + 2])
def test_a_link_that_is_lost_in_what_it_says_is_read_for_no_more(
    broker: shmbroker.Broker, vhost: str, at: int
) -> None:
    queue = broker.declare_queue("original")
    queue.publish(b"first")
    end: Any = LostInSaying(at)
    with shmbroker.connect(f"shm://{vhost}", name="network") as own, NetworkThread(own) as thread:
        end.feedings = feedings = Feedings(thread, "a", Confirming(1.0, print), is_on=True)

        def runs() -> None:
            feedings.came(end)
            feedings.heard(end, Talk(encode(Follow(1, "original", b"", 0))))
            feedings.woken(time.monotonic())

        thread.ask(runs)
        assert end.said == at
        thread.ask(lambda: None)
        assert not thread.has_ended
