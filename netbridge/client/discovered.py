"""Brokers that a program finds by `discovery:(…)`: what its uri begins with, and goes on with.

A program has no secret of a cluster.  What it knows are its user and its password, and so it hears
what brokers sign with these: a broadcast that names the credentials of its programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from shmbroker.ipc.base.errors import ConnectionClosed, InvalidArgument
from shmbroker.netbridge.client.waiting import Way
from shmbroker.netbridge.discovered.discoverer import Changed, Discoverer
from shmbroker.netbridge.discovery.entries import Entry
from shmbroker.netbridge.discovery.members import members_of
from shmbroker.netbridge.discovery.option import Discovery, of_program
from shmbroker.netbridge.plan.parameter import SESSION
from shmbroker.netbridge.plan.terms import of_session
from shmbroker.netbridge.plan.uri import FAILOVER, Found, Members, Single
from shmbroker.netbridge.security.stretched import Stretched

OF_SESSIONS: Final = frozenset(option.name for option in SESSION)


class Discovered:
    """It looks as long as its session does."""

    def __init__(self, way: Way, found: Found, keys: Stretched) -> None:
        self._way, self._found = way, found
        self.patience: float = of_session(dict(found.values))["discovery-initial-wait"]
        self._first = way.signal()
        self._takes: Callable[[tuple[Single, ...]], None] = lambda _: None
        self._discoverer = looks(found, keys, self._changed)

    def _changed(self, entries: tuple[Entry, ...]) -> None:
        if any(each.is_live for each in entries):
            self._first.set()
        if entries:
            self._takes(members_of(entries))

    async def first(self) -> Members:
        """As soon as a live is known, else after `discovery-initial-wait`: a list of these."""
        patience = self.patience
        await self._way.wait(self._first, patience)
        members = members_of(self._discoverer.found)
        if not members:
            ignored = self._discoverer.show()["ignored"]["strangers"]
            hint = f"; {ignored} announcements were signed with another password" if ignored else ""
            raise ConnectionClosed(
                f"{self._found} has found nobody in {patience:g} s (discovery-initial-wait){hint}"
            )
        values = tuple((name, value) for name, value in self._found.values if name in OF_SESSIONS)
        return Members(FAILOVER, members, (*values, ("startup-max-reconnect-attempts", -1)))

    def gives(self, takes: Callable[[tuple[Single, ...]], None]) -> None:
        """From now on, whenever there are others; in a thread of its own."""
        self._takes = takes

    def close(self) -> None:
        self._discoverer.close()


def looks(found: Found, keys: Stretched, changed: Changed) -> Discoverer:
    return Discoverer(_discovery(found), (keys,), changed)


def _discovery(found: Found) -> Discovery:
    if found.means == "name":
        raise InvalidArgument(
            f"{found} is for brokers, whose file has [discovery.{found.place}]: a program says "
            "discovery:(udp://group:port) or discovery:(registry:path)"
        )
    try:
        return of_program(found)
    except ValueError as error:
        raise InvalidArgument(f"{found}: expected {error}") from None
