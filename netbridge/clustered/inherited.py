"""Message ids and numbers of producers of a node that leaves: told by it, kept by its successor.

They are rows beside those of its queues (rows.py), each with a part of a table, so that large ones
go in pieces.  What was told is told again only where it has changed since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, Final

from shmbroker.core.layout import INHERITED_BYTES, INHERITED_NODES
from shmbroker.ipc.base.errors import InvalidArgument, NotFound, QueueFull
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.inherited import (
    IDENTITY,
    INHERITED,
    NODE,
    PAIR,
    PRODUCERS_ROW,
    SEPARATOR,
    WORD,
    Table,
    identity_of,
    table_of,
    there,
)
from shmbroker.ipc.queue.queue import Queue
from shmbroker.netbridge.clustered.last_values import last_values, newest

Row = dict[str, Any]
OF: Final = "ids"
"""The key of the queue's name in a row."""
BITS_MAX: Final = 22
GONE_SECONDS: Final = 0.001
"""So long what is forgotten keeps its place."""
ROOM_SECONDS: Final = 10.0
CONFIRM_SECONDS: Final = 30.0


class IdsTold:
    """What was told of a node that leaves."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._told: dict[tuple[str, bytes, str], int] = {}
        """Of rows: a hash of each."""

    def rows(self, queues: Iterable[Queue]) -> Iterator[Row]:
        """Of these queues, what was not told yet."""
        known = _kept(self._broker)
        for queue in queues:
            name, identity = queue.name, identity_of(queue)
            with suppress(NotFound):  # deleted since
                bits, table = table_of(queue)
                yield from self._news(name, identity, bits, table)
                for node, node_bits in _nodes(known.get(f"{name}{SEPARATOR}", b""), identity):
                    begin = f"{name}{SEPARATOR}{there(node)}{SEPARATOR}"
                    parts = {key[len(begin):]: row for key, row in known.items()
                             if key.startswith(begin)}  # fmt: skip
                    yield from self._news(name, node, node_bits, parts)

    def _news(self, name: str, node: bytes, bits: int, table: Table) -> Iterator[Row]:
        row = {OF: name, "of": node, "bits": bits}
        for part, pairs in table.items():
            which, told = (name, node, part), hash((bits, pairs))
            if self._told.get(which) != told:
                self._told[which] = told
                yield row | {"part": part, "row": pairs}


def remember(broker: Broker, rows: Iterable[Row]) -> None:
    """What another node has told.  Error, TypeError, ValueError, KeyError: it is none."""
    queue = last_values(broker, INHERITED, waits=True)
    for row in rows:
        name, node, bits, part, pairs = _checked(row)
        key = f"{name}{SEPARATOR}"
        _keep(queue, f"{key}{there(node)}{SEPARATOR}{part}", pairs, node)
        identity = identity_of(broker.queue(name))
        value = queue.value(key)
        head = b"" if value is None else bytes(value.body)
        nodes = dict(_nodes(head, identity))
        if nodes.get(node) != bits:
            nodes[node] = bits
            last = list(nodes.items())[-INHERITED_NODES:]
            packed = (each + many.to_bytes(WORD, "little") for each, many in last)
            _keep(queue, key, b"".join(chain([identity], packed)), node)
    queue.confirm(timeout=CONFIRM_SECONDS)


def _checked(row: Row) -> tuple[str, bytes, int, str, bytes]:
    name, node, bits, part, pairs = row[OF], row["of"], row["bits"], row["part"], row["row"]
    if part != PRODUCERS_ROW:
        int(part, 16)
    good = len(node) == IDENTITY and 0 <= bits <= BITS_MAX and len(part) <= NODE
    if not good or len(pairs) > INHERITED_BYTES or len(pairs) % PAIR:
        raise InvalidArgument(f"these are no ids of messages of queue {name!r}")
    return name, node, bits, part, pairs


def _keep(queue: Queue, key: str, value: bytes, node: bytes) -> None:
    try:
        queue.publish(value, key=key, timeout=0, confirm="shm")
    except QueueFull:
        _forget_oldest(queue, there(node))
        queue.publish(value, key=key, timeout=ROOM_SECONDS, confirm="shm")


def _forget_oldest(queue: Queue, spared: str) -> None:
    """All rows of the node whose ids were told first; not those that are just being told."""
    keys = [each.key or "" for each in queue.browse(unconfirmed=True)]
    oldest = next((node for node in map(_node_in, keys) if node not in ("", spared)), None)
    for key in keys:
        if oldest is not None and _node_in(key) == oldest:
            queue.publish(b"", key=key, ttl=GONE_SECONDS, timeout=0, confirm="shm")


def _node_in(key: str) -> str:
    """Empty: of none, as what a program has published there."""
    _, _, rest = key.partition(SEPARATOR)
    return rest.partition(SEPARATOR)[0]


def _kept(broker: Broker) -> Table:
    try:
        return newest(broker.queue(INHERITED))
    except NotFound:
        return {}


def _nodes(head: bytes, identity: bytes) -> Iterator[tuple[bytes, int]]:
    """Of which nodes there are rows of the queue with this identity."""
    if head[:IDENTITY] == identity:
        for at in range(IDENTITY, len(head), NODE):
            yield (head[at : at + IDENTITY],
                   int.from_bytes(head[at + IDENTITY : at + NODE], "little"))  # fmt: skip
