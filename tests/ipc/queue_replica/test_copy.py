"""A queue that follows another one of the same vhost: read without a gate, copied, shown."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import IO, Any

import numpy as np
import pytest

import shmbroker
from shmbroker import Broker, Empty, Error, Queue, QueueFull, ReplicaReadOnly
from shmbroker.core import layout
from shmbroker.core.codes import READ_ONLY
from shmbroker.ipc.queue_replica.copy import Copies, declare, detach, followed_by, let_delete
from shmbroker.ipc.queue_replica.original import Originals

SOMEBODY = 40
"""A participant's number that is free."""


def content(queue: Queue) -> list[tuple[Any, ...]]:
    return [(each.position, each.body, each.key, each.priority) for each in queue.browse()]


@dataclass
class Pair:
    broker: Broker
    originals: Originals
    copies: Copies
    names: list[str]

    def follow(self, name: str, **settings: Any) -> tuple[Queue, Queue]:
        """An original, and a replica of it."""
        original = self.broker.declare_queue(name, **settings)
        return original, self.replica(original)

    def replica(self, original: Queue, **settings: Any) -> Queue:
        number = len(self.names)
        self.names.append(original.name)
        self.originals.add(original, number, 0)
        settings.setdefault("slots", original.slots)
        if any(each.name == f"{original.name}.copy" for each in self.broker.queues()):
            settings.clear()
        self.broker.declare_queue(f"{original.name}.copy", **settings)
        declare(self.broker, f"{original.name}.copy", self.originals.stands(number).head, b"it")
        copy = self.broker.queue(f"{original.name}.copy")
        self.copies.add(copy, number, 0)
        return copy

    def step(self) -> bool:
        """Read once; whether anything was shown."""
        found = self.originals.read()
        if found is None:
            return False
        self.copies.take(bytes(found.memory))
        if found.whole:
            assert self.copies.show(), [
                self.copies.stands(each).why for each in range(len(self.names))
            ]
        return True

    def catch_up(self) -> None:
        while self.step():
            pass


@pytest.fixture
def pair(broker: Broker) -> Iterator[Pair]:
    with Originals(broker, room=1 << 16) as originals, Copies(broker) as copies:
        yield Pair(broker, originals, copies, [])


def test_it_has_the_messages_of_its_original_at_their_positions(pair: Pair) -> None:
    original = pair.broker.declare_queue("a")
    original.publish(b"gone")
    original.get().ack()
    original.publish(b"before", key="k", properties={"x": 1}, priority=7)
    copy = pair.replica(original)
    assert content(copy) == []
    pair.catch_up()
    assert content(copy) == content(original) != []
    original.publish(b"after")
    original.get().ack()
    pair.catch_up()
    assert content(copy) == content(original) == [(2, b"after", None, None)]
    assert followed_by(copy) == b"it"
    assert followed_by(original) == b""


def test_a_queue_without_memory_for_its_replacement_stays(broker: Broker) -> None:
    queue = broker.declare_queue("a")
    broker.declare_exchange("all", "fanout")
    broker.bind("all", "a")
    bindings = broker.bindings()
    broker.exchange("all").publish(b"its own")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(Error, match="making a segment"):
            declare(broker, "a", 0, b"it")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert broker.bindings() == bindings
    assert followed_by(queue) == b""
    assert queue.receive(timeout=0) == b"its own"
    queue.publish(b"still")
    declare(broker, "a", 0, b"it")
    assert followed_by(broker.queue("a")) == b"it"


def test_what_is_taken_stays_until_it_is_acknowledged(pair: Pair) -> None:
    original, copy = pair.follow("a")
    original.publish_many([b"%d" % each for each in range(4)])
    taken = [original.get() for _ in range(3)]
    pair.catch_up()
    assert [each[1] for each in content(copy)] == [b"0", b"1", b"2", b"3"]
    taken[1].ack()
    taken[0].give_back()
    pair.catch_up()
    assert [each[1] for each in content(copy)] == [b"0", b"2", b"3"]
    taken[2].ack()


def test_nothing_is_shown_before_a_moment_is_whole(pair: Pair) -> None:
    original, copy = pair.follow("a")
    original.publish_many([bytes(1000)] * 300)
    found = pair.originals.read()
    assert found is not None
    assert found.more
    assert not found.whole
    pair.copies.take(bytes(found.memory))
    assert content(copy) == []
    pair.catch_up()
    assert content(copy) == content(original)


def test_what_is_taken_before_it_is_copied_has_not_come_back(pair: Pair) -> None:
    """A slow replica of a busy queue would begin anew, again and again."""
    original, copy = pair.follow("a", slots=512)
    original.publish_many([bytes(1000)] * 300)
    found = pair.originals.read()
    assert found is not None
    assert found.more
    pair.copies.take(bytes(found.memory))
    while len(original):
        original.receive_many(100, timeout=0)
    original.publish(b"next")
    pair.catch_up()
    assert content(copy) == content(original) == [(300, b"next", None, None)]


REFUSED = {
    "publish": lambda queue: queue.publish(b"x"),
    "publish many": lambda queue: queue.publish_many([b"x", b"y"]),
    "publish with a key": lambda queue: queue.publish(b"x", key="k"),
    "publish with an id": lambda queue: queue.publish(b"x", message_id="1"),
    "schedule": lambda queue: queue.publish(b"x", deliver_after=1),
    "get": lambda queue: queue.get(timeout=1),
    "get now": lambda queue: queue.get_nowait(),
    "get many": lambda queue: queue.get_many(2),
    "select": lambda queue: queue.select("n IS NULL", timeout=1),
    "select what is not there": lambda queue: queue.select("n = 1", timeout=1),
    "purge": lambda queue: queue.purge(),
    "subscribe": lambda queue: queue._broker.subscribe(queue.name),
    "delete": lambda queue: queue.delete(force=True),
}


@pytest.mark.parametrize("verb", REFUSED)
@pytest.mark.parametrize("settings", [{}, {"priorities": True}, {"single_active": True}], ids=str)
def test_it_is_read_only(pair: Pair, verb: str, settings: dict[str, Any]) -> None:
    original = pair.broker.declare_queue("a")
    original.publish(b"there")
    copy = pair.replica(original, **settings)
    pair.catch_up()
    with pytest.raises(ReplicaReadOnly):
        REFUSED[verb](copy)
    assert content(copy) == content(original)
    assert copy.statistics().depth == 1


def test_transactions_and_moves_are_refused(pair: Pair) -> None:
    original, copy = pair.follow("a")
    original.publish(b"there")
    pair.catch_up()
    other = pair.broker.declare_queue("other")
    with pytest.raises(ReplicaReadOnly), pair.broker.transaction() as transaction:
        transaction.queue("a.copy").publish(b"x")
    with pytest.raises(ReplicaReadOnly):
        copy.move_to(other)
    copy.copy_to(other)
    assert other.get_nowait().body == b"there"
    assert content(copy) == content(original)


def test_compiled_loops_are_refused_too(pair: Pair) -> None:
    from tests.ipc.queue_replica.loops import publishes, takes

    _, copy = pair.follow("a")
    port = copy.port()
    assert publishes(port.address) == READ_ONLY
    assert takes(port.address, np.zeros(64, np.int64)) == READ_ONLY
    port.close()


def test_detached_it_is_a_queue_like_any_other(pair: Pair) -> None:
    original, copy = pair.follow("a", slots=8)
    for lap in range(5):
        original.publish_many([b"%d" % each for each in range(lap + 1)])
        while original.statistics().depth > 2:
            original.get().ack()
        pair.catch_up()
    before = content(original)
    assert content(copy) == before
    pair.copies.drop(0)
    detach(copy)
    assert followed_by(copy) == b""
    for each in range(50):
        copy.publish(b"new %d" % each)
        copy.get().ack()
    assert [each[1] for each in content(copy)] == [b"new 48", b"new 49"]
    with pair.broker.transaction() as transaction:
        for _ in range(6):
            transaction.queue("a.copy").publish(b"together")
    assert copy.statistics().depth == 8
    assert content(original) == before


def test_what_was_delivered_there_is_redelivered_here(pair: Pair) -> None:
    original, copy = pair.follow("a")
    original.publish(b"x")
    pair.catch_up()
    detach(copy)
    assert copy.get().redelivered


@pytest.mark.parametrize("settings", [{"max_deliveries": 1}, {"redelivery_delay": 3600.0}])
def test_that_is_no_reason_to_drop_or_to_delay_it(pair: Pair, settings: Any) -> None:
    original = pair.broker.declare_queue("a")
    original.publish(b"plain")
    original.publish(b"with more", ttl=3600)
    copy = pair.replica(original, **settings)
    pair.catch_up()
    detach(copy)
    messages = copy.get_many(2, timeout=0)
    assert [(each.body, each.deliveries) for each in messages] == [(b"plain", 1), (b"with more", 1)]


def test_an_original_that_is_gone_lets_it_be_deleted(pair: Pair) -> None:
    original, copy = pair.follow("a")
    original.publish(b"x")
    pair.catch_up()
    pair.broker.delete_queue("a")
    assert pair.originals.read() is None
    with pytest.raises(shmbroker.NotFound):
        pair.originals.stands(0)
    let_delete(copy, deletable=True)
    with pytest.raises(ReplicaReadOnly):
        copy.publish(b"y")
    pair.copies.drop(0)
    pair.broker.delete_queue("a.copy")


def test_too_few_slots_are_told_with_both_numbers(pair: Pair) -> None:
    original = pair.broker.declare_queue("a", slots=16)
    copy = pair.replica(original, slots=8)
    original.publish(b"before")
    pair.catch_up()
    before = content(copy)
    original.publish_many([b"x"] * 8)
    found = pair.originals.read()
    assert found is not None
    pair.copies.take(bytes(found.memory))
    assert not pair.copies.show()
    assert "message 8 of the original finds no place in 8 slots" in pair.copies.stands(0).why
    assert content(copy) == before, "not a part of what came"


def test_it_goes_on_after_the_ring_of_its_original_went_round_many_times(pair: Pair) -> None:
    original, copy = pair.follow("a", slots=16)
    original.publish(b"first")
    pair.catch_up()
    for _ in range(1000):
        original.publish(b"x")
        original.get().ack()
    original.publish(b"last")
    pair.catch_up()
    assert content(copy) == content(original)
    assert content(copy)[-1][1] == b"last"


def test_a_transaction_is_seen_as_a_whole(pair: Pair) -> None:
    first, first_copy = pair.follow("first")
    second, second_copy = pair.follow("second")
    for each in range(200):
        with pair.broker.transaction() as transaction:
            transaction.queue("first").publish(b"%d" % each)
            transaction.queue("second").publish(b"%d" % each)
        if each % 3 == 0:
            pair.step()
            assert [m.body for m in first_copy.browse()] == [m.body for m in second_copy.browse()]
    assert first.statistics().depth == second.statistics().depth == 200


def test_what_came_back_there_is_told(pair: Pair) -> None:
    """An original whose host died may have lost an acknowledgement that was copied before."""
    before, copy = pair.follow("a")
    before.publish_many([b"one", b"two", b"three"])
    before.get().ack()
    pair.catch_up()
    after = pair.broker.declare_queue("b")
    after.publish_many([b"one", b"two", b"three"])
    pair.originals.drop(0)
    pair.originals.add(after, 0, 3)
    pair.copies.add(copy, 0, 0)
    found = pair.originals.read()
    assert found is not None
    pair.copies.take(bytes(found.memory))
    assert not pair.copies.show()
    stands = pair.copies.stands(0)
    assert stands.is_stale
    assert stands.why == "message 0 is done with here, and came back there"


def test_its_bindings_stay(pair: Pair) -> None:
    pair.broker.declare_exchange("facts", "topic")
    pair.broker.declare_queue("a.copy")
    pair.broker.bind("facts", "a.copy", "b.*")
    pair.broker.bind("facts", "a.copy", "c")
    before = pair.broker.bindings()
    _, copy = pair.follow("a")
    assert pair.broker.bindings() == before
    with pytest.raises(ReplicaReadOnly):
        pair.broker.exchange("facts").publish(b"x", key="b.1")
    detach(copy)
    pair.broker.exchange("facts").publish(b"y", key="b.1")
    assert [each.body for each in copy.browse()] == [b"y"]


def test_nothing_is_read_while_a_transaction_stands_half_way(pair: Pair, vhost: str) -> None:
    original, copy = pair.follow("a")
    original.publish(b"one half")
    participants = Path(f"/dev/shm/shmbroker.{vhost}.participants")
    entry = layout.PARTICIPANTS_AT + SOMEBODY * layout.PARTICIPANT_BYTES
    word = entry + layout.PARTICIPANT_TRANSACTION_AT
    with participants.open("r+b", buffering=0) as file:
        write(file, layout.PARTICIPANTS_HIGH_AT, SOMEBODY + 1)
        write(file, word, layout.TRANSACTION_COMMITTED)
        for _ in range(3):
            assert not pair.step()
            assert pair.originals.is_held
        write(file, word, 0)
    assert pair.step()
    assert not pair.originals.is_held
    assert content(copy) == content(original)


def write(file: IO[bytes], at: int, word: int) -> None:
    file.seek(at)
    file.write(word.to_bytes(8, "little"))


SETTINGS: list[dict[str, Any]] = [
    {},
    {"priorities": True},
    {"last_value": True},
    {"when_full": "drop-oldest"},
    {"ttl": 0.01},
    {"max_messages": 20, "when_full": "drop-oldest"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_any_use_of_the_original_arrives(pair: Pair, settings: dict[str, Any], seed: int) -> None:
    random = Random(seed)
    original, copy = pair.follow("a", slots=64, **settings)
    held: list[Any] = []
    for _ in range(400):
        act = random.random()
        if act < 0.5:
            with suppress(QueueFull):
                original.publish(
                    random.randbytes(random.randrange(300)), key=f"k{random.randrange(8)}",
                    priority=random.randrange(10), timeout=0,
                )  # fmt: skip
        elif act < 0.7:
            with suppress(Empty):
                held += original.get_many(3, timeout=0)
        elif act < 0.85 and held:
            held.pop(random.randrange(len(held))).ack()
        elif act < 0.9 and held:
            held.pop().give_back()
        elif act < 0.92:
            original.purge()
        else:
            pair.step()
    original.expire()
    pair.catch_up()
    assert content(copy) == content(original)
    for each in held:
        each.give_back()
