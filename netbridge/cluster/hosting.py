"""A live that runs backups of other nodes: to whom it says yes, and which number each backup has.

Each node has its number here for good, so a backup that is asked for again is the one of before:
the same name, the same ports, the same data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shmbroker.netbridge.cluster.said import Counted, Granted, Requests
from shmbroker.netbridge.election.question import Node

NAME = "colocated_backup_"


def name_of(number: int) -> str:
    return f"{NAME}{number}"


@dataclass(frozen=True, slots=True)
class Begin:
    """Run it; whether it can be, only trying shows: then it is `begun`, or `refused`."""

    node: Node
    number: int
    wanted: Requests


@dataclass(frozen=True, slots=True)
class Terms:
    """Of this broker."""

    most: int
    policy: str
    group: str
    vhost: str


@dataclass(slots=True)
class Hosted:
    number: int
    vhost: str
    runs: bool = False
    """Else it is being started."""
    is_released: bool = False
    """While it is being started: it ends when it runs."""


class Hosting:
    def __init__(self, terms: Terms, numbers: Mapping[Node, int]) -> None:
        """`numbers`: of backups that were here before."""
        self._terms = terms
        self._numbers = dict(numbers)
        self.hosted: dict[Node, Hosted] = {}
        self.is_leaving = False

    def counted(self, node: Node, number: int) -> Counted:
        at = self.hosted.get(node)
        name = "" if at is None else name_of(at.number)
        return Counted(number, len(self.hosted), at is not None, name, self._why_none(node))

    def requested(self, node: Node, what: Requests) -> Granted | Begin:
        at, terms = self.hosted.get(node), self._terms
        if at is not None and at.runs:
            return Granted(what.number, name_of(at.number), "", is_old=False)
        why = self._why_none(node) or self._why_not(what)
        if at is not None:
            why = "it is being started"
        if why:
            return Granted(what.number, "", why, is_old=False)
        if what.count != len(self.hosted):
            why = f"it runs {len(self.hosted)} backups by now"
            return Granted(what.number, "", why, is_old=True)
        assert len(self.hosted) < terms.most
        number = self._numbers.setdefault(node, max(self._numbers.values(), default=0) + 1)
        self.hosted[node] = Hosted(number, what.vhost)
        return Begin(node, number, what)

    def _why_none(self, node: Node) -> str:
        """Nobody else gets one now."""
        if self.is_leaving:
            return "it is being stopped"
        if node not in self.hosted and len(self.hosted) >= self._terms.most:
            return f"it runs {len(self.hosted)} backups of at most {self._terms.most}"
        return ""

    def _why_not(self, what: Requests) -> str:
        terms = self._terms
        if what.policy != terms.policy:
            return f'its ha.policy is "{terms.policy}", and not "{what.policy}"'
        if what.group != terms.group:
            return f"its group-name is {terms.group!r}, and not {what.group!r}"
        taken = {terms.vhost, *(each.vhost for each in self.hosted.values())}
        if what.store and what.vhost in taken:
            return f"vhost {what.vhost!r} is there already: give each broker its own instance.vhost"
        return ""

    def begun(self, node: Node) -> None:
        self.hosted[node].runs = True

    def ended(self, node: Node) -> None:
        """Or it could not be started."""
        self.hosted.pop(node, None)
