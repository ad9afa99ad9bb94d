"""Programs in shared memory whose broker serves no more are told so, and who does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import shmbroker
import shmbroker.aio
from shmbroker import Broker, ConnectionClosed, Moved
from shmbroker.ipc._native import lib
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
