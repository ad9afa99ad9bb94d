"""An exchange of a broker on another host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.aio.verb import twin
from shmbroker.ipc.base.timeout import Seconds, nanoseconds, seconds
from shmbroker.ipc.exchange import exchange as local
from shmbroker.ipc.exchange.publication import unroutable, wishes
from shmbroker.ipc.message.confirm import Confirm
from shmbroker.ipc.message.group import grouped
from shmbroker.ipc.message.outgoing import parts
from shmbroker.ipc.schedule.scheduled import When
from shmbroker.netbridge.client.not_local import refused
from shmbroker.netbridge.client.producing import demand_of
from shmbroker.netbridge.client.record import copied, record
from shmbroker.netbridge.client.scheduling import schedule
from shmbroker.netbridge.wire.words import Demand, Level

if TYPE_CHECKING:
    from shmbroker.netbridge.client.broker import Broker


class Exchange:
    """Made by Broker.exchange and Broker.declare_exchange."""

    def __init__(self, broker: Broker, name: str, kind: str) -> None:
        self._broker, self._session = broker, broker._session
        self.name, self.kind = name, kind
        self._producing = broker._producing("exchange", name)

    @twin(local.Exchange.publish)
    async def publish(
        self,
        body: Any,
        *,
        key: str,
        properties: Mapping[str, Any] | None,
        ttl: Seconds | None,
        priority: int | None,
        message_id: str | bytes | None,
        group: str | None,
        mandatory: bool,
        immediate: bool,
        deliver_after: Seconds | None,
        deliver_at: When | None,
        confirm: Confirm | None,
        timeout: Seconds | None,
    ) -> int:
        from shmbroker.netbridge.client.queue import identified

        nanoseconds(timeout)
        if immediate:
            refused("Exchange.publish(immediate=True)")
        demand = demand_of(confirm or "shm")
        properties = identified(grouped(properties, group), message_id)
        message = record(parts(body, key, properties, ttl, priority))
        if deliver_after is not None or deliver_at is not None:
            done = await schedule(
                self._session, "exchange", self.name, deliver_after, deliver_at, demand=demand,
                waits=timeout, body=copied(body), key=key, properties=properties,
                ttl=None if ttl is None else seconds(ttl), priority=priority,
            )  # fmt: skip
        else:
            done = await self._producing.publish(message, timeout, demand)
        if mandatory and not done.value:
            raise unroutable(self.name, key, wishes(mandatory=True))
        is_confirmed = demand is Demand.SHM or done.level is not Level.SHM
        return done.value if is_confirmed else 0

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self._broker).exchange, (self._broker, self.name)

    def __repr__(self) -> str:
        return f"<Exchange {self.name!r} of {self._broker.uri}>"
