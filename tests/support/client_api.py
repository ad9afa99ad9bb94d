"""A program written once, for every way to connect: in shared memory or over TCP, with threads or
asyncio.  What may be awaited is: `await it(queue.publish(b"x"))`."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shmbroker
import shmbroker.aio
from tests.support.serving import Site

TRANSPORTS = ("shm", "tcp")
STYLES = ("sync", "asyncio")
PATIENCE = 60.0
Begun = Future[Any] | asyncio.Task[Any]


async def it(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


async def each(messages: Any) -> AsyncIterator[Any]:
    if hasattr(messages, "__aiter__") and not hasattr(messages, "__next__"):
        async for message in messages:
            yield message
    else:
        for message in messages:
            yield message


async def some(count: int, messages: Any) -> list[bytes]:
    """Bodies of so many, or of all if it ends before; the last one is acknowledged, if that may be.

    A loop that has a long time and is left behind its last message does not depend on how fast a
    machine is.
    """
    found: list[bytes] = []
    async for message in each(messages):
        found.append(message.body)
        if len(found) == count:
            if hasattr(message, "ack"):
                await it(message.ack())
            break
    return found


async def leave(loop: Any) -> None:
    await it(loop.aclose() if hasattr(loop, "aclose") else loop.close())


@asynccontextmanager
async def entered(what: Any) -> AsyncIterator[Any]:
    what = what if hasattr(what, "__aenter__") else await it(what)
    if is_sync(what):
        with what as inside:
            yield inside
    else:
        async with what as inside:
            yield inside


def is_sync(what: Any) -> bool:
    return not hasattr(what, "__aenter__") or getattr(what, "_is_sync", False)


@dataclass
class Api:
    """One way."""

    transport: str
    style: str
    vhost: str
    uri: str
    opened: list[Any]

    @property
    def is_over_link(self) -> bool:
        return self.transport == "tcp"

    async def connect(self, **options: Any) -> Any:
        if self.is_over_link:
            options = {"user": "site", "password": "correct horse battery", **options}
        how = shmbroker.connect if self.style == "sync" else shmbroker.aio.connect
        broker = await it(how(self.uri, **options))
        self.opened.append(broker)
        return broker

    def run(self, program: Callable[[Api, Any], Awaitable[None]]) -> None:
        async def whole() -> None:
            try:
                await program(self, await self.connect())
            finally:
                for broker in self.opened:
                    await it(broker.close())

        asyncio.run(whole())


def in_each_way(program: Callable[[Api, Any], Awaitable[None]]) -> Callable[[Api], None]:
    @functools.wraps(program)
    def test(api: Api) -> None:
        api.run(program)

    del test.__wrapped__  # pytest would ask for its arguments
    return test


def beside(api: Api, work: Coroutine[Any, Any, Any]) -> Begun:
    """In a thread of its own, or a task."""
    if api.style == "asyncio":
        return asyncio.create_task(work)
    begun: Future[Any] = Future()

    def works() -> None:
        try:
            begun.set_result(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001  # it is told where it is waited for
            begun.set_exception(error)

    threading.Thread(target=works, daemon=True).start()
    return begun


async def result(begun: Begun) -> Any:
    if isinstance(begun, Future):
        return begun.result(PATIENCE)
    return await asyncio.wait_for(begun, PATIENCE)


def ways(vhost: str, folder: Path, transport: str, style: str) -> Iterator[Api]:
    if transport == "shm":
        yield Api(transport, style, vhost, f"shm://{vhost}", [])
        return
    with ExitStack() as opened:
        broker = opened.enter_context(shmbroker.connect(f"shm://{vhost}", name="test"))
        site = Site(broker, folder)
        opened.enter_context(site.served())
        yield Api(transport, style, vhost, f"tcp://127.0.0.1:{site.port}", [])
