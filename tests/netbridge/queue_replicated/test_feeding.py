"""The side of originals: on a link that is lost in the middle of what it says, and with replicas
that say what ours does not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import shmbroker
from shmbroker import Unconfirmed
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.queue_replica.codec import encode, from_original
from shmbroker.netbridge.queue_replica.told import (
    Counted,
    Follow,
    Has,
    Leave,
    OfOriginal,
    OfReplica,
    Shown,
)
from shmbroker.netbridge.queue_replicated.confirming import Confirming
from shmbroker.netbridge.queue_replicated.feeding import Feedings
from shmbroker.netbridge.wire.frame import Frame, Talk
from tests.netbridge.queue_replicated.conftest import PATIENCE
from tests.support.host import journaling

FOLLOWS = 1
"""What a link says first: that the queue is followed.  Then the messages, then the moment."""


class Ended:
    """An end of a link, and why it was ended."""

    def __init__(self) -> None:
        self.why: list[str] = []
        self.said: list[OfOriginal] = []
        self.machine = SimpleNamespace(
            handshake=SimpleNamespace(frame_bytes=1 << 16),
            malformed=lambda error, now: [str(error)],
        )

    def say(self, frame: Frame) -> None:
        if isinstance(frame, Talk):
            self.said.append(from_original(frame.body))

    def does(self, actions: list[str]) -> None:
        self.why += actions


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


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([Follow(1, "original", b"", 0), Follow(2, "original", b"", 0), Leave(1)], "two numbers"),
        ([Follow(1, "original", b"", 0), Shown(1)], "shows 1 moments of 0"),
        ([Follow(1, "original", b"", 0), Has(1)], "has 1 bytes of 0"),
        ([Shown(1)], "shows 1 moments of 0"),
        ([Leave(1), Leave(1), Has(0), Shown(0)], ""),
    ],
)
def test_a_replica_that_says_what_ours_does_not_loses_its_link_alone(
    broker: shmbroker.Broker, vhost: str, said: list[OfReplica], why: str
) -> None:
    broker.declare_queue("original", durable=True, confirm_replicas=1)
    end: Any = Ended()
    with shmbroker.connect(f"shm://{vhost}", name="network") as own, NetworkThread(own) as thread:
        feedings = Feedings(thread, "a", Confirming(1.0, print), is_on=True)

        def runs() -> None:
            feedings.came(end)
            for each in said:
                feedings.heard(end, Talk(encode(each)))
            feedings.woken(time.monotonic())
            feedings.gone(end)

        thread.ask(runs)
        thread.ask(lambda: None)
        assert not thread.has_ended
    assert why in "".join(end.why)
    assert bool(why) == bool(end.why)


def test_a_link_that_is_lost_in_news_of_several_queues_ends_alone(
    broker: shmbroker.Broker, vhost: str
) -> None:
    for name in ("first", "second"):
        broker.declare_queue(name)
    with shmbroker.connect(f"shm://{vhost}", name="network") as own, NetworkThread(own) as thread:
        feedings = Feedings(thread, "a", Confirming(1.0, print), is_on=True)

        def follows(end: Any) -> None:
            end.feedings = feedings
            feedings.came(end)
            for number, name in enumerate(("first", "second"), 1):
                feedings.heard(end, Talk(encode(Follow(number, name, b"", 0))))

        ends: list[Any] = [LostInSaying(3) for _ in range(3)]

        def runs() -> None:
            for end in ends[:2]:
                follows(end)
            feedings.chained("first")
            follows(ends[2])
            for name in ("first", "second"):
                broker.delete_queue(name)
            feedings.woken(time.monotonic())

        thread.ask(runs)
        assert [each.said for each in ends] == [3, 3, 3]
        thread.ask(lambda: None)
        assert not thread.has_ended


def test_a_replica_is_told_once_that_it_is_counted(broker: shmbroker.Broker, vhost: str) -> None:
    broker.declare_queue("first")
    broker.declare_queue("second")
    end: Any = Ended()
    counted: list[int] = []
    with shmbroker.connect(f"shm://{vhost}", name="network") as own, NetworkThread(own) as thread:
        feedings = Feedings(thread, "a", Confirming(1.0, print), is_on=True)

        def says(*said: OfReplica) -> None:
            for each in said:
                feedings.heard(end, Talk(encode(each)))
            counted.append(sum(isinstance(each, Counted) for each in end.said))

        def runs() -> None:
            feedings.came(end)
            says(Follow(1, "first", b"", 0))
            feedings.woken(time.monotonic())
            says(Follow(2, "second", b"", 0))
            says(Shown(1), Shown(1))
            feedings.woken(time.monotonic())
            says(Shown(2))
            feedings.gone(end)

        thread.ask(runs)
    assert counted == [0, 0, 1, 2]
    assert end.why == []


def test_a_queue_that_is_deleted_in_the_middle_of_a_moment_ends_no_link(
    broker: shmbroker.Broker, vhost: str
) -> None:
    """All are looked at ten times a second; a moment of the others may end before that."""
    broker.declare_queue("gone", durable=True, confirm_replicas=1)
    busy = broker.declare_queue("busy")
    end: Any = Ended()
    with shmbroker.connect(f"shm://{vhost}", name="network") as own, NetworkThread(own) as thread:
        feedings = Feedings(thread, "a", Confirming(1.0, print), is_on=True)

        def runs() -> None:
            feedings.came(end)
            for number, name in enumerate(("gone", "busy"), 1):
                feedings.heard(end, Talk(encode(Follow(number, name, b"", 0))))
            feedings.woken(time.monotonic())
            broker.delete_queue("gone")
            busy.publish(b"x")
            feeding = feedings._feedings[end]
            feeding.due, feeding._looked_at = 0.0, time.monotonic()
            feedings.woken(time.monotonic())
            feedings.gone(end)

        thread.ask(runs)
    assert end.why == []


@pytest.mark.parametrize("is_behind", [False, True])
def test_who_has_nothing_to_show_owes_no_answer_while_another_queue_holds_it_up(
    broker: shmbroker.Broker, vhost: str, tmp_path: Path, is_behind: bool
) -> None:
    """Nothing is read while what was committed is not on the disk."""
    queue = broker.declare_queue("original", durable=True, confirm_replicas=1)
    other = broker.declare_queue("other", durable=True)
    end: Any = Ended()
    told: list[Mapping[str, Any]] = []
    confirming = Confirming(1.0, told.append)
    with ExitStack() as opened:
        own = opened.enter_context(shmbroker.connect(f"shm://{vhost}", name="network"))
        thread = opened.enter_context(NetworkThread(own))
        feedings = Feedings(thread, "a", confirming, is_on=True)

        def reads(*said: OfReplica) -> None:
            for each in said:
                feedings.heard(end, Talk(encode(each)))
            feedings._feedings[end].due = 0.0
            feedings.woken(time.monotonic())

        with journaling(vhost, tmp_path / "journal"):
            queue.publish(b"first", timeout=PATIENCE)
            thread.ask(lambda: feedings.came(end))
            thread.ask(lambda: reads(Follow(1, "original", b"", 0)))
            thread.ask(lambda: reads(Has(feedings._feedings[end]._sent), Shown(1)))
            if is_behind:
                with pytest.raises(Unconfirmed):
                    queue.publish(b"second", timeout=0.0)
                queue.confirm(level="disk", timeout=PATIENCE)
        transaction = broker.transaction()
        transaction.publish(other, b"is not on the disk")
        with pytest.raises(Unconfirmed):
            transaction.commit(timeout=0.0)
        thread.ask(reads)
        # asked of its thread: in the midst of a read nothing is held yet
        assert thread.ask(lambda: feedings._feedings[end]._originals.is_held)
        thread.ask(lambda: confirming.woken(time.monotonic() + 1.1))
        assert bool(told) == is_behind
        thread.ask(lambda: feedings.gone(end))
