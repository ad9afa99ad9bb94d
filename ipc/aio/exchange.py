"""An exchange for asyncio: ipc/exchange/exchange.py, awaitable."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.aio.bell import CONFIRMED, ROOM, Bell
from shmbroker.ipc.base.timeout import Deadline, nanoseconds
from shmbroker.ipc.exchange import exchange as sync
from shmbroker.ipc.exchange.publication import Publication
from shmbroker.ipc.message.group import grouped
from shmbroker.ipc.message.outgoing import Confirm
from shmbroker.ipc.schedule.scheduled import When

if TYPE_CHECKING:
    from shmbroker.ipc.aio.broker import Broker


class Exchange:
    """Made by Broker.exchange and Broker.declare_exchange."""

    def __init__(self, broker: Broker, exchange: sync.Exchange) -> None:
        self._broker = broker
        self._sync = exchange

    @property
    def name(self) -> str:
        return self._sync.name

    @property
    def kind(self) -> str:
        return self._sync.kind

    async def publish(
        self,
        body: Any,
        *,
        key: str = "",
        properties: Mapping[str, Any] | None = None,
        ttl: float | None = None,
        priority: int | None = None,
        message_id: str | bytes | None = None,
        group: str | None = None,
        mandatory: bool = False,
        deliver_after: float | None = None,
        deliver_at: When | None = None,
        confirm: Confirm | None = None,
        timeout: float | None = None,
    ) -> int:
        """Publish to every queue that a binding leads to: how many.

        If a queue has no room in time, or this is cancelled, the queues before it have the message.
        With confirm="disk" it is done when it is on disk in all durable queues: how many these are.
        """
        deadline = Deadline(nanoseconds(timeout))
        publication = Publication(
            self._sync, body, key, grouped(properties, group), ttl, priority, message_id, mandatory,
            deliver_after, deliver_at, confirm,
        )  # fmt: skip
        attempt = partial(publication.go_on, 0)

        def room() -> Bell:
            return Bell.of(self._broker._sleeper, publication.full_queue(), ROOM)

        if deliver_after is not None or deliver_at is not None:
            count = await self._broker._patience.until_done_by_naps(attempt, timeout)
        else:
            count = await self._broker._patience.until_done(attempt, room, timeout)
        return count if confirm != "disk" else await self._confirmed(publication, deadline)

    async def _confirmed(self, publication: Publication, deadline: Deadline) -> int:
        attempt = partial(publication.confirm, 0)
        for queue, position in publication.receipts():
            bell = Bell(self._broker._sleeper, queue, position)
            bell.returned = CONFIRMED

            def journaled(bell: Bell = bell) -> Bell:
                return bell

            one = partial(publication.confirm_one, queue, position)
            await self._broker._patience.until_done(one, journaled, deadline.seconds_left())
        return attempt()

    def __repr__(self) -> str:
        return f"<aio {self._sync!r}>"
