"""A queue whose handle was opened with a serializer: it publishes values, and answers values.

Queues without one have nothing of this on their way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import signature
from typing import Any

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.timeout import Seconds
from shmbroker.ipc.exchange.named_subscription import NamedSubscription
from shmbroker.ipc.message.outgoing import outgoing
from shmbroker.ipc.message.room import BATCH
from shmbroker.ipc.message.serializer import Codec
from shmbroker.ipc.queue.batch import Batch, several
from shmbroker.ipc.queue.durable import DurableQueue
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.request.request import Reply


class SerializedQueue(Queue):
    """Made by Broker.queue with `serializer`."""

    __slots__ = ()

    @property
    def _codec(self) -> Codec:
        codec: Codec = self._kept.codec
        return codec

    def _encoded(self, body: Any) -> Any:
        return self._codec.dumps(body)

    def publish(self, body: Any, **options: Any) -> Any:
        return super().publish(self._codec.dumps(body), **options)

    publish.__signature__ = signature(Queue.publish)  # type: ignore[attr-defined]

    def _batch(self, bodies: Iterable[Any]) -> Batch:
        if isinstance(bodies, Mapping):
            raise InvalidArgument("bodies are several: put this one into a list, or publish it")
        return Batch(self, [self._codec.dumps(body) for body in several(bodies)])

    def _outgoing(self, body: Any, *rest: Any) -> Any:
        return outgoing(self._codec.dumps(body), *rest)

    def request(self, body: Any, **options: Any) -> Reply:
        reply = super().request(self._codec.dumps(body), **options)
        reply._codec = self._codec
        return reply

    def receive(self, *, timeout: Seconds | None = None) -> Any:
        return self._codec.loads(super().receive(timeout=timeout))

    def receive_many(self, count: int = BATCH, *, timeout: Seconds | None = None) -> list[Any]:
        loads = self._codec.loads
        return [loads(body) for body in super().receive_many(count, timeout=timeout)]


class SerializedDurableQueue(SerializedQueue, DurableQueue):
    __slots__ = ()


class SerializedSubscription(SerializedQueue, NamedSubscription):
    __slots__ = ()
