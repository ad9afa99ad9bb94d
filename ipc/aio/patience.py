"""Retrying until success, timeout, or cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from shmbroker.ipc.aio.bell import Bell
from shmbroker.ipc.base.errors import Empty, Error, GroupingTimeout, QueueFull, Unconfirmed
from shmbroker.ipc.base.nap import longer
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds, seconds
from shmbroker.ipc.queue.grouped import until_decided

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

Result = TypeVar("Result")

NOT_YET = (Empty, QueueFull, Unconfirmed)

TURN = 32
"""Who always finds something would never let anybody else run: after so many the loop goes round.
Before trying, not after: what was taken is never in the hands of somebody who is cancelled."""


class Patience:
    """All waiting verbs of a connection."""

    __slots__ = ("_broker", "_tries")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tries = 0

    async def until_done(
        self, attempt: Callable[[], Result], bell: Callable[[], Bell], timeout: Seconds | None
    ) -> Result:
        """Try; after what is in NOT_YET, again each time when the bell rings that is asked for."""
        if timeout is not None:
            nanoseconds(timeout)  # refuses what is no time-out
        self._tries += 1
        if self._tries >= TURN:
            self._tries = 0
            await asyncio.sleep(0)
        try:
            return attempt()
        except NOT_YET:
            if timeout == 0:
                raise
        self._tries = 0
        try:
            async with asyncio.timeout(None if timeout is None else seconds(timeout)) as limit:
                return await self._when_rung(attempt, bell)
        except TimeoutError:
            if not limit.expired():  # an error of ours
                raise
            return attempt()  # a last time; it says itself why not

    async def until_decided(
        self,
        attempt: Callable[[], Result],
        waits: Callable[[Seconds | None], Coroutine[Any, Any, Result]],
        timeout: Seconds | None,
    ) -> Result:
        """This wait for room; if it is not decided to which node the group goes, for that first."""
        try:
            return await waits(timeout)
        except GroupingTimeout:
            if timeout == 0:
                raise
        return await self.when_decided(attempt, waits, timeout)

    async def when_decided(
        self,
        attempt: Callable[[], Result],
        waits: Callable[[Seconds | None], Coroutine[Any, Any, Result]],
        timeout: Seconds | None,
    ) -> Result:
        """The same after GroupingTimeout."""
        deadline = Deadline(nanoseconds(timeout))
        limit = until_decided(self._broker, timeout)
        with suppress(QueueFull):
            return await self.until_done_by_naps(attempt, limit, (GroupingTimeout,))
        return await waits(deadline.seconds_left())

    async def until_done_by_naps(
        self,
        attempt: Callable[[], Result],
        timeout: Seconds | None,
        not_yet: tuple[type[Error], ...] = (QueueFull,),
    ) -> Result:
        """Try; after QueueFull, say, again and again: there is no bell for this."""
        end = None if timeout is None else monotonic() + seconds(timeout)
        nap = 0.0
        while True:
            try:
                return attempt()
            except not_yet:
                if end is not None and monotonic() >= end:
                    raise
            nap = longer(nap)
            await asyncio.sleep(nap)

    async def _when_rung(self, attempt: Callable[[], Result], bell: Callable[[], Bell]) -> Result:
        wanted, again = bell(), False
        while True:
            await wanted.wait(again=again)
            rung, again = wanted, False
            try:
                return attempt()
            except NOT_YET:
                wanted = bell()
                again = wanted is rung
            finally:
                if not again:  # done, or failed, or it waits for something else
                    rung.pass_on()
