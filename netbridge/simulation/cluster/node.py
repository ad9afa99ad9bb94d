"""A node: a store, who serves it, and the programs at its queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.cluster.balancing import HERE, Member
from shmbroker.netbridge.election.question import Node as Id
from shmbroker.netbridge.simulation.cluster.store import Store
from shmbroker.netbridge.simulation.disk import Disk

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.cluster.broker import Broker

Selectors = tuple[str, ...]
URI: Final = "tcp://"
TALK: Final = ">"
WAY: Final = "="
"""Between the names of both hosts in the name of a line; the first one has made it."""


def uri_of(host: str) -> str:
    return URI + host


def host_of(uri: str) -> str:
    return uri.removeprefix(URI)


def is_made_by(host: str, line: str) -> bool:
    """The near end of this line is here."""
    return line.startswith((host + TALK, host + WAY))


def takes(selectors: Selectors, kind: str) -> bool:
    return not selectors or kind in selectors


class Node:
    def __init__(self, name: str, hosts: tuple[str, ...], disk: Disk) -> None:
        self.name, self.hosts = name, hosts
        self.id: Id = name.encode() * 16
        self.store = Store(disk)
        self.store.has_sent = self._ships
        self.epoch = 0
        self._histories = 0
        self.live: Broker | None = None
        self.always: set[str] = set()
        """Queues that it has had since it is there."""
        self.has_parted = False
        """It leaves, and has taken back what it has told."""
        self.consumers: dict[str, Selectors] = {}
        """Of each queue that somebody takes from, what they take; nothing: all."""
        self.in_hand: dict[str, set[int]] = {}

    @property
    def serves(self) -> Broker | None:
        """The broker with which programs work now."""
        live = self.live
        if live is None or not live.admits or live.host.stands_until > live.host.world.now:
            return None
        return live

    @property
    def origin(self) -> bytes:
        """Of what its ways ship: another one when positions begin anew."""
        return self.id + self._histories.to_bytes(2)

    def empties(self) -> None:
        """All that it had is elsewhere."""
        self.store.empties()
        self._histories += 1

    def _ships(self) -> None:
        live = self.live
        if live is not None:
            live.soon(live.carrying.ships)

    def takes_here(self, queue: str, kind: str) -> bool:
        return queue in self.consumers and takes(self.consumers[queue], kind)

    def loses_programs(self) -> None:
        self.consumers.clear()
        self.in_hand.clear()


def chosen(members: Sequence[Member], turn: int, kind: str) -> Id:
    """Whose turn it is with a message of this kind, as core/balance.py chooses."""
    eligible = [each for each in members if each.is_eligible and takes(each.selectors, kind)]
    if eligible:
        return eligible[turn % len(eligible)].node
    return members[0].node if members else HERE
