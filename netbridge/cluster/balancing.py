"""Who has turns with the messages of a queue that several nodes have: a decision, and no more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from shmbroker.core.layout import BALANCE_MEMBERS
from shmbroker.netbridge.cluster.advert import Queue
from shmbroker.netbridge.cluster.option import ON_DEMAND, STRICT
from shmbroker.netbridge.cluster.redistribution import Here, To
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
    selectors: tuple[str, ...] = ()
    """With what one of these matches; without any, with every message."""


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
            own = _member(mode, HERE, queue.is_consumed, queue.selectors)
            found[queue.name, queue.reference] = (own, *others)[:BALANCE_MEMBERS]
    return found


def members(
    mode: str, name: str, there: Mapping[Node, Mapping[str, Queue]], up: frozenset[Node]
) -> tuple[Member, ...]:
    """The other nodes that have this queue.  If nobody is eligible, and it is not here, it is the
    turn of the first (core/balance.py)."""
    return tuple(
        _member(mode, node, each.is_consumed and node in up, each.selectors)
        for node, queues in there.items()
        if (each := queues.get(name)) is not None and each.may_be_balanced
    )[:BALANCE_MEMBERS]


def _member(mode: str, node: Node, is_consumed: bool, selectors: tuple[str, ...]) -> Member:
    if mode == STRICT:
        return Member(node, True)
    return Member(node, is_consumed, selectors if is_consumed else ())


def takers(members: tuple[Member, ...]) -> tuple[tuple[To, ...], Node | None]:
    """Who takes messages that must not stay here; and who gets those that none of them takes, or
    None if there can be no such."""
    to = tuple(To(each.node, each.selectors) for each in members if each.is_eligible)
    if not to:
        return (To(members[0].node),), None
    return to, members[0].node if all(each.selectors for each in to) else None


def destinations(
    mode: str,
    here: Iterable[Here],
    there: Mapping[Node, Mapping[str, Queue]],
    up: frozenset[Node],
) -> dict[str, tuple[Node, ...]]:
    """Of each queue, who gets messages that were on their way to a node that was forgotten, in
    turn: whoever takes every message; else the queue here, or the first node that has one."""
    ours = tuple(here)
    found: dict[str, tuple[Node, ...]] = {}
    for node, queues in there.items():
        for name in queues:
            found.setdefault(name, (node,))
    found |= {each.name: (HERE,) for each in ours}
    taken = {name: turns for (name, _), turns in sets(mode, ours, there, up).items()}
    if mode in (STRICT, ON_DEMAND):
        own = {each.name for each in ours}
        taken |= {name: members(mode, name, there, up) for name in found.keys() - own}
    for name, turns in taken.items():
        if all_of := tuple(each.node for each in turns if each.is_eligible and not each.selectors):
            found[name] = all_of
    return found
