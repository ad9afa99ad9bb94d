"""A member of the list that a program has: what it knows of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.plan.text import heard
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.remote.topology import Node
from shmbroker.netbridge.wire.words import Standing


@dataclass(frozen=True, slots=True)
class Member:
    """As it was said when this program was there last, or by the broker that it is connected to."""

    uri: str
    standing: str
    """`live`, `backup`; empty if nobody has told."""
    name: str
    node: str
    """The id of its node, in hexadecimal; empty if nobody has told."""
    epoch: int

    @classmethod
    def of(cls, member: Single, met: Identity | None, nodes: Iterable[Node]) -> Member:
        """What is told of a newer epoch counts."""
        for node in nodes:
            if met is None or not met.node or node.epoch >= met.epoch:
                for uri in node.uris:
                    found = heard(uri)
                    if found is not None and found.place[:2] == member.place[:2]:
                        return cls._told(member, node, is_live=uri == node.live)
        if met is None:
            return cls(str(member), "", "", "", 0)
        return cls(str(member), met.standing.value, met.name, met.node.hex(), met.epoch)

    @classmethod
    def _told(cls, member: Single, node: Node, *, is_live: bool) -> Member:
        standing = Standing.LIVE if is_live else Standing.BACKUP
        name = node.name if is_live else ""
        return cls(str(member), standing.value, name, node.id.hex(), node.epoch)
