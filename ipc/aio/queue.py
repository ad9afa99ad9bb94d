"""A queue for asyncio: ipc/queue/queue.py, awaitable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from shmbroker.core.layout import FAIL
from shmbroker.ipc._native import lib
from shmbroker.ipc.aio.bell import A_MESSAGE, CONFIRMED, ROOM, Bell
from shmbroker.ipc.aio.consumer import Consumer
from shmbroker.ipc.aio.loan import Loan
from shmbroker.ipc.aio.producer import Producer
from shmbroker.ipc.aio.subscription import Subscription
from shmbroker.ipc.aio.verb import Face, at_once, awaitable, awaited, begins, twin, twin_to, waits
from shmbroker.ipc.base.errors import InvalidArgument, QueueFull
from shmbroker.ipc.base.timeout import Deadline, nanoseconds
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.message import Message
from shmbroker.ipc.message.outgoing import Confirm
from shmbroker.ipc.queue import queue as sync
from shmbroker.ipc.queue.consuming import Consuming
from shmbroker.ipc.queue.publishing import checked_position
from shmbroker.ipc.queue.retained_reader import RetainedReader
from shmbroker.ipc.request.request import Reply
from shmbroker.ipc.selector.selection import Selection
from shmbroker.ipc.selector.selector import Selector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shmbroker.ipc.aio.broker import Broker


class Queue(Face, of=sync.Queue):
    def __init__(self, broker: Broker, queue: sync.Queue) -> None:
        self._broker = broker
        self._sync: sync.Queue = queue
        self._until_done = broker._patience.until_done
        self._get_now = partial(queue.get, timeout=0)
        self._receive_now = partial(queue.receive, timeout=0)
        self._fails = lib.sb_when_full(queue._queue) == FAIL

    @property
    def name(self) -> str:
        return self._sync.name

    @property
    def slots(self) -> int:
        return self._sync.slots

    @property
    def is_paused(self) -> bool:
        return self._sync.is_paused

    @property
    def published(self) -> int:
        return self._sync.published

    @property
    def confirmed(self) -> int:
        return self._sync.confirmed

    def _messages(self) -> Bell:
        return Bell.of(self._broker._sleeper, self._sync._queue, A_MESSAGE)

    def _room(self) -> Bell:
        return Bell.of(self._broker._sleeper, self._sync._queue, ROOM)

    # --- publishing ---------------------------------------------------------------------------

    async def _publish(self, body: Any, *, timeout: float | None, **options: Any) -> int | None:
        if options.get("deliver_after") is not None or options.get("deliver_at") is not None:
            self._sync._check_confirm(options.pop("confirm", None))
            number, _receipt = await self._schedule(body, timeout, options)
            return number
        attempt = partial(self._sync.publish, body, timeout=0, **options)
        return await self._when_there_is_room(attempt, timeout)

    publish = awaited(sync.Queue.publish, _publish)
    publish_nowait = at_once(sync.Queue.publish_nowait)

    async def _schedule(
        self, body: Any, timeout: float | None, options: dict[str, Any]
    ) -> tuple[int, Any]:
        """Its id, and the receipt that says where it is."""
        after, at = options.pop("deliver_after", None), options.pop("deliver_at", None)
        attempt = partial(self._sync._schedule, body, 0, after, at, options)
        patience = 0 if self._fails else timeout
        return await self._broker._patience.until_done_by_naps(attempt, patience)

    async def _when_there_is_room(
        self, attempt: Callable[[], int | None], timeout: float | None
    ) -> int | None:
        return await self._until_done(attempt, self._room, 0 if self._fails else timeout)

    @twin(sync.Queue.publish_many)
    async def publish_many(
        self, bodies: Iterable[Any], *, timeout: float | None, confirm: Confirm | None
    ) -> int:
        several: Any = list(bodies) if isinstance(bodies, Iterator) else bodies
        done = 0

        def attempt() -> int:
            nonlocal done
            rest = several[done:] if done else several
            done += self._sync.publish_many(rest, timeout=0, confirm=confirm)
            if done < len(several):
                raise QueueFull(f"queue {self.name!r} has room for {done} of {len(several)}")
            return done

        try:
            await self._when_there_is_room(attempt, timeout)
        except QueueFull:
            if done == 0:
                raise
        return done

    @twin(sync.Queue.confirm)
    async def confirm(self, position: int | None, *, timeout: float | None) -> None:
        deadline = Deadline(nanoseconds(timeout))
        if position is None:
            ends = self._sync._ends()
        else:
            ends = [(self._sync._queue, checked_position(position))]
        for ring, last in ends:
            await self._confirm_at(ring, last, deadline.seconds_left())

    async def _confirm_at(
        self, ring: Any, position: int, timeout: float | None, number: int | None = None
    ) -> None:
        bell = Bell(self._broker._sleeper, ring, position)
        bell.returned = CONFIRMED
        attempt = partial(self._sync._confirm_at, ring, position, 0, number)
        await self._until_done(attempt, lambda: bell, timeout)

    producer = begins(sync.Queue.producer, Producer)
    loan = begins(sync.Queue.loan, Loan)

    @twin(sync.Queue.request)
    async def request(
        self,
        body: Any,
        *,
        key: str | None,
        properties: Mapping[str, Any] | None,
        timeout: float | None,
    ) -> Reply:
        return await self._broker._requests.request(self, body, key, properties, timeout)

    # --- taking -------------------------------------------------------------------------------

    @twin(sync.Queue.get)
    async def get(self, *, timeout: float | None) -> Message:  # for speed not by `waits`
        return await self._until_done(self._get_now, self._messages, timeout)

    @twin(sync.Queue.receive)
    async def receive(self, *, timeout: float | None) -> bytes:  # nor this
        return await self._until_done(self._receive_now, self._messages, timeout)

    get_nowait = at_once(sync.Queue.get_nowait)
    get_many = waits(sync.Queue.get_many, _messages)
    receive_many = waits(sync.Queue.receive_many, _messages)

    @twin(sync.Queue.select)
    async def select(self, selection: Selection, *, timeout: float | None) -> Message:
        def bell() -> Bell:
            wanted = Bell(self._broker._sleeper, self._sync._queue, selection.position)
            wanted.returned = selection.returned
            return wanted

        attempt = partial(self._sync.select, selection, timeout=0)
        return await self._until_done(attempt, bell, timeout)

    @twin(sync.Queue.consume)
    def consume(
        self,
        *,
        selector: str | Selector | None,
        timeout: float | None,
        prefetch: int,
        priority: int,
        exclusive: bool,
    ) -> Consumer:
        selection = None if selector is None else Selection(selector)
        consuming = Consuming(self._sync, priority, exclusive)
        if lib.sb_is_non_destructive(self._sync._queue):
            retained_reader = RetainedReader(self._sync, selection, timeout)
            return cast(Consumer, Subscription(self._broker, retained_reader))
        return Consumer(self, consuming, selection, timeout, prefetch)

    # --- looking ------------------------------------------------------------------------------

    @twin(sync.Queue.browse)
    async def browse(self, **named: Any) -> AsyncIterator[CopiedMessage]:
        for message in self._sync.browse(**named):
            yield message

    value = awaitable(sync.Queue.value)
    scheduled = awaitable(sync.Queue.scheduled)
    statistics = awaitable(sync.Queue.statistics)
    histograms = awaitable(sync.Queue.histograms)
    gates = awaitable(sync.Queue.gates)
    groups = awaitable(sync.Queue.groups)
    explain = awaitable(sync.Queue.explain)

    # --- managing -----------------------------------------------------------------------------

    @twin_to(sync.Queue.move_to)
    async def move_to(self, other: Queue, *rest: Any, timeout: float | None, **named: Any) -> int:
        return self._sync.move_to(other._sync, *rest, timeout=never(timeout), **named)

    @twin_to(sync.Queue.copy_to)
    async def copy_to(self, other: Queue, *rest: Any, timeout: float | None, **named: Any) -> int:
        return self._sync.copy_to(other._sync, *rest, timeout=never(timeout), **named)

    latency = awaitable(sync.Queue.latency)
    let_go = awaitable(sync.Queue.let_go)
    purge = awaitable(sync.Queue.purge)
    pause = awaitable(sync.Queue.pause)
    resume = awaitable(sync.Queue.resume)
    expire = awaitable(sync.Queue.expire)
    cancel_scheduled = awaitable(sync.Queue.cancel_scheduled)
    retry = awaitable(sync.Queue.retry)


def never(timeout: float | None) -> float:
    """Moving is done in the loop's thread, and there is no bell for it."""
    if timeout != 0:
        raise InvalidArgument(
            f"with asyncio a move does not wait for room, so its timeout is 0, not {timeout!r}"
        )
    return 0
