"""Taking for asyncio: what queues and queues of transactions share."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from shmbroker.ipc._native import lib
from shmbroker.ipc.aio.bell import A_MESSAGE, Bell
from shmbroker.ipc.aio.consumer import Consumer, RetainedConsumer
from shmbroker.ipc.aio.getting import Getting
from shmbroker.ipc.aio.subscription import Subscription
from shmbroker.ipc.aio.verb import at_once, twin
from shmbroker.ipc.base.timeout import Seconds
from shmbroker.ipc.queue import taking as sync
from shmbroker.ipc.queue.consuming import Consuming
from shmbroker.ipc.queue.retained_reader import RetainedReader
from shmbroker.ipc.selector.selection import Selection
from shmbroker.ipc.selector.selector import Selector

if TYPE_CHECKING:
    from shmbroker.ipc.aio.broker import Broker
    from shmbroker.ipc.aio.queue import Queue


class Taking:
    """What takes by `_sync` waits for a message, or for one that is selected."""

    _broker: Broker
    _sync: Any

    def _messages(self) -> Bell:
        return Bell.of(self._broker._sleeper, self._sync._queue, A_MESSAGE)

    def _select(
        self, selection: str | Selector | Selection, timeout: Seconds | None
    ) -> Getting[Any]:
        searched = selection if isinstance(selection, Selection) else Selection(selection)

        def bell() -> Bell:
            wanted = Bell(self._broker._sleeper, self._sync._queue, searched.position)
            wanted.returned = searched.returned
            return wanted

        attempt = partial(self._sync.select, searched, timeout=0)
        return Getting(self._broker._patience.until_done(attempt, bell, timeout))

    get_nowait = at_once(sync.Taking.get_nowait)

    @twin(sync.Taking.consume)
    def consume(
        self,
        *,
        selector: str | Selector | None,
        timeout: Seconds | None,
        prefetch: int,
        priority: int,
        exclusive: bool,
    ) -> Consumer:
        selection = None if selector is None else Selection(selector)
        consuming = Consuming(self._sync, priority, exclusive, selection)
        if lib.sb_is_non_destructive(self._sync._queue):
            retained_reader = RetainedReader(self._sync, selection, timeout)
            watching = Subscription(self._broker, retained_reader)
            return cast(Consumer, RetainedConsumer(watching))
        return Consumer(cast("Queue", self), consuming, selection, timeout, prefetch)
