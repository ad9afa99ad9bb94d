"""A queue for asyncio: ipc/queue/queue.py, awaitable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from shmbroker.core.layout import CONFIRM_EFFECTIVE, FAIL, PAGE, WAY_SHIFT
from shmbroker.ipc._native import lib
from shmbroker.ipc.aio.bell import CONFIRMED, ROOM, Bell
from shmbroker.ipc.aio.getting import Getting
from shmbroker.ipc.aio.loan import Loan
from shmbroker.ipc.aio.producer import Producer
from shmbroker.ipc.aio.taking import Taking
from shmbroker.ipc.aio.verb import Face, at_once, awaitable, awaited, begins, twin, twin_to, waits
from shmbroker.ipc.base.errors import GroupingTimeout, InvalidArgument, NotFound, Unconfirmed
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.message.confirm import ALL_LEVELS, Confirm, level_name, level_of
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.message import Message
from shmbroker.ipc.message.outgoing import outgoing
from shmbroker.ipc.message.serializer import Codec
from shmbroker.ipc.queue import queue as sync
from shmbroker.ipc.queue.open_transaction import OPEN
from shmbroker.ipc.queue.publishing import checked_position
from shmbroker.ipc.request.request import Reply
from shmbroker.ipc.selector.selection import Selection
from shmbroker.ipc.selector.selector import Selector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shmbroker.ipc.aio.broker import Broker


class Queue(Taking, Face, of=sync.Queue):
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
    def serializer(self) -> Codec | None:
        return self._sync.serializer

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

    @property
    def level(self) -> Confirm:
        return self._sync.level

    def _room(self) -> Bell:
        return Bell.of(self._broker._sleeper, self._sync._queue, ROOM)

    # --- publishing ---------------------------------------------------------------------------

    async def _publish(self, body: Any, *, timeout: Seconds | None, **options: Any) -> int | None:
        if options.get("deliver_after") is not None or options.get("deliver_at") is not None:
            self._sync._check_confirm(options.pop("confirm", None))
            number, _receipt = await self._schedule(body, timeout, options)
            return number
        attempt = partial(self._sync.publish, body, timeout=0, **options)
        return await self._when_there_is_room(attempt, timeout)

    publish = awaited(sync.Queue.publish, _publish)
    publish_nowait = at_once(sync.Queue.publish_nowait)

    async def _schedule(
        self, body: Any, timeout: Seconds | None, options: dict[str, Any]
    ) -> tuple[int, Any]:
        """Its id, and the receipt that says where it is."""
        after, at = options.pop("deliver_after", None), options.pop("deliver_at", None)
        encoded = self._sync._encoded(body)
        attempt = partial(self._sync._schedule, encoded, 0, after, at, options)
        patience = self._broker._patience

        def waits(timeout: Seconds | None) -> Coroutine[Any, Any, tuple[int, Any]]:
            return patience.until_done_by_naps(attempt, 0 if self._fails else timeout)

        return await patience.until_decided(attempt, waits, timeout)

    async def _when_there_is_room(
        self, attempt: Callable[[], int | None], timeout: Seconds | None
    ) -> int | None:
        try:  # not by until_decided: a publish would take a sixth longer
            return await self._until_done(attempt, self._room, 0 if self._fails else timeout)
        except GroupingTimeout:
            if timeout == 0:
                raise
        again = partial(self._when_there_is_room, attempt)
        return await self._broker._patience.when_decided(attempt, again, timeout)

    @twin(sync.Queue.publish_many)
    async def publish_many(
        self, bodies: Iterable[Any], *, timeout: Seconds | None, confirm: Confirm | None
    ) -> int:
        if OPEN:
            self._sync._notice()
        self._sync._check_confirm(confirm)
        batch = self._sync._batch(bodies)
        return await self._when_there_is_room(partial(batch.go_on, 0), timeout) or 0

    @twin(sync.Queue.confirm)
    async def confirm(
        self, position: int | None, *, level: Confirm | None, timeout: Seconds | None
    ) -> Confirm:
        deadline = Deadline(nanoseconds(timeout))
        asked = level_of(level)
        if position is not None:
            ring, last = self._sync._queue, checked_position(position)
            known = await self._confirm_at(ring, last, deadline.seconds_left(), level=asked)
            return level_name(known)
        try:
            return level_name(await self._confirm_all(asked, deadline))
        except Unconfirmed as error:  # one is late, and of those behind it nobody was asked
            error.ask = lambda timeout: self.confirm(level=level, timeout=timeout)
            raise

    async def _confirm_all(self, level: int, deadline: Deadline) -> int:
        ends, known = self._sync._ends(), ALL_LEVELS
        for ring, last in ends:
            try:
                known &= await self._confirm_at(ring, last, deadline.seconds_left(), level=level)
            except NotFound:
                if last >> WAY_SHIFT == 0:
                    raise
                # the queue towards a node was deleted: nobody waits for what was in it
        if not ends:  # at which level nothing is confirmed, or why it cannot be
            attempt = partial(self._sync._confirm_at, self._sync._queue, -1, 0, level=level)
            naps = self._broker._patience.until_done_by_naps
            known = await naps(attempt, deadline.seconds_left(), (Unconfirmed,))
        return known

    async def _confirm_at(
        self,
        ring: Any,
        position: int,
        timeout: Seconds | None,
        number: int | None = None,
        level: int = CONFIRM_EFFECTIVE,
    ) -> int:
        bell = Bell(self._broker._sleeper, ring, position)
        bell.returned = CONFIRMED - max(level, 0)
        attempt = partial(self._sync._confirm_at, ring, position, 0, number, level)
        try:
            return await self._until_done(attempt, lambda: bell, timeout)
        except Unconfirmed as error:
            error.ask = lambda timeout: self._confirm_at(ring, position, timeout, number, level)
            raise

    producer = begins(sync.Queue.producer, Producer)

    @twin(sync.Queue.loan)
    def loan(self, length: int, **options: Any) -> Loan:
        shape, _kept = outgoing(b"", **options)
        return Loan(self, self._sync._lent(length, shape, waits=False))

    @twin(sync.Queue.request)
    async def request(
        self,
        body: Any,
        *,
        key: str | None,
        properties: Mapping[str, Any] | None,
        timeout: Seconds | None,
    ) -> Reply:
        reply = await self._broker._requests.request(self, body, key, properties, timeout)
        reply._codec = self._sync.serializer
        return reply

    # --- taking -------------------------------------------------------------------------------

    @twin(sync.Queue.get)
    def get(self, selector: str | Selector | None, *, timeout: Seconds | None) -> Getting[Message]:
        if selector is not None:
            return self._select(selector, timeout)
        return Getting(self._until_done(self._get_now, self._messages, timeout))

    @twin(sync.Queue.receive)
    async def receive(self, *, timeout: Seconds | None) -> bytes:  # for speed not by `waits`
        return await self._until_done(self._receive_now, self._messages, timeout)

    get_many = waits(sync.Queue.get_many, Taking._messages)
    receive_many = waits(sync.Queue.receive_many, Taking._messages)

    @twin(sync.Queue.select)
    def select(
        self, selection: str | Selector | Selection, *, timeout: Seconds | None
    ) -> Getting[Message]:
        return self._select(selection, timeout)

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
    origins = awaitable(sync.Queue.origins)
    groups = awaitable(sync.Queue.groups)
    holders = awaitable(sync.Queue.holders)
    explain = awaitable(sync.Queue.explain)

    # --- managing -----------------------------------------------------------------------------

    @twin_to(sync.Queue.move_to)
    async def move_to(self, other: Queue, *rest: Any, timeout: Seconds | None, **named: Any) -> int:
        return self._sync.move_to(other._sync, *rest, timeout=never(timeout), **named)

    @twin_to(sync.Queue.copy_to)
    async def copy_to(self, other: Queue, *rest: Any, timeout: Seconds | None, **named: Any) -> int:
        return self._sync.copy_to(other._sync, *rest, timeout=never(timeout), **named)

    @twin(sync.Queue.purge)
    async def purge(self) -> int:
        if lib.sb_when_full(self._sync._queue) == PAGE:  # C waits for the pager
            return await asyncio.to_thread(self._sync.purge)
        return self._sync.purge()

    latency = awaitable(sync.Queue.latency)
    let_go = awaitable(sync.Queue.let_go)
    pause = awaitable(sync.Queue.pause)
    resume = awaitable(sync.Queue.resume)
    expire = awaitable(sync.Queue.expire)
    cancel_scheduled = awaitable(sync.Queue.cancel_scheduled)
    retry = awaitable(sync.Queue.retry)
    delete = awaitable(sync.Queue.delete)

    def __reduce__(self) -> tuple[Any, ...]:
        return _face, (self._broker, self._sync)

    def __len__(self) -> int:
        return len(self._sync)

    def __bool__(self) -> bool:
        return True


def _face(broker: Broker, queue: sync.Queue) -> Queue:
    """What a handle is pickled as."""
    return broker._queue(queue)


def never(timeout: Seconds | None) -> float:
    """Moving is done in the loop's thread, and there is no bell for it."""
    if nanoseconds(timeout) != 0:
        raise InvalidArgument(
            f"with asyncio a move does not wait for room, so its timeout is 0, not {timeout!r}"
        )
    return 0
