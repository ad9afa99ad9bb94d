"""Who has turns with the messages of a queue that several nodes have: a decision, and no more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from shmbroker.core.layout import BALANCE_MEMBERS
from shmbroker.netbridge.cluster.advert import Queue
from shmbroker.netbridge.cluster.option import ON_DEMAND, STRICT
from shmbroker.netbridge.cluster.redistribution import Here
from shmbroker.netbridge.election.question import Node

HERE: Final = b""
"""In the place of a node: the queue itself."""
TURNS: Final = b"turns"
"""In the place of a node: those that have the queue, which is not here, in turn."""


@dataclass(frozen=True, slots=True)
class Member:
    node: Node
    is_eligible: bool
    """Its turns come; if nobody's do, messages stay here."""


def sets(
    mode: str,
    here: Iterable[Here],
    there: Mapping[Node, Mapping[str, Queue]],
    up: frozenset[Node],
) -> dict[tuple[str, int], tuple[Member, ...]]:
    """Of each queue that is balanced, by name and reference.

    `there`: in the order in which nodes became known.
    """
    if mode not in (STRICT, ON_DEMAND):
        return {}
    found = {}
    for queue in here:
        if not queue.may_be_balanced:
            continue
        if others := members(mode, queue.name, there, up):
            own = Member(HERE, mode == STRICT or queue.is_consumed)
            found[queue.name, queue.reference] = (own, *others)[:BALANCE_MEMBERS]
    return found


def members(
    mode: str, name: str, there: Mapping[Node, Mapping[str, Queue]], up: frozenset[Node]
) -> tuple[Member, ...]:
    """The other nodes that have this queue.  If nobody is eligible, and it is not here, it is the
    turn of the first (core/balance.py)."""
    return tuple(
        Member(node, mode == STRICT or (each.is_consumed and node in up))
        for node, queues in there.items()
        if (each := queues.get(name)) is not None and each.may_be_balanced
    )[:BALANCE_MEMBERS]
