"""Several brokers: each session is a connection to one of them, chosen by a policy.

Those that are announced (`discovery:(…)`) are looked for as long as the cluster is there, so that
the policy knows all of them; each session looks as well, from its first broker on.
"""

from __future__ import annotations

import pkgutil
import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any
from weakref import finalize

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.netbridge.client.connecting import OF_LINKS, Login, separated
from shmbroker.netbridge.client.discovered import OF_SESSIONS, looks
from shmbroker.netbridge.discovered.discoverer import Discoverer
from shmbroker.netbridge.discovery.entries import Entry
from shmbroker.netbridge.discovery.members import members_of
from shmbroker.netbridge.plan.terms import of_session
from shmbroker.netbridge.plan.text import heard, parse
from shmbroker.netbridge.plan.uri import FAILOVER, Found, Members, Single, Values, singles
from shmbroker.netbridge.remote.topology import Node, Topology
from shmbroker.netbridge.security.stretched import Stretched


def _is_known(_: tuple[Entry, ...]) -> None:
    """They are asked for when a session begins."""


class Cluster:
    """Made by `shmbroker.cluster`: sessions spread over the members of its list, or those that are
    found, and over all nodes that brokers tell its sessions of.

    The policy, `load-balancing`, is asked once for each session.  One that loses its broker goes on
    to the next members.
    """

    def __init__(self, login: Login, connect: Callable[[Login], Any]) -> None:
        where, user, password = separated(login.uri, login.user, login.password)
        found = parse(where)
        self._discoverer: Discoverer | None = None
        if isinstance(found, Found):
            self._discoverer = looks(found, Stretched(user, password), _is_known)
            finalize(self, self._discoverer.close)
        self._login = Login(where, user, password, login.name, self._learns, self._orders)
        self._connect = connect
        self._values = dict(getattr(found, "values", ()))
        self._given: list[Single] = list(dict.fromkeys(singles(found)))
        if not self._given and self._discoverer is None:
            raise InvalidArgument(f"{where!r} names no broker that is reached over TCP")
        is_failover = isinstance(found, Members) and found.scheme == FAILOVER
        of_sessions = {name: said for name, said in self._values.items() if name in OF_SESSIONS}
        self._kept = self._values if is_failover else of_sessions
        resolved = of_session(self._values)
        self._policy: str = resolved["load-balancing"]
        self._uses_topology: bool = resolved["use-topology-for-load-balancing"]
        self._lock = threading.Lock()
        self._topology = Topology()
        """As its sessions were told last; each tells it in a thread of its own."""
        self._last: Single | None = None
        """Chosen for the session before."""

    @property
    def members(self) -> list[str]:
        """The addresses of those that serve, as far as that is known: in the order of the list,
        or as they were found, then those that brokers have told of."""
        self._look()
        return [each.peer for each in self._members()]

    def session(self) -> Any:
        """A connection, as `connect` answers one."""
        if self._discoverer is not None:
            return self._connect(self._login)
        uri = str(Members(FAILOVER, self._ordered(), self._valued(self._kept)))
        return self._connect(replace(self._login, uri=uri))

    def _orders(self, found: Members) -> Members:
        """Those that a session has just found, and those that were found before."""
        self._look(singles(found))
        return replace(found, members=self._ordered(), values=self._valued(dict(found.values)))

    def _look(self, found: Iterable[Single] = ()) -> None:
        if self._discoverer is not None:
            known = members_of(self._discoverer.found)
            self._given = list(dict.fromkeys([*known, *found])) or self._given

    @staticmethod
    def _valued(kept: dict[str, Any]) -> Values:
        return tuple({**kept, "randomize": False}.items())

    def _ordered(self) -> tuple[Single, ...]:
        members = self._members()
        first = self._chosen(members) % len(members)
        self._last = members[first]
        ordered = (*members[first:], *members[:first])
        return (*ordered, *(each for each in self._given if each not in ordered))

    def _learns(self, told: tuple[Node, ...]) -> None:
        with self._lock:
            self._topology.take(told)

    def _members(self) -> list[Single]:
        """Nobody who is known to wait for another one's end."""
        with self._lock:
            nodes = list(self._topology.nodes.values()) if self._uses_topology else []
        lives = [found for each in nodes if (found := heard(each.live)) is not None]
        waiting = {
            found.place[:2]
            for each in nodes
            for uri in each.backups
            if (found := heard(uri)) is not None
        }
        serving = [each for each in self._given if each.place[:2] not in waiting]
        known = {each.place[:2] for each in self._given}
        first = next(iter(self._given), Single(""))
        values = tuple(each for each in first.values if each[0] in OF_LINKS)
        told = [first.tells_of(each) for each in lives if each.place[:2] not in known]
        told = [replace(each, values=(*values, *each.values)) for each in told]
        return [*serving, *told] or self._given

    def _chosen(self, members: list[Single]) -> int:
        if self._policy == "first":
            return 0
        if self._policy == "random":
            return random.randrange(len(members))
        if self._policy in ("random-sticky", "round-robin"):
            if self._last not in members:
                return random.randrange(len(members))
            return members.index(self._last) + (self._policy == "round-robin")
        return int(pkgutil.resolve_name(self._policy)([each.peer for each in members]))

    def __repr__(self) -> str:
        return f"<Cluster of {', '.join(self.members)}>"
