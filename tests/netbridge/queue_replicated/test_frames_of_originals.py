"""The side of replicas, with an original that says what ours does not: its link ends, no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import msgpack
import pytest

import shmbroker
from shmbroker.core.layout import RECORD_KIND_SHIFT, RECORD_STANDS
from shmbroker.ipc.journal.stored import HEAD
from shmbroker.ipc.queue_replica.copy import let_delete
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.queue_replica.codec import encode, from_replica
from shmbroker.netbridge.queue_replica.machine import State
from shmbroker.netbridge.queue_replica.told import (
    Chained,
    Counted,
    Follows,
    Hop,
    Moment,
    OfOriginal,
    OfReplica,
    Shown,
    Unserved,
    Why,
)
from shmbroker.netbridge.queue_replicated.confirming import Confirming
from shmbroker.netbridge.queue_replicated.feeding import Feedings
from shmbroker.netbridge.queue_replicated.following import Following
from shmbroker.netbridge.wire.frame import Frame, Shipment, Talk

CHAIN = (Hop(b"a" * 16, "a"),)
FOLLOWS = Follows(1, b"i" * 16, 5, 8, 0, CHAIN, False)
KIND_OF_FOLLOWS = 3


class Ended:
    """An end of a link, and why it was ended."""

    def __init__(self) -> None:
        self.why: list[str] = []
        self.said: list[OfReplica] = []
        self.machine = SimpleNamespace(malformed=lambda error, now: [str(error)])

    def say(self, frame: Frame) -> None:
        assert isinstance(frame, Talk)
        self.said.append(from_replica(frame.body))

    def does(self, actions: list[str]) -> None:
        self.why += actions


def said(*what: OfOriginal) -> list[Frame]:
    return [Talk(encode(each)) for each in what]


def shipped(kind: int, head: int, body: bytes) -> list[Frame]:
    where = kind << RECORD_KIND_SHIFT | head
    return [Shipment(False, HEAD.pack(0, 0, len(body), 0, 1, where) + body)]


def word(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


FAR: list[Frame] = [
    Talk(msgpack.packb([KIND_OF_FOLLOWS, 1, b"i" * 16, 5, 8, -(2**63) + 1, [], False]))
]
"""Its clock is so far away that the difference is no word."""


@pytest.fixture
def thread(vhost: str, broker: shmbroker.Broker) -> Iterator[NetworkThread]:
    with shmbroker.connect(f"shm://{vhost}", name="network") as own, NetworkThread(own) as thread:
        yield thread


def follower(thread: NetworkThread) -> Following:
    feedings = Feedings(thread, "b", Confirming(1.0, print), is_on=True)
    feedings.node = b"b" * 16
    nothing: Any = lambda *_: None  # noqa: E731
    return Following("tcp://a:1", thread.broker, print, nothing, nothing, feedings,
                     is_of_node=False)  # fmt: skip


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        ([Shipment(False, b"garbage")], "cut off"),
        ([Talk(b"garbage")], "queue replicas"),
        ([*said(FOLLOWS), *shipped(99, 5, b"")], "contradicts itself"),
        ([*said(FOLLOWS), *shipped(RECORD_STANDS, 5, b"")], "contradicts itself"),
        ([*said(FOLLOWS), *shipped(RECORD_STANDS, 5, word(-9)), *said(Moment(True))],
         "contradicts itself"),
        ([*said(FOLLOWS), *shipped(RECORD_STANDS, 5, word(4))], "contradicts itself"),
        (FAR, "apart_ns"),
        (said(Chained(1, CHAIN), Moment(True), Moment(False)), ""),
        (said(Counted(1), Counted(7), FOLLOWS, Counted(1), Counted(1)), ""),
        (said(FOLLOWS, FOLLOWS, Moment(True), FOLLOWS, Chained(1, ())), ""),
        (said(Chained(7, CHAIN), Unserved(7, Why.OFF, ""), Unserved(1, Why.OFF, ""), FOLLOWS), ""),
        ([*said(FOLLOWS), *shipped(RECORD_STANDS, 5, word(7)), *said(Moment(True))], ""),
    ],
)  # fmt: skip
def test_an_original_that_says_what_ours_does_not_loses_its_link_alone(
    thread: NetworkThread, frames: list[Frame], why: str
) -> None:
    end: Any = Ended()
    following = follower(thread)

    def runs() -> None:
        following.add("copy", {"slots": 8})
        following.came(end)
        for each in frames:
            following.heard(end, each)
        following.gone(end)
        following.close()

    thread.ask(runs)
    assert why in "".join(end.why)
    assert bool(why) == bool(end.why)


def test_it_is_following_once_the_original_counts_it(thread: NetworkThread) -> None:
    end: Any = Ended()
    following = follower(thread)
    states = []

    def runs() -> None:
        machine = following.add("copy", {"slots": 8}).machine
        following.came(end)
        stands = shipped(RECORD_STANDS, 5, word(5))
        late = said(Counted(1), FOLLOWS)  # of what it followed before
        for frame in [*late, *stands, *said(Moment(True), Counted(1))]:
            following.heard(end, frame)
            states.append(machine.state)
        assert Shown(1) in end.said
        following.close()

    thread.ask(runs)
    assert states == [State.SYNCING] * 4 + [State.FOLLOWING]


def begun(
    thread: NetworkThread, settings: dict[str, Any], before: Callable[[], object] = lambda: None
) -> Following:
    """Its original has answered, after that."""
    made, end = follower(thread), Ended()
    made._save = lambda queue, replace: replace() or ""  # type: ignore[func-returns-value]

    def begins() -> None:
        made.came(end)  # type: ignore[arg-type]
        each = made.add("orders", settings)
        before()
        made.heard(end, said(FOLLOWS)[0])  # type: ignore[arg-type]
        assert each.begun.done()

    thread.ask(begins)
    return made


def test_a_queue_that_somebody_makes_meanwhile_stays(
    broker: shmbroker.Broker, thread: NetworkThread
) -> None:
    def makes() -> None:
        broker.declare_queue("orders").publish(b"confirmed")

    made = begun(thread, {"slots": 64}, makes)
    thread.ask(made.close)
    assert not made.members
    assert [each.body for each in broker.queue("orders").browse()] == [b"confirmed"]


def test_one_that_cannot_be_a_replica_is_not_made(
    broker: shmbroker.Broker, thread: NetworkThread
) -> None:
    made = begun(thread, {"slots": 64, "non_destructive": True})
    thread.ask(made.close)
    assert not made.members
    assert not broker.queues()


def test_one_that_is_deleted_without_a_link_follows_nothing(
    broker: shmbroker.Broker, thread: NetworkThread
) -> None:
    made = begun(thread, {"slots": 64})
    assert made.members.keys() == {"orders"}
    let_delete(broker.queue("orders"), deletable=True)
    broker.delete_queue("orders", force=True)
    thread.ask(made.forget_deleted)
    assert not made.members
    thread.ask(made.close)
