"""What is behind a target: the queues that an exchange leads to, and what they have to confirm."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from shmbroker.core.codes import UNCONFIRMED
from shmbroker.core.layout import CONFIRM_EFFECTIVE, QUEUE_DURABLE, QUEUE_FLAGS_AT
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.exchange.own_binding import own_bindings
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.schedule.scheduled import ring_of

Place = tuple[Any, int]
"""A durable queue as C knows it, and a position: what is there and below is waited for."""


def queues_behind(broker: Broker, exchange: str) -> list[Queue]:
    """By bindings, diverts and alternates, however many exchanges are in between."""
    onward: dict[str, set[str]] = {}
    found: set[str] = set()
    for each in broker.exchanges():
        onward[each.name] = set() if each.alternate is None else {each.alternate}
    own = own_bindings(broker)  # what leads to other nodes is confirmed here, too
    bindings = broker.bindings()
    for binding in bindings:
        if binding.to == "exchange":
            onward.setdefault(binding.exchange, set()).add(binding.destination)
    reached, next_ones = {exchange}, [exchange]
    while next_ones:
        further = onward.get(next_ones.pop(), set()) - reached
        reached |= further
        next_ones += further
    found = {each.destination for each in bindings if each.to == "queue"
             and each.exchange in reached}  # fmt: skip
    found |= {each.queue for each in own if each.exchange in reached}
    opened = []
    for name in sorted(found):
        try:
            opened.append(broker.queue(name))
        except NotFound:  # deleted since
            continue
    return opened


def durable_queues(broker: Broker) -> list[Queue]:
    opened = []
    for each in broker._catalog.queues():
        if each.word(QUEUE_FLAGS_AT) & QUEUE_DURABLE:
            with suppress(NotFound):  # deleted since
                opened.append(serving(broker, each.name))
    return opened


def queues_that_begin(broker: Broker, begin: str) -> list[Queue]:
    """By their names."""
    opened = []
    for name in broker._catalog.queue_names().values():
        if name.startswith(begin):
            with suppress(NotFound):  # deleted since
                opened.append(serving(broker, name))
    return opened


def serving(broker: Broker, name: str) -> Queue:
    """For what is done for others: that keeps nobody from deleting the queue."""
    queue = broker.queue(name)
    lib.sb_queue_serve(queue._queue)
    return queue


def is_durable(queue: Any) -> bool:
    """Of a queue as C knows it."""
    return bool(lib.sb_is_durable(queue))


def everything_in(*queues: Any) -> list[Place]:
    """What was published to queues, as C knows them, so far, in their rings and in their inboxes;
    nothing of one that is not durable, or was deleted."""
    places: list[Place] = []
    last = ffi.new("int64_t[2]")
    for queue in filter(is_durable, queues):
        count: int = lib.sb_published_last(queue, last)
        places += [(queue, last[each]) for each in range(max(0, count))]
    return places


def all_of(queue: Queue) -> list[Place]:
    """And what was scheduled."""
    schedule = ring_of(queue)
    return everything_in(queue._queue, *([] if schedule is None else [schedule]))


def is_confirmed(place: Place) -> bool:
    """Or will not be: of a queue that was deleted nobody waits."""
    queue, position = place
    code: int = lib.sb_confirm(queue, position, CONFIRM_EFFECTIVE, 0)
    return code != UNCONFIRMED
