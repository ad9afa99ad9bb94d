"""An exchange: publish to it, and its bindings say which queues get the message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shmbroker.ipc._native import lib
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.catalog.kinds import kind_of
from shmbroker.ipc.exchange.publication import Publication
from shmbroker.ipc.message.confirm import Confirm
from shmbroker.ipc.schedule.scheduled import When

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker


class Exchange:
    """Made by Broker.exchange and Broker.declare_exchange."""

    def __init__(self, broker: Broker, name: str, exchange: Any) -> None:
        self._broker = broker
        self.name = name
        self._exchange = exchange

    @property
    def kind(self) -> str:
        return kind_of(lib.sb_exchange_kind(self._exchange), self.name)

    def publish(
        self,
        body: Any,
        *,
        key: str = "",
        properties: Mapping[str, Any] | None = None,
        ttl: Seconds | None = None,
        priority: int | None = None,
        message_id: str | bytes | None = None,
        group: str | None = None,
        mandatory: bool = False,
        immediate: bool = False,
        deliver_after: Seconds | None = None,
        deliver_at: When | None = None,
        confirm: Confirm | None = None,
        timeout: Seconds | None = None,
    ) -> int:
        """Publish to every queue that a binding leads to: how many.

        With `mandatory`, Unroutable if there is none.  With `immediate` only queues with a consumer
        get it, and it is Unroutable if there is none of these.  What agents send to another broker,
        and nobody takes there, comes back to `Broker.returned` (docs/agents.md).

        If a queue has no room within the timeout it is QueueFull, and the queues before it have the
        message: the error says how many.

        With a delay, or a time of day, each of them has it in its schedule (docs/scheduled.md).
        With a message_id, each queue takes it once: a queue that has it already is counted as well.

        With confirm="disk", or another level, it is done when every durable queue that it went to
        confirms it at this level: how many these are; Unconfirmed, which can ask again, if not in
        time.
        """
        deadline = Deadline(nanoseconds(timeout))
        publication = Publication(
            self, body, key=key, properties=properties, ttl=ttl, priority=priority,
            message_id=message_id, group=group, mandatory=mandatory, immediate=immediate,
            deliver_after=deliver_after, deliver_at=deliver_at, confirm=confirm,
        )  # fmt: skip
        count = publication.go_on(nanoseconds(timeout))
        return publication.confirm(deadline.seconds_left()) if publication.is_to_confirm else count

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self._broker).exchange, (self._broker, self.name)

    def __repr__(self) -> str:
        return f"<Exchange {self.name!r} of {self._broker.vhost!r}>"
