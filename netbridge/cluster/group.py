"""A group of messages of one queue that several nodes have, and to which of them it may go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shmbroker.netbridge.cluster.option import ON_DEMAND, STRICT
from shmbroker.netbridge.cluster.said import Grouped
from shmbroker.netbridge.election.question import Node


@dataclass(frozen=True, slots=True)
class Group:
    queue: str
    name: str


@dataclass(frozen=True, slots=True)
class Holder:
    """A node that has the queue."""

    node: Node
    is_consumed: bool
    is_up: bool
    """There is a link to it, or it is this node."""


Gone = Mapping[Node, Node | None]
"""Nodes that do not come back, or come back empty; of one that was scaled down, who has what it
had."""


def turns(mode: str, holders: Sequence[Holder]) -> tuple[Node, ...]:
    """Who may get a new group: in turn, as what has no group is balanced; nobody, if there are
    only nodes where messages would wait."""
    if mode == STRICT:
        return tuple(each.node for each in holders)
    if mode == ON_DEMAND:
        return tuple(each.node for each in holders if each.is_consumed and each.is_up)
    return ()


# --- what is to be done -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tell:
    """Over a link to the live of this node."""

    to: Node
    what: Grouped


@dataclass(frozen=True, slots=True)
class TellAll:
    """All other nodes that there is a link to."""

    what: Grouped


@dataclass(frozen=True, slots=True)
class Keep:
    """Make this route durable, in the order in which they are given; then it is `kept`."""

    number: int
    group: Group
    node: Node
    is_in_use: bool = False
    """Else it may be `not_kept`, if there is no room."""


@dataclass(frozen=True, slots=True)
class Drop:
    """It has none any more: the same."""

    group: Group


@dataclass(frozen=True, slots=True)
class Routed:
    """From now on what is published here goes to the queue at this node."""

    group: Group
    node: Node


@dataclass(frozen=True, slots=True)
class Unrouted:
    """From now on it is a new group."""

    group: Group


@dataclass(frozen=True, slots=True)
class TimedOut:
    """Whoever publishes fails: where it goes was not decided in time."""

    group: Group


Action = Tell | TellAll | Keep | Drop | Routed | Unrouted | TimedOut
