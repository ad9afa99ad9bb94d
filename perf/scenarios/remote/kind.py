"""What is measured: where messages are kept when they are confirmed, and who can do that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from shmbroker.perf.peers.activemq import ActiveMq, ActiveMqInMemory, ActiveMqLinked
from shmbroker.perf.peers.jetstream import JetStream, JetStreamInMemory, JetStreamLinked
from shmbroker.perf.peers.ours_remote import OursLinked, OursRemote, OursRemoteInMemory
from shmbroker.perf.peers.rabbitmq import RabbitMq, RabbitMqInMemory, RabbitMqLinked
from shmbroker.perf.peers.redis_stream import Redis, RedisInMemory
from shmbroker.perf.scenarios.durable.contender import Slice, consume, made, sliced, waited_ns
from shmbroker.perf.server.connection import Connection
from shmbroker.perf.server.linked import LINKED_QUEUE
from shmbroker.perf.server.server import Server

QUEUE: Final = "remote"


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    title: str
    servers: Sequence[Server]
    """Ours first."""
    queue: str = QUEUE
    is_link: bool = False

    def measured(self, connection: Connection, size: int, singles: int, many: int) -> Slice:
        return (through if self.is_link else sliced)(connection, size, singles, many)


def through(connection: Connection, size: int, singles: int, many: int) -> Slice:
    """Of a link: until each has been taken at the far broker."""
    one_by_one, together = made(singles, size), made(many, size)

    def sent(body: bytes) -> None:
        connection.publish(body)
        consume(connection, [body])

    waits = tuple(waited_ns(sent, one_by_one))

    def all_at_once(_: bytes) -> None:
        connection.publish_many(together)
        consume(connection, together)

    [spent] = waited_ns(all_at_once, [b""])
    return Slice(waits, many / (spent / 1e9))


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind(
            "memory", "confirmed when it is in the broker's memory",
            (OursRemoteInMemory(), RabbitMqInMemory(), RedisInMemory(), JetStreamInMemory(),
             ActiveMqInMemory()),
        ),
        Kind(
            "disk", "confirmed when it is on disk",
            (OursRemote(), RabbitMq(), Redis(), JetStream(), ActiveMq()),
        ),
        Kind(
            "link", "published at one broker, taken at another one",
            (OursLinked(), ActiveMqLinked(), RabbitMqLinked(), JetStreamLinked()), LINKED_QUEUE,
            is_link=True,
        ),
    )
}  # fmt: skip


def names() -> Iterator[str]:
    """Of all peers."""
    yield from dict.fromkeys(each.name for kind in KINDS.values() for each in kind.servers)
