"""A queue for asyncio: ipc/queue/queue.py, awaitable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from shmbroker.core.layout import FAIL
from shmbroker.ipc._native import lib
from shmbroker.ipc.aio.bell import A_MESSAGE, CONFIRMED, ROOM, Bell
from shmbroker.ipc.aio.consumer import Consumer
from shmbroker.ipc.aio.loan import Loan
from shmbroker.ipc.aio.producer import Producer
from shmbroker.ipc.aio.subscription import Subscription
from shmbroker.ipc.aio.verb import awaitable
from shmbroker.ipc.base.errors import QueueFull
from shmbroker.ipc.base.timeout import Deadline, nanoseconds
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.message import Message
from shmbroker.ipc.message.outgoing import Confirm, Options
from shmbroker.ipc.message.room import BATCH
from shmbroker.ipc.queue import queue as sync
from shmbroker.ipc.queue.consuming import Consuming
from shmbroker.ipc.queue.retained_reader import RetainedReader
from shmbroker.ipc.request.request import Reply
from shmbroker.ipc.schedule.scheduled import When
from shmbroker.ipc.selector.selection import Selection
from shmbroker.ipc.selector.selector import Selector

if TYPE_CHECKING:
    from shmbroker.ipc.aio.broker import Broker


class Queue:
    """Made by Broker.queue and Broker.declare_queue."""

    def __init__(self, broker: Broker, queue: sync.Queue) -> None:
        self._broker = broker
        self._sync = queue
        self._until_done = broker._patience.until_done
        self._get_now = partial(queue.get, timeout=0)
        self._receive_now = partial(queue.receive, timeout=0)
        self._unconfirmed: Confirm | None = "shm" if lib.sb_is_durable(queue._queue) else None
        """How a durable queue publishes: its confirm is awaited."""
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

    def _messages(self) -> Bell:
        return Bell.of(self._broker._sleeper, self._sync._queue, A_MESSAGE)

    def _room(self) -> Bell:
        return Bell.of(self._broker._sleeper, self._sync._queue, ROOM)

    # --- publishing ---------------------------------------------------------------------------

    @overload
    async def publish(
        self, body: Any, *, timeout: float | None = None, **options: Unpack[Options]
    ) -> int: ...

    @overload
    async def publish(
        self,
        body: Any,
        *,
        message_id: str | bytes | None,
        timeout: float | None = None,
        **options: Unpack[Options],
    ) -> int | None: ...

    async def publish(
        self, body: Any, *, timeout: float | None = None, **options: Any
    ) -> int | None:
        """Publish a copy of bytes, or of any buffer: the message's position.

        Its id in the schedule, if it is not to be delivered before a time (docs/scheduled.md).
        With a message_id: None if the queue has, or had, a message with this id.  In a durable
        queue this is done when the message is on disk, unless confirm is "shm".
        """
        after, at = options.pop("deliver_after", None), options.pop("deliver_at", None)
        if after is not None or at is not None:
            return await self._publish_scheduled(body, timeout, after, at, options)
        waits = self._unconfirmed is not None and options.get("confirm") != "shm"
        if self._unconfirmed is not None:
            options["confirm"] = self._unconfirmed
        attempt = partial(self._sync.publish, body, timeout=0, **options)
        if not waits:
            return await self._when_there_is_room(attempt, timeout)
        deadline = Deadline(nanoseconds(timeout))
        position = await self._when_there_is_room(attempt, timeout)
        await self.confirm(position, timeout=deadline.seconds_left())
        return position

    async def _publish_scheduled(
        self,
        body: Any,
        timeout: float | None,
        deliver_after: float | None,
        deliver_at: When | None,
        options: dict[str, Any],
    ) -> int:
        confirm = options.pop("confirm", None)
        if self._unconfirmed is None:
            self._sync._check_confirm(confirm)
        deadline = Deadline(nanoseconds(timeout))
        attempt = partial(self._sync._schedule, body, 0, deliver_after, deliver_at, options)
        patience = 0 if self._fails else timeout
        number, receipt = await self._broker._patience.until_done_by_naps(attempt, patience)
        if self._unconfirmed is not None and confirm != "shm":
            left = deadline.seconds_left()
            await self._confirm_at(receipt.queue, receipt.position, left, number)
        return number

    async def _when_there_is_room(
        self, attempt: Callable[[], int | None], timeout: float | None
    ) -> int | None:
        return await self._until_done(attempt, self._room, 0 if self._fails else timeout)

    async def confirm(self, position: int | None = None, *, timeout: float | None = None) -> None:
        """Until the message at this position is on disk; None: all that was published or scheduled
        before.

        Unconfirmed if nobody says so in time.  Only a durable queue confirms.
        """
        deadline = Deadline(nanoseconds(timeout))
        if position is None:
            ends = self._sync._ends()
        else:
            ends = [(self._sync._queue, sync.checked_position(position))]
        for ring, last in ends:
            await self._confirm_at(ring, last, deadline.seconds_left())

    async def _confirm_at(
        self, ring: Any, position: int, timeout: float | None, number: int | None = None
    ) -> None:
        bell = Bell(self._broker._sleeper, ring, position)
        bell.returned = CONFIRMED
        attempt = partial(self._sync._confirm_at, ring, position, 0, number)
        await self._until_done(attempt, lambda: bell, timeout)

    @property
    def confirmed(self) -> int:
        """All messages below this position are on disk.  Only a durable queue knows."""
        return self._sync.confirmed

    def producer(self, name: str | bytes) -> Producer:
        """A producer that numbers its messages: who has its name goes on where it ended."""
        return Producer(self, self._sync.producer(name))

    def publish_nowait(self, body: Any, **options: Unpack[Options]) -> int:
        """publish without waiting: QueueFull at once."""
        return self._sync.publish_nowait(body, **options)

    async def publish_many(
        self,
        bodies: Iterable[Any],
        *,
        timeout: float | None = None,
        confirm: Confirm | None = None,
    ) -> int:
        """Publish several messages: how many there was room for in time, from the first.

        If it is cancelled, those that had found room stay published.  In a durable queue this is
        done when all are on disk, unless confirm is "shm".
        """
        deadline = Deadline(nanoseconds(timeout))
        several: Any = list(bodies) if isinstance(bodies, Iterator) else bodies
        done = 0

        def attempt() -> int:
            nonlocal done
            done += self._sync.publish_many(
                several[done:] if done else several,
                timeout=0,
                confirm=self._unconfirmed or confirm,
            )
            if done < len(several):
                raise QueueFull(f"queue {self.name!r} has room for {done} of {len(several)}")
            return done

        try:
            await self._until_done(attempt, self._room, 0 if self._fails else timeout)
        except QueueFull:
            if done == 0:
                raise
        if self._unconfirmed is not None and confirm != "shm":
            await self.confirm(timeout=deadline.seconds_left())
        return done

    def loan(
        self,
        length: int,
        *,
        key: str | None = None,
        properties: Mapping[str, Any] | None = None,
        ttl: float | None = None,
        priority: int | None = None,
        message_id: str | bytes | None = None,
        group: str | None = None,
    ) -> Loan:
        """Memory in the arena to fill in place; published on a clean exit of `async with`."""
        loan = self._sync.loan(
            length,
            key=key,
            properties=properties,
            ttl=ttl,
            priority=priority,
            message_id=message_id,
            group=group,
        )
        return Loan(loan, self._until_done, self._room)

    async def request(
        self,
        body: Any,
        *,
        key: str | None = None,
        properties: Mapping[str, Any] | None = None,
        timeout: float | None = 1.0,
    ) -> Reply:
        """Publish, and wait for the reply: Message.reply() of whoever takes it.  NoReply."""
        return await self._broker._requests.request(self, body, key, properties, timeout)

    # --- taking -------------------------------------------------------------------------------

    async def get(self, *, timeout: float | None = None) -> Message:
        """Take the oldest message that nobody has; Empty if none came within the timeout."""
        return await self._until_done(self._get_now, self._messages, timeout)

    def get_nowait(self) -> Message:
        """get without waiting: Empty at once."""
        return self._sync.get_nowait()

    async def get_many(self, count: int, *, timeout: float | None = None) -> list[Message]:
        """Take up to count messages at once, as many as are there; Empty if none came in time."""
        attempt = partial(self._sync.get_many, count, timeout=0)
        return await self._until_done(attempt, self._messages, timeout)

    async def select(self, selection: Selection, *, timeout: float | None = None) -> Message:
        """get, of the messages that are selected; the others are left to others, in their order."""

        def bell() -> Bell:
            wanted = Bell(self._broker._sleeper, self._sync._queue, selection.position)
            wanted.returned = selection.returned
            return wanted

        attempt = partial(self._sync.select, selection, timeout=0)
        return await self._until_done(attempt, bell, timeout)

    def consume(
        self,
        *,
        selector: str | Selector | None = None,
        timeout: float | None = None,
        prefetch: int = 1,
        priority: int = 0,
        exclusive: bool = False,
    ) -> Consumer:
        """`async for` over messages as they come, until none comes within the timeout.

        With a selector, only those that meet its condition (docs/selectors.md), each for itself.
        priority and exclusive: see docs/groups.md.
        """
        selection = None if selector is None else Selection(selector)
        consuming = Consuming(self._sync, priority, exclusive)
        if lib.sb_is_non_destructive(self._sync._queue):
            retained_reader = RetainedReader(self._sync, selection, timeout)
            return cast(Consumer, Subscription(self._broker, retained_reader, timeout))
        return Consumer(self, consuming, selection, timeout, prefetch)

    async def receive(self, *, timeout: float | None = None) -> bytes:
        """Take, copy and acknowledge the oldest message at once: at most once."""
        return await self._until_done(self._receive_now, self._messages, timeout)

    async def receive_many(
        self, count: int = BATCH, *, timeout: float | None = None
    ) -> list[bytes]:
        """receive for up to count messages at once; Empty if none came in time."""
        attempt = partial(self._sync.receive_many, count, timeout=0)
        return await self._until_done(attempt, self._messages, timeout)

    # --- looking and managing -----------------------------------------------------------------

    async def browse(self, *, unconfirmed: bool = False) -> AsyncIterator[CopiedMessage]:
        """All messages that are there, taken by somebody or not, without taking any."""
        for message in self._sync.browse(unconfirmed=unconfirmed):
            yield message

    async def move_to(
        self, other: Queue, limit: int | None = None, selector: str | Selector | None = None
    ) -> int:
        """Move what is there now and nobody has, until the other queue is full: how many."""
        return self._sync.move_to(other._sync, limit, selector)

    async def copy_to(
        self, other: Queue, limit: int | None = None, selector: str | Selector | None = None
    ) -> int:
        """move_to, and the messages stay here as well."""
        return self._sync.copy_to(other._sync, limit, selector)

    value = awaitable(sync.Queue.value)
    statistics = awaitable(sync.Queue.statistics)
    latency = awaitable(sync.Queue.latency)
    histograms = awaitable(sync.Queue.histograms)
    groups = awaitable(sync.Queue.groups)
    let_go = awaitable(sync.Queue.let_go)
    purge = awaitable(sync.Queue.purge)
    pause = awaitable(sync.Queue.pause)
    resume = awaitable(sync.Queue.resume)
    explain = awaitable(sync.Queue.explain)
    expire = awaitable(sync.Queue.expire)
    scheduled = awaitable(sync.Queue.scheduled)
    cancel_scheduled = awaitable(sync.Queue.cancel_scheduled)
    retry = awaitable(sync.Queue.retry)

    def __repr__(self) -> str:
        return f"<aio {self._sync!r}>"
