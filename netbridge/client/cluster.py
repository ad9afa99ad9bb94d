"""Several brokers: each session is a connection to one of them, chosen by a policy."""

from __future__ import annotations

import pkgutil
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.netbridge.client.connecting import NEAR, Login, separated
from shmbroker.netbridge.plan.terms import of_session
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.plan.uri import FAILOVER, Found, Members, Single, singles


class Cluster:
    """Made by `shmbroker.cluster`: sessions spread over the members of its list.

    The policy, `load-balancing`, is asked once for each session.  One that loses its broker goes on
    to the next members of the list.
    """

    def __init__(self, login: Login, connect: Callable[[Login], Any]) -> None:
        where, user, password = separated(login.uri, login.user, login.password)
        found = parse(where)
        if isinstance(found, Found):
            raise InvalidArgument(
                f"{where!r} is not there yet for several sessions: connect finds a broker by it, "
                "and a list names several"
            )
        self._login = Login(where, user, password, login.name)
        self._connect = connect
        self._values = dict(getattr(found, "values", ()))
        self._members: list[Single] = list(dict.fromkeys(singles(found)))
        if not self._members:
            raise InvalidArgument(f"{where!r} names no broker that is reached over TCP")
        is_failover = isinstance(found, Members) and found.scheme == FAILOVER
        chosen = {NEAR: self._values[NEAR]} if NEAR in self._values else {}
        self._kept = self._values if is_failover else chosen
        self._policy: str = of_session(self._values)["load-balancing"]
        self._next = random.randrange(len(self._members))

    @property
    def members(self) -> list[str]:
        """Their addresses, in the order of the list."""
        return [each.peer for each in self._members]

    def session(self) -> Any:
        """A connection, as `connect` answers one."""
        first = self._chosen() % len(self._members)
        ordered = (*self._members[first:], *self._members[:first])
        values = tuple({**self._kept, "randomize": False}.items())
        uri = str(Members(FAILOVER, ordered, values))
        return self._connect(replace(self._login, uri=uri))

    def _chosen(self) -> int:
        if self._policy == "first":
            return 0
        if self._policy == "random":
            return random.randrange(len(self._members))
        if self._policy == "random-sticky":
            return self._next
        if self._policy == "round-robin":
            self._next += 1
            return self._next
        return int(pkgutil.resolve_name(self._policy)(self.members))

    def __repr__(self) -> str:
        return f"<Cluster of {', '.join(self.members)}>"
