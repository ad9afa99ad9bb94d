"""Where a live listens for the other members of its cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import zmq

from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.security.credential import Credentials, KeyPair
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role

Place = tuple[str, Stretched | KeyPair]
"""An address, and whose key it has."""
ROLES = frozenset({Role.CLUSTER})


class Listening:
    """Of the worker."""

    def __init__(self, makes: Callable[[Place], Listener], fails: Callable[[str], None]) -> None:
        """`fails`: told why there is no listener at an address."""
        self._makes, self._fails = makes, fails
        self._wanted: tuple[Place, ...] = ()
        self._there: dict[Place, Listener] = {}

    def wants(self, places: Sequence[Place]) -> None:
        self._wanted = tuple(places)

    def listen(self) -> bool:
        """Where it does not yet.  False: an address is taken."""
        for place in self._wanted:
            if place in self._there:
                continue
            try:
                self._there[place] = self._makes(place)
            except zmq.ZMQError as error:
                self._fails(f"{place[0]}: {error}")
        return len(self._there) == len(self._wanted)

    def goes_by(self, credentials: Credentials, places: Sequence[Place]) -> None:
        """An address whose key comes from a password that has changed is bound anew.  Links by a
        former password end; members that know the new one come again."""
        if self._wanted:
            self._wanted = tuple(places)
        for place, listener in list(self._there.items()):
            if place in self._wanted:
                listener.admit(credentials, ROLES)
            else:
                self._there.pop(place).close()

    def end(self) -> None:
        self._wanted = ()
        while self._there:
            self._there.popitem()[1].close()
