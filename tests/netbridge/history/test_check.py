"""The checker of histories: each kind of fault is rejected, and what may be is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shmbroker.netbridge.history.check import check
from shmbroker.netbridge.history.event import (
    Ack,
    Answered,
    Call,
    Commit,
    Delete,
    Delivery,
    Event,
    History,
    Outcome,
    Publish,
    Queue,
)
from shmbroker.netbridge.wire.words import Level

QUEUE = Queue("orders")
BOTH = Level.DISK_AND_REPLICATED


def ok(began: float, *, member: str = "a", epoch: int = 1, asked: Level | None = None) -> Call:
    return Call(began, began + 0.1, Outcome.OK, Answered(member, epoch, asked or BOTH), asked)


def publish(name: str, number: int, call: Call) -> Publish:
    return Publish(call, QUEUE, name, "p", number)


def delivery(name: str, time: float, *, again: bool = False) -> Delivery:
    return Delivery(time, QUEUE, name, again)


def history(*events: Event, remains: tuple[str, ...] = ()) -> History:
    return History(list(events), {QUEUE: remains})


GOOD = history(
    publish("m1", 1, ok(1.0)),
    publish("m2", 2, ok(2.0, member="b", epoch=2)),
    publish("m3", 3, Call(3.0)),
    delivery("m1", 2.0),
    Ack(ok(2.5, member="b", epoch=2), QUEUE, "m1"),
    delivery("m2", 3.0),
    delivery("m2", 4.0, again=True),
    Commit(ok(5.0, member="b", epoch=2), ((QUEUE, "t1"), (QUEUE, "t2"))),
    remains=("m2", "t1", "t2"),
)


def test_what_may_be_is_accepted() -> None:
    assert check(GOOD) == []


def test_a_message_in_doubt_may_be_there() -> None:
    assert check(replace(GOOD, remains={QUEUE: ("m2", "m3", "t1", "t2")})) == []


LOST = history(publish("m1", 1, ok(1.0)))
FAULTS = {
    "lost": (LOST, "orders: m1 was confirmed (disk+replicated), and is lost"),
    "delivered and lost before its ack": (
        history(publish("m1", 1, ok(1.0)), delivery("m1", 2.0)),
        "orders: m1 was confirmed (disk+replicated), and is lost",
    ),
    "twice": (
        history(publish("m1", 1, ok(1.0)), remains=("m1", "m1")),
        "orders: m1 is there 2 times",
    ),
    "invented": (history(remains=("m9",)), "orders: m9 was never sent"),
    "failed, and there": (
        history(publish("m1", 1, Call(1.0, 1.1, Outcome.FAILED)), remains=("m1",)),
        "orders: m1 has failed, and is there",
    ),
    "delivered again, not flagged": (
        history(
            publish("m1", 1, ok(1.0)), delivery("m1", 2.0), delivery("m1", 3.0), remains=("m1",)
        ),
        "orders: m1 was delivered again, and not flagged",
    ),
    "back after its ack, not flagged": (
        history(
            publish("m1", 1, ok(1.0)),
            delivery("m1", 2.0),
            Ack(ok(2.1), QUEUE, "m1"),
            delivery("m1", 3.0),
        ),
        "orders: m1 came back after its ack, not flagged",
    ),
    "back after its ack": (
        history(
            publish("m1", 1, ok(1.0)),
            Ack(ok(2.1), QUEUE, "m1"),
            delivery("m1", 3.0, again=True),
        ),
        "orders: m1 came back after its ack (disk+replicated)",
    ),
    "an ack is lost": (
        history(publish("m1", 1, ok(1.0)), Ack(ok(2.1), QUEUE, "m1"), remains=("m1",)),
        "orders: m1 was acknowledged (disk+replicated), and is there",
    ),
    "delivered in another order": (
        history(
            publish("m1", 1, ok(1.0)),
            publish("m2", 2, ok(1.1)),
            delivery("m2", 2.0),
            delivery("m1", 3.0),
            remains=("m1", "m2"),
        ),
        "orders: p's 1 comes behind its 2",
    ),
    "left in another order": (
        history(publish("m1", 1, ok(1.0)), publish("m2", 2, ok(1.1)), remains=("m2", "m1")),
        "orders: p's 1 comes behind its 2",
    ),
    "two members in one epoch": (
        history(
            publish("m1", 1, ok(1.0)), publish("m2", 2, ok(1.1, member="b")), remains=("m1", "m2")
        ),
        "epoch 1 was confirmed in by a and b",
    ),
    "back from a deleted queue": (
        history(publish("m1", 1, ok(1.0)), Delete(ok(2.0), QUEUE), delivery("m1", 3.0)),
        "orders: m1 comes from a queue that was deleted",
    ),
    "left in a deleted queue": (
        history(publish("m1", 1, ok(1.0)), Delete(ok(2.0), QUEUE), remains=("m1",)),
        "orders: m1 is there, and its queue was deleted",
    ),
    "half a transaction": (
        history(Commit(Call(1.0), ((QUEUE, "t1"), (QUEUE, "t2"))), remains=("t1",)),
        "a transaction is there in part: orders: t2 is not",
    ),
    "a transaction is lost": (
        history(Commit(ok(1.0), ((QUEUE, "t1"), (QUEUE, "t2")))),
        "orders: t1 was committed (disk+replicated), and is lost",
    ),
}


@pytest.mark.parametrize(("faulty", "wrong"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_rejected(faulty: History, wrong: str) -> None:
    assert wrong in check(faulty)


def test_what_was_set_aside_is_not_lost() -> None:
    assert check(replace(LOST, set_aside=frozenset({"m1"}))) == []


def test_what_was_asked_to_be_on_one_disk_may_go_with_it() -> None:
    asked = history(publish("m1", 1, ok(1.0, asked=Level.DISK)))
    assert check(asked) == []
    assert check(replace(asked, disk_alone_lasts=True)) != []
