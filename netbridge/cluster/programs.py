"""What programs may be told of the other nodes of a cluster: who serves each, and who waits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shmbroker.netbridge.cluster.machine import Actions, Membership
from shmbroker.netbridge.remote.topology import Node


@dataclass(frozen=True, slots=True)
class Other:
    """A node that programs can reach."""

    node: Node
    is_there: bool
    """Else it was there, and is missing."""


def reached_at(machine: Membership, uri: str) -> Actions:
    """Programs reach this broker there from now on: all are told."""
    machine.terms = replace(machine.terms, programs=uri)
    if machine.me is not None:
        yield from machine.tells(replace(machine.me, programs=uri))


def others(machine: Membership) -> tuple[Other, ...]:
    """In the order in which they became known."""
    waiting: dict[bytes, list[str]] = {}
    for (id, _), each in machine.backups.items():
        if each.programs:
            waiting.setdefault(id, []).append(each.programs)
    return tuple(
        Other(
            Node(id, live.epoch, live.name, live.programs, tuple(waiting.get(id, ()))),
            machine.is_there(id),
        )
        for id, live in machine.lives.items()
        if live.programs
    )
