"""How a program waits: its thread sleeps, or its coroutine.  Verbs are written once, as coroutines.

For a program without asyncio a verb never suspends: `Blocking.wait` sleeps inside of it, and
`finished` takes its result.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import wraps
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Signal(Protocol):
    """Somebody waits for it; any thread may set it, more than once."""

    is_set: bool

    def set(self) -> None: ...


class Way(Protocol):
    is_blocking: bool

    def signal(self) -> Any: ...

    async def wait(self, signal: Any, timeout: float | None = None) -> bool:
        """False if it was not set in time."""

    async def aside(self, step: Callable[[], object]) -> None:
        """It may take a while, and no loop stands still for it."""


class _Lock:
    __slots__ = ("_lock", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        if not self.is_set:
            self.is_set = True
            with suppress(RuntimeError):  # another thread has set it in the same moment
                self._lock.release()

    def sleep(self, timeout: float | None) -> bool:
        if not self.is_set:
            longest = threading.TIMEOUT_MAX
            self._lock.acquire(timeout=-1 if timeout is None else min(timeout, longest))
        return self.is_set


class Blocking:
    is_blocking = True

    def signal(self) -> _Lock:
        return _Lock()

    async def wait(self, signal: _Lock, timeout: float | None = None) -> bool:
        return signal.sleep(timeout)

    async def aside(self, step: Callable[[], object]) -> None:
        step()


class _Future:
    __slots__ = ("_loop", "future", "is_set")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.is_set = False
        self._loop = loop
        self.future: asyncio.Future[None] = loop.create_future()

    def set(self) -> None:
        if not self.is_set:
            self.is_set = True
            with suppress(RuntimeError):  # the loop is closed: nobody waits in it
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Awaiting:
    """Of one loop."""

    is_blocking = False

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()

    def signal(self) -> _Future:
        return _Future(self.loop)

    async def wait(self, signal: _Future, timeout: float | None = None) -> bool:
        if not signal.is_set:
            await asyncio.wait([signal.future], timeout=timeout)
        return signal.is_set

    async def aside(self, step: Callable[[], object]) -> None:
        await asyncio.to_thread(step)


def finished(verb: Coroutine[Any, Any, T]) -> T:
    """What a verb answers that never suspends."""
    try:
        verb.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("a blocking verb was suspended")


def blocking(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The same verb for a program without asyncio."""

    @wraps(verb)
    def call(*args: Any, **named: Any) -> Any:
        return finished(verb(*args, **named))

    return call
