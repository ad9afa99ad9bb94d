"""Frames out of a journal's files, shipped to another journal, while the first one is written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker, JournalDamaged, MessageGone
from shmbroker.ipc.base.errors import Replaced
from shmbroker.ipc.broker.applier import Applier
from shmbroker.ipc.broker.journaler import Journaler, begin_restoring
from shmbroker.ipc.journal.end import End
from shmbroker.ipc.journal.history import History, last_places
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.place import Place
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.journal.shipping import Tail
from tests.conftest import vhost_for_a_while
from tests.support.host import PATIENCE

SEGMENT = 64 << 10
ARENA = 16 << 20


class Copy:
    """Another journal, with a vhost that nobody sees yet."""

    def __init__(self, folder: Path, opened: ExitStack, segment_bytes: int = 2 * SEGMENT) -> None:
        folder.mkdir(exist_ok=True)
        self.vhost = opened.enter_context(vhost_for_a_while())
        self.broker = opened.enter_context(
            begin_restoring(self.vhost, name="replica", arena_bytes=ARENA)
        )
        self.journal = opened.enter_context(
            Journal(folder, epoch=None, segment_bytes=segment_bytes)
        )
        self.applier = opened.enter_context(Applier(self.broker, self.journal))
        with Replay(folder) as replay:
            self.applier.read(replay)
            self.journal.begin(1, replay)

    def bodies(self) -> list[bytes]:
        self.applier.finish()
        return [each.body for each in self.broker.queue("orders").browse()]


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def original(vhost: str, tmp_path: Path, opened: ExitStack) -> tuple[Broker, Journaler]:
    (tmp_path / "original").mkdir()
    broker = opened.enter_context(shmbroker.connect(f"shm://{vhost}"))
    broker.declare_queue("orders", durable=True, slots=4096)
    journaler = opened.enter_context(Journaler(tmp_path / "original", segment_bytes=SEGMENT))
    journaler.start(broker, 1)
    return broker, journaler


def publish(broker: Broker, first: int, count: int) -> list[bytes]:
    bodies = [b"%08d" % each * 64 for each in range(first, first + count)]
    for each in range(0, count, 10):
        broker.queue("orders").publish_many(bodies[each : each + 10], timeout=PATIENCE)
    return bodies


def attached(journaler: Journaler, history: History, copy: Copy) -> End:
    """Behind what the files have: the writer may be ahead by a frame at any moment."""
    while True:
        copy.applier.frames(history.read())
        place = history.place
        assert place is not None
        with suppress(MessageGone):
            return End(journaler, "copy", timeout=PATIENCE, counts=False, after=place.number)


def test_files_first_and_then_what_the_writer_tells(
    original: tuple[Broker, Journaler], tmp_path: Path, opened: ExitStack
) -> None:
    broker, journaler = original
    bodies = publish(broker, 0, 300)
    with History(tmp_path / "original") as history:
        copy = Copy(tmp_path / "copy", opened)
        while shipped := history.read():
            copy.applier.frames(shipped)
        place = history.place
        assert place is not None
        assert place.number >> 32 > 2, "several segments"
        bodies += publish(broker, 300, 1)
        copy.applier.frames(history.read())
        assert history.place == copy.applier.place()
        end = opened.enter_context(attached(journaler, history, copy))
        place = history.place
        assert place is not None
        tail = Tail(end, place.chain)
        bodies += publish(broker, 301, 10)
        assert end.state().told > place.number
        until = time.monotonic() + PATIENCE
        while copy.applier.written < end.state().told and time.monotonic() < until:
            shipped = tail.read()
            copy.applier.frames(shipped)
            if shipped:
                assert copy.applier.written == tail.last
                end.done(tail.last)
        tail.close()
    assert copy.bodies() == bodies


def test_it_goes_on_where_it_was(
    original: tuple[Broker, Journaler], tmp_path: Path, opened: ExitStack
) -> None:
    """With a journal of its own that is read again, and segments that are kept for it."""
    broker, journaler = original
    journaler.keep(None, 100 * SEGMENT)
    bodies = publish(broker, 0, 50)
    with History(tmp_path / "original") as history, ExitStack() as former:
        copy = Copy(tmp_path / "copy", former)
        copy.applier.frames(history.read())
        seen = copy.applier.place()
    bodies += publish(broker, 50, 400)
    for _ in range(430):
        with broker.queue("orders").get(timeout=PATIENCE):
            pass
    broker.queue("orders").confirm(timeout=PATIENCE)
    copy = Copy(tmp_path / "copy", opened)
    assert copy.applier.place() == seen is not None
    with History(tmp_path / "original") as history:
        assert history.seek(seen)
        while shipped := history.read():
            copy.applier.frames(shipped)
    last, repeated = last_places(tmp_path / "copy")
    assert last is not None
    assert repeated == copy.applier.place()
    with History(tmp_path / "copy") as ours:
        assert repeated is not None
        assert ours.seek(repeated), "by the frame that it repeats"
        assert ours.place == last
    left = [each for each in copy.bodies() if each in bodies[430:]]
    assert left == bodies[430:]


def test_how_much_is_left_in_the_files(original: tuple[Broker, Journaler], tmp_path: Path) -> None:
    """All but the newest segment, which is not full."""
    broker, _ = original
    publish(broker, 0, 300)
    with History(tmp_path / "original") as history:
        sizes = [each.stat().st_size for each in sorted((tmp_path / "original").glob("*.journal"))]
        assert history.left_bytes == sum(sizes[:-1]) > 0
        while history.read():
            pass
        assert history.left_bytes <= SEGMENT, "it may have begun a new one"


def test_another_past_is_no_past_of_ours(
    original: tuple[Broker, Journaler], tmp_path: Path, opened: ExitStack
) -> None:
    broker, _ = original
    publish(broker, 0, 10)
    with History(tmp_path / "original") as history:
        first = bytes(history.read())
        place = history.place
        assert place is not None
        for other in (
            replace(place, chain=place.chain ^ 1),
            replace(place, seal=place.seal ^ 1),
            replace(place, epoch=2),
            replace(place, number=place.number + 1),
        ):
            assert not history.seek(other)
        assert history.seek(place)
        publish(broker, 10, 10)
        second = bytes(history.read())
    copy = Copy(tmp_path / "copy", opened)
    with pytest.raises(JournalDamaged, match="what is before it there is not what is here"):
        copy.applier.frames(second)
    copy.applier.frames(first)
    copy.applier.frames(first)  # what it has is passed over
    with pytest.raises(JournalDamaged, match="not made of whole frames"):
        copy.applier.frames(second[:-8])
    stale = bytearray(second)
    stale[16:24] = bytes(8)
    with pytest.raises(Replaced, match="of epoch 0, and epoch 1 was met"):
        copy.applier.frames(bytes(stale))
    copy.applier.frames(second)
    assert copy.applier.place() != place


def test_a_segment_that_went_is_noticed(original: tuple[Broker, Journaler], tmp_path: Path) -> None:
    broker, journaler = original
    publish(broker, 0, 10)
    with History(tmp_path / "original") as history:
        assert history.read()
        place = history.place
        assert place is not None
        queue = broker.queue("orders")
        publish(broker, 10, 500)
        for _ in range(510):
            with queue.get(timeout=PATIENCE):
                pass
        until = time.monotonic() + PATIENCE
        while journaler.statistics().segments > 2 and time.monotonic() < until:
            time.sleep(0.01)
        assert journaler.statistics().segments <= 2
        publish(broker, 600, 300)
        segment = tmp_path / "original" / f"{history.serial:016x}.journal"
        while segment.exists() and time.monotonic() < until:
            time.sleep(0.01)
        assert not segment.exists()
        with pytest.raises(MessageGone, match="was let go of"):
            while history.read():
                pass
        assert not history.seek(place)
        assert not history.seek(Place(1 << 40, 1, 2, 3))
