"""Messages that are not to be delivered yet: of the worker, with the session's connection."""

from __future__ import annotations

from typing import Any

from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.schedule.scheduled import ring_of
from shmbroker.netbridge.carrier.reached import serving
from shmbroker.netbridge.remote.body import named
from shmbroker.netbridge.serving.declaring import Fields
from shmbroker.netbridge.wire.words import Demand

OPTIONS = ("key", "properties", "ttl", "priority", "message_id", "group")


def scheduled(
    broker: Broker, shared: Broker, fields: Fields, demand: Demand
) -> tuple[int, Any, int]:
    """Its id, or how many queues of an exchange have it; and what confirms it, and where."""
    after, at = fields.get("after"), fields.get("at")
    if after is None and at is None:
        raise InvalidArgument("a message is scheduled after some time, or at some time")
    body = named(fields, "body", bytes)
    options = {name: fields[name] for name in OPTIONS if name in fields}
    if "exchange" in fields:
        exchange = broker.exchange(named(fields, "exchange"))
        count = exchange.publish(body, deliver_after=after, deliver_at=at, timeout=0, **options)
        return count, None, 0
    name = named(fields, "queue")
    queue = broker.queue(name)
    number, receipt = queue._schedule(body, 0, after, at, options)
    if demand is Demand.SHM or not lib.sb_is_durable(queue._queue):
        return number, None, 0
    waited_for = serving(shared, name)
    ring = waited_for._queue if receipt.queue == queue._queue else ring_of(waited_for)
    lib.sb_queue_serve(ring)
    return number, ring, receipt.position
