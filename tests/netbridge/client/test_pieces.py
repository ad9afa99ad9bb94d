"""`publish_many` to a queue on another host, in pieces: it leaves the first of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import shmbroker
import shmbroker.aio
from shmbroker import Empty, MessageTooLarge, QueueFull
from shmbroker.netbridge.client.session import Session
from shmbroker.netbridge.serving.producer import Producer
from tests.support.client_api import STYLES, Api, it, ways
from tests.support.serving import Site

BODIES = [b"%02d" % number + bytes(64 << 10) for number in range(40)]
"""Twice as many as are on their way at once."""


@pytest.fixture(params=STYLES)
def linked(request: pytest.FixtureRequest, vhost: str, tmp_path: Path) -> Iterator[Api]:
    yield from ways(vhost, tmp_path, "tcp", request.param)


def taken(queue: shmbroker.Queue) -> list[bytes]:
    """How each that is there begins."""
    found: list[bytes] = []
    with suppress(Empty):
        while True:
            found.append(queue.receive(timeout=0)[:3].rstrip(b"\0"))
    return found


def test_room_that_comes_when_a_piece_was_refused_lets_none_in_behind_it(
    linked: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Producer._refuse
    got: list[bytes] = []
    with shmbroker.connect(f"shm://{linked.vhost}") as here:
        there = here.declare_queue("q", slots=8)

        def refuse(producer: Producer, *what: Any) -> None:
            real(producer, *what)
            got.extend(taken(there))

        monkeypatch.setattr(Producer, "_refuse", refuse)

        async def program(api: Api, broker: Any) -> None:
            queue = await it(broker.queue("q"))
            with pytest.raises(QueueFull) as caught:
                await it(queue.publish_many(BODIES, timeout=0.1))
            assert caught.value.published == 8
            await it(queue.publish(b"end"))
            got.extend(taken(there))
            assert got == [*(b"%02d" % number for number in range(8)), b"end"]

        linked.run(program)


def test_what_was_not_said_when_it_is_cancelled_is_not_published(served: Site) -> None:
    there = served.broker.declare_queue("q", slots=8)

    async def program() -> list[bytes]:
        uri = f"tcp://127.0.0.1:{served.port}"
        login = {"user": "site", "password": "correct horse battery"}
        async with await shmbroker.aio.connect(uri, **login) as broker:
            queue = await broker.queue("q")
            publishing = asyncio.create_task(queue.publish_many(BODIES))
            while len(there) < 8:
                await asyncio.sleep(0.01)
            publishing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await publishing
            end = asyncio.create_task(queue.publish(b"end"))
            got: list[bytes] = []
            while got[-1:] != [b"end"]:
                got += await asyncio.to_thread(taken, there)
            await end
            return got[:-1]

    got = asyncio.run(program())
    assert 8 <= len(got) < len(BODIES)
    assert got == [each[:2] for each in BODIES[: len(got)]]


def test_one_that_is_too_large_for_a_link_says_how_many_were_published_before_it(
    linked: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "message_bytes_max", 300 << 10)

    async def program(_: Api, broker: Any) -> None:
        queue = await it(broker.declare_queue("q"))
        with pytest.raises(MessageTooLarge) as caught:
            await it(queue.publish_many([b"1", b"2", bytes(300 << 10), b"3"]))
        assert caught.value.published == 2
        assert await it(queue.receive_many()) == [b"1", b"2"]

    linked.run(program)
