"""An exchange for asyncio: ipc/exchange/exchange.py, awaitable."""

from __future__ import annotations

from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.aio.bell import CONFIRMED, ROOM, Bell
from shmbroker.ipc.aio.verb import Face, twin
from shmbroker.ipc.base.errors import Unconfirmed
from shmbroker.ipc.base.signature import check_names
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.exchange import exchange as sync
from shmbroker.ipc.exchange.publication import Publication
from shmbroker.ipc.message.confirm import Confirm

if TYPE_CHECKING:
    from shmbroker.ipc.aio.broker import Broker


class Exchange(Face, of=sync.Exchange):
    def __init__(self, broker: Broker, exchange: sync.Exchange) -> None:
        self._broker = broker
        self._sync: sync.Exchange = exchange

    @property
    def name(self) -> str:
        return self._sync.name

    @property
    def kind(self) -> str:
        return self._sync.kind

    @twin(sync.Exchange.publish)
    async def publish(
        self, body: Any, *, timeout: Seconds | None, confirm: Confirm | None, **options: Any
    ) -> int:
        deadline = Deadline(nanoseconds(timeout))
        try:
            publication = Publication(self._sync, body, confirm=confirm, **options)
        except TypeError:
            check_names("publish", options, signature(sync.Exchange.publish).parameters)
            raise
        attempt = publication.try_now

        def room() -> Bell:
            return Bell.of(self._broker._sleeper, publication.full_queue(), ROOM)

        patience = self._broker._patience
        waits = partial(patience.until_done, attempt, room)
        if publication.is_delayed:
            waits = partial(patience.until_done_by_naps, attempt)
        count = await patience.until_decided(attempt, waits, timeout)
        return await self._confirmed(publication, deadline) if publication.is_to_confirm else count

    async def _confirmed(self, publication: Publication, deadline: Deadline) -> int:
        try:
            for queue, position in publication.receipts():
                await self._confirmed_by(publication, queue, position, deadline)
            return publication.confirm(0)
        except Unconfirmed as error:
            error.ask = lambda timeout: self._confirmed(publication, Deadline(nanoseconds(timeout)))
            raise

    async def _confirmed_by(
        self, publication: Publication, queue: Any, position: int, deadline: Deadline
    ) -> None:
        bell = Bell(self._broker._sleeper, queue, position)
        bell.returned = CONFIRMED - publication.level
        attempt = partial(publication.confirm_one, queue, position)
        await self._broker._patience.until_done(attempt, lambda: bell, deadline.seconds_left())
