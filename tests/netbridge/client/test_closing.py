"""Closing: without a limit of calls, and while calls wait for a message, for room, for a reply."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import shmbroker
from shmbroker import ConnectionClosed, Unconfirmed, aio
from shmbroker.netbridge.client import session as module
from tests.support.client_api import Api, it
from tests.support.serving import Site

LOGIN = {"user": "site", "password": "correct horse battery"}
PATIENCE = 60.0


def uri(site: Site) -> str:
    return f"tcp://127.0.0.1:{site.port}?call-timeout=-1&reconnect-deadline=-1"


def test_a_close_of_asyncio_waits_for_its_end(served: Site) -> None:
    async def program() -> bool:
        broker: Any = await aio.connect(uri(served), **LOGIN)
        session, is_over = broker._session, []
        close = session._thread.close
        session._thread.close = lambda: (is_over.append(session.is_closed), close())
        await broker.close()
        return is_over == [True]

    assert asyncio.run(asyncio.wait_for(program(), PATIENCE)), "it was closed in the middle"


def test_all_that_close_at_the_same_time_are_told(served: Site) -> None:
    broker: Any = shmbroker.connect(uri(served), **LOGIN)
    session, goes = broker._session, threading.Event()
    session._soon(lambda: goes.wait(PATIENCE))  # both close before it hears an answer
    closings = [session.way.signal() for _ in range(2)]
    for each in closings:
        session._soon(partial(session._close, each))
    goes.set()
    assert [each.sleep(PATIENCE) for each in closings] == [True, True]
    broker.close()


class Slow:
    """Of a network thread that takes its time to end."""

    due = math.inf

    def __init__(self) -> None:
        self.begins, self.may_end = threading.Event(), threading.Event()

    def end(self) -> None:
        self.begins.set()
        assert self.may_end.wait(PATIENCE), "the loop stands still"


def test_a_loop_goes_on_while_a_connection_is_closed(served: Site) -> None:
    async def program() -> None:
        broker: Any = await aio.connect(uri(served), **LOGIN)
        slow, thread = Slow(), broker._session._thread
        thread.call(lambda: thread.members.append(slow))
        closing = asyncio.gather(broker.close(), broker.close())
        while not slow.begins.is_set():
            await asyncio.sleep(0.005)
        slow.may_end.set()
        await closing
        assert thread.failure is None

    asyncio.run(program())


def test_a_close_ends_a_take_that_waits(api: Api) -> None:
    async def program(api: Api, broker: Any) -> None:
        queue = await it(broker.declare_queue("q"))
        is_sync = api.style == "sync"
        get = asyncio.to_thread(queue.get, timeout=None) if is_sync else queue.get(timeout=None)
        taking = asyncio.ensure_future(get)
        await asyncio.sleep(0)
        while api.is_over_link and not broker._session._pending:
            await asyncio.sleep(0.001)
        await it(broker.close())
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(taking, PATIENCE)

    api.run(program)


@pytest.mark.parametrize("waits_for", ["room", "a reply"])
def test_a_close_ends_what_waits_and_leaves_what_was_sent_ahead_to_others(
    served: Site, waits_for: str
) -> None:
    with ThreadPoolExecutor() as threads:
        broker: Any = shmbroker.connect(uri(served), **LOGIN)
        ahead = broker.declare_queue("ahead")
        ahead.publish_many([b"1", b"2", b"3"])
        consuming = ahead.consume(prefetch=100)
        assert next(consuming).body == b"1"
        queue = broker.declare_queue("q", slots=8)
        if waits_for == "room":
            queue.publish_many([b"x"] * 8)
        verb = queue.publish if waits_for == "room" else queue.request
        waiting = threads.submit(verb, b"waits", timeout=None)
        while not broker._session._client.calls.sent:
            pass
        broker.close()
        with pytest.raises(Unconfirmed):
            waiting.result(PATIENCE)
        there = served.broker.queue("ahead")  # they come back one after the other
        assert [there.receive(timeout=PATIENCE / 2) for _ in range(3)] == [b"1", b"2", b"3"]
        del consuming


@pytest.fixture
def dead(vhost: str, tmp_path: Any) -> Iterator[Any]:
    """A program whose broker was killed."""
    with shmbroker.connect(f"shm://{vhost}", name="test") as broker:
        site = Site(broker, tmp_path)
        with site.opened:
            process = site.begin()
            there = f"failover:(tcp://127.0.0.1:{site.port})?startup-max-reconnect-attempts=-1"
            program: Any = shmbroker.connect(
                f"{there}&call-timeout=-1&reconnect-deadline=-1", **LOGIN
            )
            process.kill()
            yield program


def test_a_close_without_a_limit_does_not_wait_for_a_broker_that_is_dead(
    dead: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UNANSWERED_SECONDS", 0.01, raising=False)
    dead.close()
    assert dead.is_closed
