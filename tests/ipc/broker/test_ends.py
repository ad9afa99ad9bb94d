"""Frames with several ends: confirmed by default when the disk and all replicas have them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from select import select

import pytest

import shmbroker
from shmbroker import Broker, ConnectionClosed, Empty, MessageGone, Queue, Unconfirmed
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.end import End, Frame
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.journal.stored import Stored, stored
from shmbroker.perf.machine.process import Process
from tests.ipc.connection.test_native_threads import of_c
from tests.support.host import PATIENCE, after_the_host_died, journaling

SOON = 0.05
"""For what must not happen: no test waits longer for it."""
NEVER = 1000.0


@pytest.fixture
def broker(vhost: str) -> Iterator[Broker]:
    with shmbroker.connect(f"shm://{vhost}") as made:
        yield made


def bodies_in(frame: Frame) -> list[bytes]:
    return [each.body for each in stored(frame.records) if each.kind == records.MESSAGE]


def has(frame: Frame, body: bytes) -> bool:
    return any(each.endswith(body) for each in bodies_in(frame))


def next_frame(end: End) -> Frame:
    frame = end.read(PATIENCE)
    assert frame is not None
    return frame


def frame_with(end: End, body: bytes) -> Frame:
    """Read on until a frame has this message."""
    while not has(frame := next_frame(end), body):
        pass
    return frame


def goes_on(end: End, frame: Frame, body: bytes) -> Frame:
    """The frame with this message, and it is done with those before."""
    while not has(frame, body):
        end.done(frame.number)
        frame = next_frame(end)
    return frame


def fills(end: End, queue: Queue, body: bytes) -> Frame:
    """An end that may have one frame in flight has that with this message."""
    queue.publish(body, confirm="shm")
    return goes_on(end, next_frame(end), body)


def test_a_confirm_waits_for_all_ends(vhost: str, broker: Broker, tmp_path: Path) -> None:
    with journaling(vhost, tmp_path) as journaler, End(journaler, "b", timeout=NEVER) as end:
        queue = broker.declare_queue("orders", durable=True)
        for body in (b"one", b"two", b"three"):
            queue.publish(body, confirm="shm")
            last = frame_with(end, body)
            with pytest.raises(Unconfirmed):
                queue.confirm(timeout=SOON)
        with pytest.raises(Empty):
            queue.receive(timeout=0)
        assert end.state().frames >= 3, "several are in flight"
        end.done(last.number)
        queue.confirm(timeout=PATIENCE)
        assert [queue.receive(timeout=0) for _ in range(3)] == [b"one", b"two", b"three"]


def test_what_is_done_is_confirmed_in_order(vhost: str, broker: Broker, tmp_path: Path) -> None:
    """Each frame by itself, as soon as it is done, with later ones in flight."""
    with journaling(vhost, tmp_path) as journaler, End(journaler, "b", timeout=NEVER) as end:
        queue = broker.declare_queue("orders", durable=True)
        frames = []
        for number in range(20):
            queue.publish(b"%d" % number, confirm="shm")
            frames.append(frame_with(end, b"%d" % number))
        for number, frame in enumerate(frames):
            with pytest.raises(Empty):
                queue.receive(timeout=0)
            end.done(frame.number)
            assert queue.receive(timeout=PATIENCE) == b"%d" % number


def test_a_frame_is_told_with_the_one_before_and_its_epoch(
    vhost: str, broker: Broker, tmp_path: Path
) -> None:
    """What an end reads is what the journal has, through several segments."""
    with (
        journaling(vhost, tmp_path, 7, 64 << 10) as journaler,
        End(journaler, "b", timeout=NEVER) as end,
    ):
        queue = broker.declare_queue("orders", durable=True)
        before, told = 0, list[tuple[int, list[Stored]]]()
        for number in range(100):
            queue.publish(bytes(3000), confirm="shm")
            while not told or not any(each.kind == records.MESSAGE for each in told[-1][1]):
                frame = next_frame(end)
                assert frame.epoch == 7
                assert frame.after == before or (before == 0 and number == 0)
                before = frame.number
                told.append((frame.number, list(stored(frame.records))))
                end.done(frame.number)
            told.append((0, []))
            queue.confirm(timeout=PATIENCE)
    written = {number: found for number, found in told if number}
    with Replay(tmp_path) as replay:
        read = list(replay)
    assert len({each.serial for each in read}) > 3
    for number, found in written.items():
        assert [(each.kind, each.queue, each.position, each.body) for each in found] == [
            (each.kind, each.queue, each.position, each.body)
            for each in read
            if each.frame == number
        ]


def test_a_transaction_waits_for_all_ends(vhost: str, broker: Broker, tmp_path: Path) -> None:
    with journaling(vhost, tmp_path) as journaler, End(journaler, "b", timeout=NEVER) as end:
        first, second = (broker.declare_queue(name, durable=True) for name in "ab")
        committed = threading.Event()

        def commit() -> None:
            with broker.transaction(timeout=PATIENCE) as together:
                together.publish(first, b"first")
                together.publish(second, b"second")
            committed.set()

        thread = threading.Thread(target=commit)
        thread.start()
        frame = frame_with(end, b"second")
        assert {each[-5:] for each in bodies_in(frame)} == {b"first", b"econd"}
        assert not committed.wait(SOON)
        end.done(frame.number)
        assert committed.wait(PATIENCE)
        thread.join()
        assert (first.receive(timeout=0), second.receive(timeout=0)) == (b"first", b"second")


def test_one_that_never_answers_is_dropped(vhost: str, broker: Broker, tmp_path: Path) -> None:
    with (
        journaling(vhost, tmp_path) as journaler,
        End(journaler, "deaf", timeout=0.2) as deaf,
        End(journaler, "well", timeout=NEVER) as well,
    ):
        queue = broker.declare_queue("orders", durable=True)
        queue.publish(b"one", confirm="shm")
        frame = frame_with(well, b"one")
        well.done(frame.number)
        queue.confirm(timeout=PATIENCE)
        noted = [each.text for each in broker.errors()]
        assert (
            len([each for each in noted if "'deaf' was dropped: no progress for 0.2 s" in each])
            == 1
        )
        with pytest.raises(ConnectionClosed, match="no progress"):
            deaf.read()
        queue.publish(b"two", confirm="shm")
        well.done(frame_with(well, b"two").number)
        queue.confirm(timeout=PATIENCE)
        assert well.read() is None or well.state().counts


def test_what_is_in_flight_is_bounded(vhost: str, broker: Broker, tmp_path: Path) -> None:
    """An end that may have no bytes in flight has one frame at a time, and publishers wait."""
    with (
        journaling(vhost, tmp_path) as journaler,
        End(journaler, "b", timeout=NEVER, bytes_max=0) as end,
    ):
        queue = broker.declare_queue("orders", durable=True)
        frame = fills(end, queue, b"one")
        for number in range(10):
            queue.publish(b"%d" % number, confirm="shm")
            more = end.read(SOON / 10)
            if more is not None:
                assert not bodies_in(more), "a list of segments is no matter"
                frame = more
        end.done(goes_on(end, frame, b"9").number)
        queue.confirm(timeout=PATIENCE)


@pytest.fixture
def event() -> Iterator[int]:
    made = os.eventfd(0)
    yield made
    os.close(made)


def test_who_is_live_is_written_while_an_end_is_full(
    vhost: str, broker: Broker, tmp_path: Path, event: int
) -> None:
    """It may say that this end counts no more; nothing else is written with it."""
    with (
        journaling(vhost, tmp_path) as journaler,
        End(journaler, "b", timeout=NEVER, bytes_max=0) as end,
    ):
        queue = broker.declare_queue("orders", durable=True)
        fills(end, queue, b"one")
        queue.publish(b"two", confirm="shm")
        journaler.tell(event)
        count = journaler.standing(b"alone")
        assert select([event], [], [], PATIENCE)[0]
        told = journaler.told()
        assert told.synced == count
        frames = [next_frame(end)]
        while frames[-1].number < told.number:
            frames.append(next_frame(end))
        kinds = {each.kind for frame in frames for each in stored(frame.records)}
        assert kinds - {records.SEGMENTS} == {records.STANDING}
        end.done(goes_on(end, frames[-1], b"two").number)
        queue.confirm(timeout=PATIENCE)


def is_awake(status: Path) -> bool:
    with suppress(FileNotFoundError):  # a thread that looks at old segments ends by itself
        return "State:\tS" not in status.read_text()
    return False


def test_a_journaler_sleeps_while_an_end_is_full(
    vhost: str, broker: Broker, tmp_path: Path, event: int
) -> None:
    """That it holds is told when all is written that was there before."""
    others = of_c()
    with (
        journaling(vhost, tmp_path) as journaler,
        End(journaler, "b", timeout=NEVER, bytes_max=0) as end,
    ):
        queue = broker.declare_queue("orders", durable=True)
        frame = fills(end, queue, b"one")
        queue.publish(b"two", confirm="shm")
        journaler.tell(event)
        journaler.hold(True)
        ours = [status for task, status in of_c().items() if task not in others]
        until = time.monotonic() + PATIENCE
        while any(is_awake(each) for each in ours):
            assert time.monotonic() < until, "it does not sleep"
            time.sleep(0.01)  # it tells nobody
        assert not journaler.told().holds
        goes_on(end, frame, b"two")
        assert select([event], [], [], PATIENCE)[0]
        assert journaler.told().holds


def test_one_that_does_not_count_is_not_waited_for(
    vhost: str, broker: Broker, tmp_path: Path
) -> None:
    with (
        journaling(vhost, tmp_path) as journaler,
        End(journaler, "new", timeout=0.01, counts=False, bytes_max=1 << 20) as new,
        End(journaler, "late", timeout=0.01, counts=False, bytes_max=100) as late,
    ):
        queue = broker.declare_queue("orders", durable=True)
        queue.publish(b"one", timeout=PATIENCE)
        queue.publish(b"two", timeout=PATIENCE)
        with pytest.raises(ConnectionClosed, match="behind by more than it may have in flight"):
            frame_with(late, b"never")
        new.done(frame_with(new, b"two").number)
    with (
        journaling(vhost, tmp_path, 2) as journaler,
        End(journaler, "new", timeout=NEVER, counts=False) as new,
    ):
        number = new.count()
        queue.publish(b"three", confirm="shm")
        frame = frame_with(new, b"three")
        assert frame.number > number
        with pytest.raises(Unconfirmed):
            queue.confirm(timeout=SOON)
        new.done(frame.number)
        queue.confirm(timeout=PATIENCE)


def test_who_was_away_goes_on_if_it_is_still_in_flight(
    vhost: str, broker: Broker, tmp_path: Path
) -> None:
    with journaling(vhost, tmp_path) as journaler, End(journaler, "b", timeout=NEVER) as kept:
        queue = broker.declare_queue("orders", durable=True)
        frames = []
        for body in (b"one", b"two", b"three"):
            queue.publish(body, confirm="shm")
            frames.append(frame_with(kept, body))
        with End(journaler, "again", timeout=NEVER, after=frames[0].number) as again:
            assert frame_with(again, b"two").number == frames[1].number
            assert frame_with(again, b"three").number == frames[2].number
            again.done(frames[2].number)
        with pytest.raises(InvalidArgument):
            kept.done(frames[2].number + 1)
        kept.done(frames[2].number)
        with pytest.raises(MessageGone, match="from the journal's segments"):
            End(journaler, "too late", timeout=NEVER, after=frames[0].number)
        with End(journaler, "in time", timeout=NEVER, after=frames[2].number) as end:
            assert end.read() is None


def test_frames_stay_as_long_as_they_are_looked_at(
    vhost: str, broker: Broker, tmp_path: Path
) -> None:
    with journaling(vhost, tmp_path) as journaler:
        end = End(journaler, "b", timeout=NEVER)
        queue = broker.declare_queue("orders", durable=True)
        queue.publish(b"one" * 100_000, confirm="shm")
        frame = frame_with(end, b"one")
        end.done(frame.number)
        while select([end], [], [], 0)[0]:
            assert end.read() is not None
        end.close()
        queue.publish(b"two" * 100_000, timeout=PATIENCE)
        assert bodies_in(frame)[-1].endswith(b"one" * 100_000)


def test_a_stop_waits_for_what_is_in_flight(vhost: str, broker: Broker, tmp_path: Path) -> None:
    with journaling(vhost, tmp_path) as journaler, End(journaler, "b", timeout=NEVER) as end:
        queue = broker.declare_queue("orders", durable=True)
        queue.publish(b"one", confirm="shm")
        frame = frame_with(end, b"one")
        stopping = threading.Thread(target=journaler.stop)
        stopping.start()
        stopping.join(SOON)
        assert stopping.is_alive()
        with suppress(ConnectionClosed):  # it does not wait for what comes after that frame
            while frame is not None:
                end.done(frame.number)
                frame = end.read(PATIENCE)
        stopping.join(PATIENCE)
        queue.confirm(timeout=0)
        with pytest.raises(ConnectionClosed, match="was stopped"):
            end.read()


def test_a_queue_that_is_deleted_with_frames_in_flight(
    vhost: str, broker: Broker, tmp_path: Path
) -> None:
    with journaling(vhost, tmp_path) as journaler, End(journaler, "b", timeout=NEVER) as end:
        gone, queue = (broker.declare_queue(name, durable=True) for name in ("gone", "orders"))
        gone.publish(b"gone", confirm="shm")
        frame_with(end, b"gone")
        gone.delete(force=True)
        queue.publish(b"one", confirm="shm")
        end.done(frame_with(end, b"one").number)
        queue.confirm(timeout=PATIENCE)


def test_a_death_with_frames_in_flight_loses_nothing(
    vhost: str, broker: Broker, tmp_path: Path
) -> None:
    """The next one writes them again; whoever restores has each once, but for what was taken."""
    queue = broker.declare_queue("orders", durable=True, slots=256)
    told, tell = os.pipe()

    def write() -> int:
        (tmp_path / "journal").mkdir()
        with (
            shmbroker.connect(f"shm://{vhost}") as broker,
            Journaler(tmp_path / "journal") as journaler,
            End(journaler, "b", timeout=NEVER) as end,
        ):
            journaler.start(broker, 1)
            end.done(frame_with(end, b"10").number)
            frame_with(end, b"20")
            os.write(tell, b"x")
            threading.Event().wait()
        return 0

    process = Process(write, tmp_path / "errors")
    try:
        queue.publish(b"10", timeout=PATIENCE)
        for number in range(11, 21):
            queue.publish(b"%d" % number, confirm="shm")
        assert select([told], [], [], PATIENCE)[0], process.errors.read_text()
    finally:
        process.kill()
        os.close(told)
        os.close(tell)
    assert queue.receive(timeout=PATIENCE) == b"10"
    with journaling(vhost, tmp_path / "journal", 2):
        queue.confirm(timeout=PATIENCE)
        assert queue.receive(timeout=PATIENCE) == b"11"
    with after_the_host_died(vhost, tmp_path / "journal", 3) as again:
        left = [each.body for each in again.queue("orders").browse()]
    assert left == [b"%d" % number for number in range(12, 21)]


def test_an_end_of_a_journal_that_is_closed(vhost: str, tmp_path: Path) -> None:
    with Journaler(tmp_path) as journaler:
        end = End(journaler, "b", timeout=NEVER)
    with pytest.raises(ConnectionClosed, match="the journal was closed"):
        end.read(PATIENCE)
    end.close()
