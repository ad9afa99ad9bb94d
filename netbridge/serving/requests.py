"""Requests of programs, and their replies: one queue for all of them, as asyncio has it.

Whoever replies publishes into that queue; who has asked is known by the correlation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import NO_REPLY
from shmbroker.core.layout import FAIL
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import (
    Empty,
    Error,
    InvalidArgument,
    NoReply,
    NotFound,
    QueueFull,
    Unconfirmed,
    error_for,
)
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.message.properties import pack
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.request.request import CORRELATION, CORRELATION_DIGITS, REPLY_TO, take_back
from shmbroker.ipc.request.return_address import is_of_this_node, reply_to
from shmbroker.netbridge.carrier.sleeper import ANY, ROOM
from shmbroker.netbridge.remote.body import asked, named, told
from shmbroker.netbridge.serving.alarms import Alarm
from shmbroker.netbridge.serving.answer import UNFIT, Answer, unfit
from shmbroker.netbridge.serving.naming import queue_named
from shmbroker.netbridge.serving.producer import until
from shmbroker.netbridge.wire.frame import Command

if TYPE_CHECKING:
    from shmbroker.netbridge.serving.served import Served
    from shmbroker.netbridge.serving.service import Service

SLOTS = 4096
"""So many replies may wait; beyond that the oldest makes place."""
A_MESSAGE: int = lib.SB_A_MESSAGE


def publish_now(queue: Queue, body: bytes, **options: Any) -> None:
    """Nobody waits for the disk."""
    queue.publish(body, timeout=0, confirm="shm", **options)


class Request:
    """Waits for room, and then for its reply."""

    def __init__(
        self, served: Served, command: Command, queue: Queue, fields: Mapping[str, Any]
    ) -> None:
        self.served, self.command = served, command
        self._queue, self._fields = queue, fields
        self._ticket: int | None = None
        self.alarm: Alarm | None = None
        self.full: QueueFull | None = None
        """Why it is in no queue yet."""

    def go_on(self, correlation: str, replies: str) -> None:
        self._ticket = self.full = None
        fields = self._fields
        properties = {**(fields.get("properties") or {}), REPLY_TO: replies}
        options = {name: fields.get(name) for name in ("key", "ttl", "priority", "group")}
        properties[CORRELATION] = correlation
        try:
            publish_now(self._queue, named(fields, "body", bytes), properties=properties, **options)
        except QueueFull as error:
            if lib.sb_when_full(self._queue._queue) == FAIL:
                raise
            self.full = error
            again = lambda: self.served.service.requests.again(correlation)  # noqa: E731
            sleeper = self.served.service.sleeper
            self._ticket = sleeper.watch(self._queue._queue, ROOM, ANY, again)

    def close(self) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
        if self._ticket is not None:
            self.served.service.sleeper.forget(self._ticket, self._queue._queue, ROOM, ANY)
            self._ticket = None


def _is_usable(broker: Broker, replies: Queue) -> bool:
    """Nobody has deleted it, and it is of the node that we are now."""
    return lib.sb_published(replies._queue) >= 0 and is_of_this_node(broker, replies.name)


class Requests:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._replies: Queue | None = None
        self._next: Queue | None = None
        """Takes its place once nobody waits there: its name says which node this is."""
        self._numbers = count(1)
        self._waiting: dict[str, Request] = {}
        self._ticket: int | None = None

    def opened(self) -> None:
        """Of the worker: there is a queue for replies."""
        broker, latest = self._service.broker, self._next or self._replies
        if latest is not None and _is_usable(broker, latest):
            return
        made = broker.temporary_queue(slots=SLOTS, max_deliveries=None, when_full="drop-oldest")
        if self._replies is None:
            self._replies = made
        else:
            self._next = made

    def _goes_on(self) -> None:
        former, following = self._replies, self._next
        if self._waiting or former is None or following is None:
            return
        if self._ticket is not None:
            self._service.sleeper.forget(self._ticket, former._queue, A_MESSAGE, ANY)
            self._ticket = None
        self._replies, self._next = following, None

    def ask(self, request: Request) -> None:
        self._goes_on()
        correlation = f"{next(self._numbers):0{CORRELATION_DIGITS}x}"
        self._waiting[correlation] = request
        command = request.command
        late = partial(self._late, correlation, request)
        request.alarm = self._service.alarms.at(until(command), late)
        self.again(correlation)
        self._watch()

    def again(self, correlation: str) -> None:
        request = self._waiting.get(correlation)
        if request is None or self._replies is None:
            return
        try:
            request.go_on(correlation, self._replies.name)
        except Error as error:
            self._failed(correlation, error)
        except UNFIT as error:
            self._failed(correlation, unfit(error))

    def _late(self, correlation: str, request: Request) -> None:
        self._failed(correlation, request.full or error_for(NO_REPLY, "a request"))

    def _failed(self, correlation: str, error: Error) -> None:
        request = self._waiting.pop(correlation, None)
        if request is not None:
            request.close()
            # without a reply: its number, by which it may be taken back
            number = int(correlation, 16) if isinstance(error, NoReply) else 0
            request.served.refuse(request.command, error, published=number)

    def taken_back(self, broker: Broker, command: Command) -> Answer:
        """Of the worker: whether the request was in its queue still, and nobody had it."""
        replies, name = self._replies, queue_named(told(command.body))
        if replies is None:
            return Answer()
        try:
            queue = broker._queue_there(name)
        except NotFound:
            return Answer()
        return Answer(value=int(take_back(queue, replies.name, command.value)))

    def forget(self, served: Served) -> None:
        """Its session is over."""
        mine = [each for each, request in self._waiting.items() if request.served is served]
        for correlation in mine:
            self._waiting.pop(correlation).close()

    # --- replies ------------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._ticket is None and self._waiting and self._replies is not None:
            sleeper = self._service.sleeper
            self._ticket = sleeper.watch(self._replies._queue, A_MESSAGE, ANY, self._rung)

    def _rung(self) -> None:
        self._ticket = None
        replies = self._replies
        assert replies is not None
        message = ffi.new("sb_message[]", 1)
        try:
            while (code := lib.sb_get_many(replies._queue, message, 1, 0)) == 1:
                self._came(replies, message)
            error = replies._error(code, "waiting for replies in")
            if not isinstance(error, Empty):  # it was deleted: the next who asks makes another
                unknown = Unconfirmed(f"whether the request was carried out is unknown: {error}")
                for correlation, request in tuple(self._waiting.items()):
                    self._failed(correlation, request.full or unknown)
        finally:
            self._watch()

    def _came(self, replies: Queue, message: Any) -> None:
        length = ffi.new("int64_t *")
        held = lib.sb_message_properties(message, length)
        packed = ffi.buffer(held, length[0])[:]
        body = ffi.buffer(message[0].body, message[0].length)[:]
        lib.sb_ack(replies._queue, message)
        try:
            correlation = told(packed).get(CORRELATION)
        except InvalidArgument:
            return  # who replied did not write properties: nobody knows to whom
        request = self._waiting.pop(correlation, None) if isinstance(correlation, str) else None
        if request is not None:
            request.close()
            answer = asked(body=body, properties=packed)
            request.served.done(request.command, body=answer)


def reply(broker: Broker, command: Command) -> None:
    """Of the worker: into the queue of whoever has asked."""
    fields = told(command.body)
    name = queue_named(fields)
    properties = dict(fields.get("properties") or {})
    pack(properties)
    properties[CORRELATION] = fields.get("correlation")
    reply_to(broker, name, named(fields, "body", bytes), pack(properties))
