"""Programs in shared memory whose broker serves no more are told so, and who does."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import shmbroker
import shmbroker.aio
from shmbroker import Broker, ConnectionClosed, Moved
from shmbroker.core import layout
from shmbroker.core.codes import OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.broker.journaler import attach
from shmbroker.ipc.instance.moving import departs, moves, serves

THERE = "tcp://there.example:61616"

CALLS: dict[str, Callable[[Broker, Any], object]] = {
    "publish": lambda broker, queue: queue.publish(b"x"),
    "publish-many": lambda broker, queue: queue.publish_many([b"x", b"y"]),
    "get": lambda broker, queue: queue.get(timeout=60),
    "statistics": lambda broker, queue: queue.statistics(),
    "browse": lambda broker, queue: list(queue.browse()),
    "open": lambda broker, queue: broker.queue("other"),
    "declare": lambda broker, queue: broker.declare_queue("new"),
    "delete": lambda broker, queue: broker.delete_queue("q"),
    "exchange": lambda broker, queue: broker.declare_exchange("x", "topic"),
    "through-an-exchange": lambda broker, queue: queue.through.publish(b"x"),
    "transaction": lambda broker, queue: queue.begun.publish(queue.queue, b"x"),
}


class Opened:
    """A queue, and what else was there before."""

    def __init__(self, broker: Broker) -> None:
        self.queue = broker.declare_queue("q")
        self.through = broker.declare_exchange("e", "fanout")
        broker.bind("e", "q", "")
        self.begun = broker.transaction()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.queue, name)


@pytest.mark.parametrize("call", CALLS)
def test_every_call_says_moved_and_where(broker: Broker, call: str) -> None:
    with shmbroker.connect(f"shm://{broker.vhost}") as program:
        opened = Opened(program)
        opened.queue.publish(b"there")
        moves(broker.vhost, THERE)
        with pytest.raises(Moved, match=THERE):
            CALLS[call](program, opened)
        with pytest.raises(ConnectionClosed):
            opened.queue.publish(b"again")
        assert program.is_closed
    serves(broker.vhost)


def test_whoever_waits_is_told(broker: Broker) -> None:
    said: list[BaseException] = []
    with shmbroker.connect(f"shm://{broker.vhost}") as program:
        queue = program.declare_queue("q")

        def wait() -> None:
            with pytest.raises(Moved) as caught:
                queue.get()
            said.append(caught.value)

        waiting = threading.Thread(target=wait)
        waiting.start()
        moves(broker.vhost, THERE)
        waiting.join(20)
        assert THERE in str(said[0])
    serves(broker.vhost)


def test_with_asyncio(vhost: str) -> None:
    async def main() -> None:
        async with shmbroker.aio.connect(f"shm://{vhost}") as program:
            queue = await program.declare_queue("q")
            getting = asyncio.create_task(queue.receive())
            await asyncio.sleep(0)
            moves(vhost, THERE)
            with pytest.raises(Moved):
                await getting
            with pytest.raises(Moved):
                await queue.publish(b"x")
        serves(vhost)

    asyncio.run(main())


def test_nobody_connects_until_it_serves_again_and_then_all_is_there(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as program:
        queue = program.declare_queue("q")
        queue.publish_many([b"1", b"2", b"3"])
        held = queue.get(timeout=60)
        moves(vhost, "")
        for connect in (shmbroker.connect, lambda url: shmbroker.connect(url, observe=True)):
            with pytest.raises(Moved, match=r"has moved.*not known who"):
                connect(f"shm://{vhost}")
        with pytest.raises(Moved):
            held.ack()
    serves(vhost)
    with shmbroker.connect(f"shm://{vhost}") as again:
        again.repair()
        assert again.queue("q").receive_many(10, timeout=60) == [b"1", b"2", b"3"]


def test_an_address_that_is_too_long_is_refused(vhost: str) -> None:
    with pytest.raises(shmbroker.InvalidArgument):
        moves(vhost, "x" * 1024)
    with shmbroker.connect(f"shm://{vhost}") as program:
        program.declare_queue("q")


def test_who_remains_goes_on_when_programs_are_told(vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as program,
        shmbroker.connect(f"shm://{vhost}") as ours,
    ):
        queue = program.declare_queue("q", auto_delete=True)
        queue.publish_many([b"1", b"2"])
        held = queue.get(timeout=60)
        mine = program.temporary_queue()
        mine.publish(b"mine")
        before = ours.queue("q")
        departs(vhost, THERE, ours)
        with pytest.raises(Moved, match=THERE):
            queue.publish(b"3")
        with pytest.raises(Moved):
            shmbroker.connect(f"shm://{vhost}")
        before.publish(b"4")
        assert lib.sb_take_back(before._queue) == 1
        assert lib.sb_take_back(before._queue) == 0
        program.close()
        ours.repair()  # neither the temporary queue of the one that left goes, nor an unused one
        assert ours.queue(mine.name).statistics().depth == 1
        with pytest.raises(Moved, match="is leaving"):
            ours.delete_queue("q", force=True)
        assert [bytes(each.body) for each in ours.queue("q").browse()] == [b"1", b"2", b"4"]
        with pytest.raises(shmbroker.Error):
            held.ack()
    serves(vhost)
    with shmbroker.connect(f"shm://{vhost}") as again:
        assert again.queue("q").receive_many(10, timeout=60) == [b"1", b"2", b"4"]


def test_only_what_others_have_in_hand_is_taken_back(vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as program,
        shmbroker.connect(f"shm://{vhost}") as ours,
    ):
        queue = program.declare_queue("q")
        queue.publish(b"1")
        with queue.get(timeout=60) as message:
            assert lib.sb_take_back(queue._queue) == 0  # our own
            message.ack()
        assert lib.sb_take_back(ours.queue("q")._queue) == 0


# --- programs that were not told yet --------------------------------------------------------------


def test_one_of_many_queues_that_ends_leaves_them_to_who_remains(vhost: str) -> None:
    """Its end looks through all of the catalog."""
    with (
        shmbroker.connect(f"shm://{vhost}") as program,
        shmbroker.connect(f"shm://{vhost}") as ours,
    ):
        program.declare_exchange("e", "fanout")
        had = [
            program.declare_queue(f"q{each}", slots=4)
            for each in range(layout.PARTICIPANT_LIST + 1)
        ]
        for queue in had:
            queue.publish(queue.name.encode())
        program.bind("e", "q0")
        departs(vhost, THERE, ours)
        program.close()
        assert [bytes(each.body) for each in ours.queue("q1").browse()] == [b"q1"]
    serves(vhost)
    with shmbroker.connect(f"shm://{vhost}") as again:
        assert all(again.queue(each.name).receive(timeout=0) == each.name.encode() for each in had)
        assert [each.destination for each in again.bindings()] == ["q0"]


@pytest.mark.parametrize("remains", [True, False])
def test_what_one_that_ends_has_had_is_dealt_with_when_all_is_back(
    vhost: str, remains: bool
) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as program,
        shmbroker.connect(f"shm://{vhost}") as ours,
    ):
        queue = program.declare_queue("q")
        queue.publish(b"in hand")
        held = queue.get(timeout=60)
        program.temporary_queue()
        departs(vhost, THERE, *([ours] if remains else []))
        program.close()
        if remains:
            ours.repair()
        with pytest.raises(shmbroker.Error):
            held.ack()
    serves(vhost)
    with shmbroker.connect(f"shm://{vhost}") as again:
        again.repair()
        assert again.queue("q").receive(timeout=0) == b"in hand"
        assert [each.name for each in again.queues()] == ["q"]


def test_a_change_that_a_death_cut_short_is_repaired_when_all_is_back(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as program:
        program.declare_exchange("e", "fanout")
        program.declare_queue("q").publish(b"there")
        program.bind("e", "q")
    moves(vhost, THERE)
    with Path(f"/dev/shm/shmbroker.{vhost}.catalog").open("r+b", buffering=0) as catalog:
        catalog.seek(layout.CATALOG_CHANGING_AT)
        catalog.write((1).to_bytes(8, "little"))
    serves(vhost)
    with shmbroker.connect(f"shm://{vhost}") as again:
        again.declare_queue("other")
        assert again.queue("q").receive(timeout=0) == b"there"
        assert [each.destination for each in again.bindings()] == ["q"]


F_OFD_SETLK: Final = 37  # the fcntl module does not have it in every build
NAPS: Final = 20
"""So often somebody sleeps who waits for the lock, and not on the way there."""


def files_of(vhost: str) -> set[int]:
    """What this process has open of the catalog."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        if os.path.lexists(each) and str(each.readlink()).endswith(f"{vhost}.catalog"):
            found.add(int(each.name))
    return found


def slept(thread: int) -> int:
    """How often."""
    status = Path(f"/proc/self/task/{thread}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line[:4] == "volu")


def test_who_waits_for_the_lock_meanwhile_takes_no_row_of_what_has_moved(vhost: str) -> None:
    said: list[object] = []
    with shmbroker.connect(f"shm://{vhost}") as program:
        program.declare_queue("q").publish(b"there")

        def declare() -> None:
            try:
                said.append(program.declare_queue("late"))
            except Moved as told:
                said.append(told)

        before = files_of(vhost)
        with attach(vhost) as mover:
            its_lock = max(files_of(vhost) - before)  # it holds it from here on: nobody is between
            whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
            fcntl.fcntl(its_lock, F_OFD_SETLK, whole)
            waits = threading.Thread(target=declare)
            waits.start()
            assert waits.native_id is not None
            late = time.monotonic() + 60
            while slept(waits.native_id) < NAPS and time.monotonic() < late:
                os.sched_yield()
            assert lib.sb_vhost_moves(mover._connection, b"", ffi.NULL, 0) == OK
            waits.join(60)
    assert isinstance(said[0], Moved)
    serves(vhost)
    with shmbroker.connect(f"shm://{vhost}") as again:
        assert [each.name for each in again.queues()] == ["q"]
        assert again.queue("q").receive(timeout=0) == b"there"
