"""What a broker tells the programs that are connected to it: who serves each node, and who waits.

A frame has all that is told of, so it takes the place of the one before.  Of a node that both tell
of the higher epoch counts: a message that is late, or of a former live, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgpack

from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.value import value

NODES_MAX: Final = 1000
BACKUPS_MAX: Final = 100


@value
class Node:
    id: bytes
    epoch: int
    name: str
    """Of its live."""
    live: str
    """How others reach it; empty if that is not known."""
    backups: tuple[str, ...] = ()
    memory: str = ""
    """Which shared memory its rings are in (ipc/instance/process.py), and the vhost there."""
    vhost: str = ""

    @property
    def uris(self) -> Iterator[str]:
        """Its live first."""
        yield from filter(None, (self.live, *self.backups))


def packed(nodes: Iterable[Node]) -> bytes:
    fields = [
        [each.id, each.epoch, each.name, each.live, list(each.backups), each.memory, each.vhost]
        for each in nodes
    ]
    made: bytes = msgpack.packb(fields)
    return made


def unpacked(body: Body) -> tuple[Node, ...]:
    """Malformed."""
    try:
        found = msgpack.unpackb(body, max_array_len=NODES_MAX)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise Malformed(f"the nodes are no MessagePack: {error}") from None
    if not isinstance(found, list):
        raise Malformed("the nodes are no list")
    return tuple(map(_node, found))


def _node(fields: Any) -> Node:
    kinds = (bytes, int, str, str, list, str, str)
    if not isinstance(fields, list) or len(fields) < len(kinds):
        raise Malformed("a node has too few fields")
    fields = fields[: len(kinds)]  # a broker of a later version may tell more of it
    if not all(isinstance(each, kind) for each, kind in zip(fields, kinds, strict=True)):
        raise Malformed("a field of a node is of another kind")
    backups = fields[4]
    if len(backups) > BACKUPS_MAX or not all(isinstance(each, str) for each in backups):
        raise Malformed("the backups of a node are too many, or no addresses")
    id, epoch, name, live, _, memory, vhost = fields
    return Node(id, epoch, name, live, tuple(backups), memory, vhost)


class Topology:
    """At the program."""

    def __init__(self) -> None:
        self.nodes: dict[bytes, Node] = {}

    def take(self, told: Iterable[Node]) -> bool:
        """Whether it is news."""
        before = dict(self.nodes)
        told = list(told)
        for each in told:
            known = before.get(each.id)
            if known is None or known.epoch <= each.epoch:
                self.nodes[each.id] = each
        for gone in before.keys() - {each.id for each in told}:
            del self.nodes[gone]
        return self.nodes != before
