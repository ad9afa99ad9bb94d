"""Frames of one vhost's journal, applied to the rings of another one as they come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, ConnectionClosed, Empty, JournalDamaged, Message, MessageGone
from shmbroker.ipc.base.errors import InvalidArgument, NotFound
from shmbroker.ipc.broker.applier import Applier
from shmbroker.ipc.broker.journaler import Journaler, begin_restoring, restore
from shmbroker.ipc.exchange.own_binding import OwnBinding, bind_own, own_bindings
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.end import End, Frame
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.replay import KIND_NAMES, Replay
from shmbroker.ipc.journal.stored import stored
from shmbroker.ipc.sink.sink import Sink
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import vhost_for_a_while
from tests.support.host import PATIENCE
from tests.support.records import HEAD, stream

SEGMENT = 64 << 10
ARENA = 64 << 20
ORIGIN = bytes(range(16))
WEEK = 7 * 86400.0


# --- what is done to the original -----------------------------------------------------------------


def declare(broker: Broker, _random: Random) -> None:
    broker.declare_queue("orders", durable=True, slots=256, duplicate_ids=64, max_deliveries=7)
    broker.declare_queue("rates", durable=True, slots=16, last_value=True)
    broker.declare_queue("jobs", durable=True, slots=64, redelivery_delay=60.0)
    broker.declare_queue("numbered", durable=True, slots=64)
    broker.declare_queue("poured", durable=True, slots=64)
    broker.declare_queue("ranked", durable=True, slots=64, priorities=4)
    broker.declare_exchange("news", kind="topic")
    broker.bind("news", "orders", key="a.*")
    broker.bind("news", "jobs", key="a.b")


def publish(broker: Broker, random: Random) -> None:
    orders, exchange = broker.queue("orders"), broker.exchange("news")
    for number in range(10):
        orders.publish(
            random.randbytes(random.choice((0, 60, 8000))),
            message_id=f"id-{number}" if number < 7 else None, key=f"k{number}",
            properties={"n": number}, ttl=WEEK, confirm="shm", timeout=PATIENCE,
        )  # fmt: skip
    exchange.publish(b"routed", key="a.b", confirm="shm")
    for each in range(5):
        broker.queue("numbered").producer("meter").publish(b"%d" % each, confirm="shm")
        broker.queue("ranked").publish(b"%d" % each, priority=each % 4, confirm="shm")
        broker.queue("rates").publish(b"%d" % each, key="ab"[each % 2], confirm="shm")
    broker.queue("jobs").publish(b"later", deliver_after=WEEK, confirm="shm")


def take(broker: Broker, random: Random) -> None:
    """Some are acknowledged, with others in between that are not; one is tried again later."""
    for name in ("orders", "numbered", "ranked"):
        queue = broker.queue(name)
        queue.confirm(timeout=PATIENCE)
        held: list[Message] = []
        with suppress(Empty):
            held = queue.get_many(5, timeout=0)
        for message in held:
            message.ack() if random.random() < 0.6 else message.give_back()
    jobs = broker.queue("jobs")
    jobs.confirm(timeout=PATIENCE)
    with suppress(Empty):
        jobs.get(timeout=0).give_back()


def commit(broker: Broker, _random: Random) -> None:
    orders, numbered = broker.queue("orders"), broker.queue("numbered")
    numbered.publish(b"to be moved", timeout=PATIENCE)
    with broker.transaction(timeout=PATIENCE) as together:
        body = together.queue(numbered).receive(timeout=PATIENCE)
        together.publish(orders, b"moved " + body)
        together.publish(broker.queue("jobs"), b"and told")


def pour(broker: Broker, _random: Random) -> None:
    with Sink(broker, ORIGIN) as sink:
        first = sink.to_queue(broker.queue("poured"))
        sink.pour(stream((b"%d" % each for each in range(first, first + 4)), first=first))


def remake(broker: Broker, random: Random) -> None:
    """A queue goes and is made again, exchanges and bindings change."""
    with suppress(NotFound):
        broker.queue("passing").delete(force=True)
    queue = broker.declare_queue("passing", durable=True, slots=random.choice((8, 16)))
    queue.publish(b"new", timeout=PATIENCE)
    broker.unbind("news", "jobs", key="a.b")
    broker.bind("news", "passing", key="c.#")
    broker.bind("news", "jobs", key="a.b")
    bind_own(broker, OwnBinding("news", "orders", "b.#", b"", False, 7))


STEPS: tuple[Callable[[Broker, Random], None], ...] = (publish, take, commit, pour, remake)


# --- what is there --------------------------------------------------------------------------------


def contents(broker: Broker) -> dict[str, Any]:
    found: dict[str, Any] = {"bindings": sorted(map(str, broker.bindings()))}
    found["of the cluster"] = sorted(map(str, own_bindings(broker)))
    for info in broker.queues():
        queue = broker.queue(info.name)
        settings = {name: str(each.value) for name, each in queue.explain().items()}
        found[info.name] = (
            settings,
            [(m.position, m.body, m.key, m.properties, m.priority, m.published_at,
              m.message_id) for m in queue.browse()],
            [(m.body, m.deliveries) for m in queue.scheduled()],
        )  # fmt: skip
    found["rates by key"] = [
        value and value.body for value in map(broker.queue("rates").value, "ab")
    ]
    with Sink(broker, ORIGIN) as sink:
        found["mark"] = sink.to_queue(broker.queue("poured"))
    found["number"] = broker.queue("numbered").producer("meter").last_sequence
    return found


def has_ids(broker: Broker) -> list[bool]:
    """Whether a second copy is dropped."""
    return [
        broker.queue("orders").publish(b"again", message_id=f"id-{number}", confirm="shm") is None
        for number in range(8)
    ]


# --- the replica ----------------------------------------------------------------------------------


class Applying:
    """A thread that applies what comes, as a replica would."""

    def __init__(self, end: End, applier: Applier) -> None:
        self.end, self.applier = end, applier
        self.frames: list[Frame] = []
        self.failed: Exception | None = None
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        try:
            while True:
                if frame := self.end.read(PATIENCE):
                    assert self.applier.apply(frame)
                    self.frames.append(frame)
                    self.end.done(frame.number)
        except ConnectionClosed:
            return
        except (shmbroker.Error, AssertionError) as error:  # told by join
            self.failed = error

    def join(self) -> None:
        self._thread.join(PATIENCE)
        if self.failed:
            raise self.failed


@contextmanager
def replicated(vhost: str, folder: Path) -> Iterator[tuple[Broker, Applier, Applying]]:
    """The original, which has ended, with all of its journal applied to a vhost without a name."""
    for name in ("original", "replica"):
        (folder / name).mkdir()
    with ExitStack() as stack:
        broker = stack.enter_context(shmbroker.connect(f"shm://{vhost}"))
        copied = stack.enter_context(vhost_for_a_while())
        replica = begin_restoring(copied, name="replica", arena_bytes=ARENA)
        stack.enter_context(replica)
        journal = Journal(folder / "replica", epoch=1, segment_bytes=2 * SEGMENT)
        stack.enter_context(journal)
        applier = stack.enter_context(Applier(replica, journal))
        journaler = stack.enter_context(Journaler(folder / "original", segment_bytes=SEGMENT))
        applying = Applying(
            stack.enter_context(End(journaler, "replica", timeout=PATIENCE)), applier
        )
        journaler.start(broker, 1)
        random = Random(5)
        declare(broker, random)
        for number in range(60):
            STEPS[number % len(STEPS)](broker, random)
        broker.queue("orders").confirm(timeout=PATIENCE)
        with pytest.raises(shmbroker.Error, match="is being restored"):
            shmbroker.connect(f"shm://{copied}")
        journaler.stop()
        applying.join()
        yield broker, applier, applying


def test_all_that_a_journal_has_is_applied_as_it_comes(vhost: str, tmp_path: Path) -> None:
    with replicated(vhost, tmp_path) as (original, applier, applying), ExitStack() as stack:
        kinds = {each.kind for frame in applying.frames for each in stored(frame.records)}
        wanted = set(KIND_NAMES) - {records.UNPLACED, records.COPIED, records.STANDING}
        assert kinds == wanted, "all kinds that are ever written"
        assert sum(frame.number & 0xFFFFFFFF == 1 for frame in applying.frames) > 3
        applier.finish()
        replica = applier._broker
        assert applier._journal is not None
        applier._journal.close()
        found = [contents(replica)]
        for folder in ("original", "replica"):
            name = stack.enter_context(vhost_for_a_while())
            vhosts.create(name, arena_bytes=ARENA)
            broker = stack.enter_context(shmbroker.connect(f"shm://{name}"))
            restore(broker, tmp_path / folder)
            found.append(contents(broker))
            assert has_ids(broker) == [True] * 7 + [False]
        assert found[0] == contents(original)
        assert found[1] == found[0], "as a restored one"
        assert found[2] == found[0], "and from the journal of its own"
        assert has_ids(replica) == [True] * 7 + [False]


def test_no_frame_is_missing_and_none_is_damaged(vhost: str, tmp_path: Path) -> None:
    with replicated(vhost, tmp_path) as (_, _, applying), vhost_for_a_while() as name:
        frames = applying.frames
        with begin_restoring(name, name="b", arena_bytes=ARENA) as broker, Applier(broker) as other:
            first = next(
                each for each in frames if sum(bool(body) for _, body in ends_of(each)) > 1
            )
            for frame in frames[: frames.index(first)]:
                assert other.apply(frame)
            damaged = bytearray(first.records)
            damaged[next(end for end, body in ends_of(first) if body) - 1] ^= 1
            with pytest.raises(JournalDamaged, match="does not check"):
                other.apply(replace(first, records=memoryview(damaged)))
            cut = next(end for end, _ in ends_of(first))
            with pytest.raises(JournalDamaged, match="its last record is missing"):
                other.apply(replace(first, records=first.records[:cut]))
            rest = frames[frames.index(first) :]
            assert other.apply(first)
            assert not other.apply(first)
            with pytest.raises(MessageGone, match="frames are missing: the last one was "):
                other.apply(rest[2])
            for frame in rest[1:]:
                assert other.apply(frame)
            other.finish()
            with pytest.raises(ConnectionClosed):
                other.apply(frames[-1])


def ends_of(frame: Frame) -> Iterator[tuple[int, bytes]]:
    """Where each record ends, and its body."""
    at = 0
    for each in stored(frame.records):
        at += HEAD.size + (len(each.body) + 7 & -8)
        yield at, each.body


def test_a_vhost_that_is_there_for_others(vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        pytest.raises(InvalidArgument, match="is there for others"),
    ):
        Applier(broker)


def test_what_was_not_finished_leaves_nothing(vhost: str, tmp_path: Path) -> None:
    with replicated(vhost, tmp_path) as (_, applier, _):
        copied = applier._broker.vhost
        applier.close()
        left = [path.name for path in Path("/dev/shm").glob(f"shmbroker.{copied}.queue-*")]
        assert left == []
    with Replay(tmp_path / "replica") as replay:
        assert sum(1 for _ in replay) > 100
