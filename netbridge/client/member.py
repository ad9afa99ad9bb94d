"""A member of the list that a program has: what it knows of it."""

from __future__ import annotations

from dataclasses import dataclass

from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.plan.uri import Single


@dataclass(frozen=True, slots=True)
class Member:
    """Of what was said when this program was there last."""

    uri: str
    standing: str
    """`live`, `backup`; empty if it has never answered."""
    name: str
    node: str
    """The id of its node, in hexadecimal; empty if it has not said."""
    epoch: int

    @classmethod
    def of(cls, member: Single, met: Identity | None) -> Member:
        if met is None:
            return cls(str(member), "", "", "", 0)
        return cls(str(member), met.standing.value, met.name, met.node.hex(), met.epoch)
