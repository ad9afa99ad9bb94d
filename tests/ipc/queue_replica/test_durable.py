"""Durable replicas: what is shown is in the journal of their host, a moment as a whole.

"The host dies" is: the vhost's memory is deleted, and made anew from the journal.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Empty, Queue, QueueFull, ReplicaReadOnly, Unconfirmed
from shmbroker.core import layout
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.queue_replica.copy import Copies, declare, detach, detached, followed_by
from shmbroker.ipc.queue_replica.original import Originals
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import vhost_for_a_while
from tests.support.host import PATIENCE, after_the_host_died, journaling

OF = b"what it follows"
NS = 1_000_000_000
MOMENTS = 10
MANY = 100
"""More than are looked at in each turn."""


def content(queue: Queue) -> list[tuple[Any, ...]]:
    return [(each.position, each.body, each.key, each.priority) for each in queue.browse()]


class Host:
    """Of the replicas: a vhost of its own with a journal."""

    def __init__(self, vhost: str, folder: Path, originals: Originals, opened: ExitStack) -> None:
        self.vhost, self.folder, self.originals = vhost, folder, originals
        self._opened = opened
        self._epoch = 1
        self.journal = opened.enter_context(journaling(vhost, folder))
        self.broker = opened.enter_context(shmbroker.connect(f"shm://{vhost}", name="here"))
        self.copies = opened.enter_context(Copies(self.broker))
        self.names: dict[int, str] = {}

    def queue(self, number: int) -> Queue:
        return self.broker.queue(self.names[number])

    def follow(self, original: Queue, **settings: Any) -> Queue:
        number = len(self.names)
        name = self.names[number] = original.name
        self.originals.add(original, number, 0)
        self.broker.declare_queue(name, **{"durable": True, "slots": original.slots, **settings})
        declare(self.broker, name, self.originals.stands(number).head, OF)
        self.copies.add(self.queue(number), number, 0)
        return self.queue(number)

    def step(self) -> bool:
        """Read once, and show what is whole; whether there was anything."""
        found = self.originals.read()
        if found is None:
            return False
        self.copies.take(bytes(found.memory))
        if found.whole:
            self.confirmed()
            assert self.copies.show(), [self.copies.stands(each).why for each in self.names]
        return True

    def confirmed(self) -> None:
        until = time.monotonic() + PATIENCE
        while not self.copies.is_confirmed:
            assert time.monotonic() < until, "what was shown is not on disk"
            time.sleep(0.001)

    def catch_up(self) -> None:
        while self.step():
            pass
        self.confirmed()

    def dies(self) -> None:
        """And comes back, without its memory."""
        self._opened.close()
        self._epoch += 1
        self.broker = self._opened.enter_context(
            after_the_host_died(self.vhost, self.folder, self._epoch)
        )
        self.copies = self._opened.enter_context(Copies(self.broker))
        for number in self.names:
            self.copies.add(self.queue(number), number, 0)

    def links(self, originals: list[Queue]) -> None:
        """Again: from where it is."""
        for number, original in enumerate(originals):
            self.originals.add(original, number, self.copies.stands(number).next)


@pytest.fixture
def host(broker: Broker, tmp_path: Path) -> Iterator[Host]:
    with Originals(broker, room=1 << 16) as originals, vhost_for_a_while() as name:
        vhosts.create(name, arena_bytes=64 << 20)
        with ExitStack() as opened:
            yield Host(name, tmp_path / "journal", originals, opened)


def test_what_was_shown_is_there_after_the_host_died(broker: Broker, host: Host) -> None:
    original = broker.declare_queue("a", slots=64)
    original.publish(b"gone before")
    original.get().ack()
    original.publish_many([b"%d" % each for each in range(10)])
    taken = original.get_many(5)
    taken[3].ack()
    copy = host.follow(original)
    host.catch_up()
    before = content(original)
    assert content(copy) == before
    host.dies()
    copy = host.queue(0)
    assert content(copy) == before
    assert followed_by(copy) == OF
    with pytest.raises(ReplicaReadOnly):
        copy.publish(b"x")
    with pytest.raises(ReplicaReadOnly):
        copy.get(timeout=0)


def test_what_is_done_with_above_its_head_does_not_come_back(broker: Broker, host: Host) -> None:
    original = broker.declare_queue("a", slots=64)
    original.publish_many([b"%d" % each for each in range(10)])
    copy = host.follow(original)
    host.catch_up()
    taken = original.get_many(10)
    for each in (3, 5, 8, 9):
        taken[each].ack()
    host.catch_up()
    before = content(original)
    assert len(content(copy)) == 6
    host.dies()
    assert content(host.queue(0)) == before
    assert host.copies.stands(0).next == 10, "positions are those of the original"


def test_it_replaces_nothing_by_itself_when_it_is_restored(broker: Broker, host: Host) -> None:
    """Its original is not of last values, so all messages of a key are there."""
    original = broker.declare_queue("a", slots=64)
    for each in range(6):
        original.publish(b"%d" % each, key="k")
    copy = host.follow(original, last_value=True)
    host.catch_up()
    assert content(copy) == content(original)
    host.dies()
    assert content(host.queue(0)) == content(original)


def test_a_moment_of_another_memory_is_not_shown(broker: Broker, host: Host) -> None:
    """Somebody has deleted the segments of a vhost by hand, and not all of them."""
    original = broker.declare_queue("a", slots=64)
    original.publish_many([b"%d" % each for each in range(6)])
    host.follow(original)
    host.catch_up()
    moment = Path(f"/dev/shm/shmbroker.{host.vhost}.moment")
    transactions = moment.with_suffix(".transactions")
    of_former = transactions.read_bytes()[layout.TRANSACTIONS_ARENA_AT :][:8]
    host.dies()
    host.links([original])
    original.publish(b"6")
    host.catch_up()
    before = content(host.queue(0))
    reference = moment.read_bytes()[16:24]
    nothing_left = reference + struct.pack("<4q", 7, 7, 0, 0)
    moment.write_bytes(struct.pack("<q", len(nothing_left)) + of_former + nothing_left)
    with Copies(host.broker):
        assert content(host.queue(0)) == before
    assert moment.read_bytes()[:8] == bytes(8), "it is forgotten"
    of_this = transactions.read_bytes()[layout.TRANSACTIONS_ARENA_AT :][:8]
    moment.write_bytes(struct.pack("<q", len(nothing_left)) + of_this + nothing_left)
    with Copies(host.broker):
        assert content(host.queue(0)) == [], "of this memory it is"


def test_what_a_transaction_has_taken_from_the_middle_is_of_its_frame(
    broker: Broker, host: Host
) -> None:
    """Of messages that came just before: the journaler looks so far at once."""
    originals = [broker.declare_queue(name, slots=1024) for name in ("gains", "loses")]
    for each in originals:
        host.follow(each)
    held: list[Any] = []
    for number in range(MOMENTS):
        originals[1].publish_many([b"%d" % each for each in range(20)])
        host.catch_up()
        held += originals[1].get_many(20)
        with broker.transaction() as transaction:
            transaction.queue("gains").publish(b"%d" % number)
            transaction.ack(held.pop())
        host.catch_up()
    assert moments_in_frames(host.folder) == list(range(MOMENTS + 1))
    for each in held:
        each.give_back()


def test_the_next_moment_waits_until_nothing_of_the_one_before_is_missing_on_disk(
    broker: Broker, host: Host
) -> None:
    """Also if no message came, and if somebody else shows the next one."""
    original = broker.declare_queue("a", slots=64)
    original.publish_many([b"%d" % each for each in range(6)])
    copy = host.follow(original)
    host.catch_up()
    host.journal.close()
    original.get().ack()
    assert host.step()
    assert content(copy) == content(original)
    assert not host.copies.is_confirmed
    with Copies(host.broker) as next_one:
        next_one.add(copy, 0, 0)
        assert not next_one.is_confirmed
        with journaling(host.vhost, host.folder, 2):
            host.confirmed()
            assert next_one.is_confirmed


def moments_in_frames(folder: Path) -> list[int]:
    """How many messages `gains` has at each frame that changes that: as many are retired in
    `loses`."""
    names: dict[int, str] = {}
    gained: set[int] = set()
    retired: set[int] = set()
    found = [0]
    with Replay(folder) as replay:
        for record in replay:
            if record.kind == records.QUEUE:
                length = int.from_bytes(record.body[56:64], "little")
                names[record.queue] = record.body[72 : 72 + length].decode()
            name = names.get(record.queue)
            if record.kind == records.MESSAGE and name == "gains":
                gained.add(record.position)
            if record.kind == records.RETIRED and name == "loses":
                bits = int.from_bytes(record.body, "little")
                above = (bit for bit in range(8 * len(record.body)) if bits >> bit & 1)
                retired |= {*range(record.position), *(record.position + bit for bit in above)}
            if record.last:
                assert len(gained) == len(retired), "half of a transaction in a frame"
                found += [len(gained)] if len(gained) != found[-1] else []
    return found


def test_it_goes_on_by_difference(broker: Broker, host: Host) -> None:
    original = broker.declare_queue("a", slots=1024)
    original.publish_many([bytes(100)] * 500)
    host.follow(original)
    host.catch_up()
    host.dies()
    for _ in range(100):
        original.get().ack()
    original.publish(b"while it was away")
    host.links([original])
    found = host.originals.read()
    assert found is not None
    assert found.messages == 1
    assert len(found.memory) < 2000
    host.copies.take(bytes(found.memory))
    assert host.copies.show()
    host.confirmed()
    assert content(host.queue(0)) == content(original)
    host.dies()
    assert content(host.queue(0)) == content(original)


def test_it_begins_anew_where_the_original_is_if_all_that_it_had_is_done_with(
    broker: Broker, host: Host
) -> None:
    original = broker.declare_queue("a", slots=16)
    original.publish_many([b"%d" % each for each in range(16)])
    host.follow(original)
    host.catch_up()
    for lap in (7, 16, 17, 1000):
        for _ in range(lap):
            original.get().ack()
            original.publish(b"x")
        host.catch_up()
        assert content(host.queue(0)) == content(original)
    host.dies()
    assert content(host.queue(0)) == content(original)
    original.get().ack()
    original.publish(b"last")
    host.links([original])
    host.catch_up()
    assert content(host.queue(0)) == content(original)


def test_detached_it_keeps_everything_whatever_dies(broker: Broker, host: Host) -> None:
    original = broker.declare_queue("a", slots=16, last_value=True)
    for each in range(40):
        original.publish(b"%d" % each, key=f"k{each % 5}")
        if each % 3 == 0:
            host.step()
    host.follow(original)
    host.catch_up()
    before = content(original)
    host.dies()
    number = detach(host.queue(0))
    host.copies.drop(0)
    detached(host.broker, number, PATIENCE * NS)
    del host.names[0]
    host.dies()
    copy = host.broker.queue("a")
    assert followed_by(copy) == b""
    assert content(copy) == before
    for each in range(50):
        copy.get().ack()
        copy.publish(b"new %d" % each, timeout=PATIENCE)
    after = [each[1:] for each in content(copy)]
    assert len(after) == len(before)
    host.dies()
    assert [each[1:] for each in content(host.broker.queue("a"))] == after


def test_detached_beside_many_queues_at_rest(broker: Broker, host: Host) -> None:
    for each in range(MANY):
        host.broker.declare_queue(f"at rest {each}", slots=2, durable=True)
    original = broker.declare_queue("a", slots=16)
    original.publish(b"x")
    host.follow(original)
    host.catch_up()
    host.broker.queue("at rest 0").publish(b"x", timeout=PATIENCE)
    number = detach(host.queue(0))
    host.copies.drop(0)
    detached(host.broker, number, PATIENCE * NS)
    del host.names[0]
    host.dies()
    assert followed_by(host.broker.queue("a")) == b""


def test_detached_is_waited_for_as_long_as_that_takes(broker: Broker) -> None:
    """A wait of a program ends after 0.1 s, for its signal handlers to run, and goes on."""
    broker.declare_queue("a", slots=16, durable=True)
    declare(broker, "a", 0, b"another one")
    number = detach(broker.queue("a"))
    with pytest.raises(Unconfirmed):  # nobody writes it
        detached(broker, number, 250_000_000)


SETTINGS: list[dict[str, Any]] = [
    {},
    {"priorities": True},
    {"last_value": True},
    {"ttl": 0.01},
    {"max_messages": 20, "when_full": "drop-oldest"},
]


def uses(random: Random, queue: Queue, held: list[Any]) -> None:
    act = random.random()
    if act < 0.55:
        with suppress(QueueFull):
            queue.publish(
                random.randbytes(random.randrange(300)), key=f"k{random.randrange(8)}",
                priority=random.randrange(10), timeout=0,
            )  # fmt: skip
    elif act < 0.75:
        with suppress(Empty):
            held += queue.get_many(3, timeout=0)
    elif act < 0.92 and held:
        held.pop(random.randrange(len(held))).ack()
    elif held:
        held.pop().give_back()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_any_use_arrives_and_outlives_the_host(
    broker: Broker, host: Host, settings: dict[str, Any]
) -> None:
    random = Random(str(settings))
    original = broker.declare_queue("a", slots=64, **settings)
    host.follow(original)
    held: list[Any] = []
    for _ in range(4):
        for _ in range(100):
            uses(random, original, held)
            if random.random() < 0.2:
                host.step()
        host.dies()
        host.links([original])
    original.expire()
    host.catch_up()
    assert content(host.queue(0)) == content(original)
    host.dies()
    assert content(host.queue(0)) == content(original)
    for each in held:
        each.give_back()


def test_a_transaction_is_there_as_a_whole_whenever_the_host_dies(
    broker: Broker, host: Host
) -> None:
    names = ("first", "second")
    originals = [broker.declare_queue(name, slots=64) for name in names]
    for each in originals:
        host.follow(each)
    number = 0
    for _ in range(20):
        for _ in range(7):
            with broker.transaction() as transaction:
                for name in names:
                    transaction.queue(name).publish(b"%d" % number)
            number += 1
            with broker.transaction() as transaction:
                for name in names if number > 10 else ():
                    transaction.queue(name).get(timeout=0).ack()
        host.step()  # it is not waited for until it is on disk
        host.dies()
        here = [[each.body for each in host.queue(at).browse()] for at in range(2)]
        assert here[0] == here[1]
        host.links(originals)
    host.catch_up()
    assert [content(host.queue(at)) for at in range(2)] == [content(each) for each in originals]
    assert len(content(originals[0])) == 10, "something was there to be compared"
