"""What an agent wants of an exchange at another broker: bindings, compared as sets and told.

    wanted   the bindings of users to the exchange here
    told     what the other end was told over the connection that is up; nothing without one

Whenever one of the two may have changed, the difference is told.  So nothing depends on an event:
bindings that were there before, and those that came or went while the link was down, are in the
difference that is told when it is up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shmbroker.netbridge.agent.said import Wanted, Wants
from shmbroker.netbridge.wire.malformed import Malformed

PAGE: Final = 40
"""Bindings of a page: each has at most 448 bytes of key and arguments."""
WANTED_MAX: Final = 10_000
"""Of an exchange: what the other broker has room for beside its own."""


class Asking:
    """The end that wants, of one connection."""

    def __init__(self, hops: int) -> None:
        """`hops`: over so many agents a message may have gone when it is here."""
        self._hops = hops
        self._told: frozenset[Wanted] | None = None
        """None: nothing was said yet."""

    def wants(self, wanted: frozenset[Wanted]) -> list[Wants]:
        told = self._told
        if told == wanted:
            return []
        self._told = wanted
        return [*self._pages(wanted - (told or frozenset()), (told or frozenset()) - wanted)]

    def _pages(self, added: frozenset[Wanted], gone: frozenset[Wanted]) -> Iterator[Wants]:
        """One at least: it has the hops."""
        pages = [*((each, ()) for each in _paged(added)), *(((), each) for each in _paged(gone))]
        pages = pages or [((), ())]
        for number, (more, less) in enumerate(pages, 1):
            yield Wants(self._hops, number == len(pages), more, less)


def _paged(bindings: frozenset[Wanted]) -> list[tuple[Wanted, ...]]:
    ordered = sorted(bindings)
    return [tuple(ordered[at : at + PAGE]) for at in range(0, len(ordered), PAGE)]


class Asked:
    """The end that has the messages, of one connection."""

    def __init__(self) -> None:
        self.hops = 0
        self.wanted: frozenset[Wanted] = frozenset()
        """As far as it was told as a whole."""
        self._coming: set[Wanted] = set()

    def heard(self, what: Wants) -> bool:
        """Whether it is a whole set now.  Malformed: it is more than an exchange may have."""
        self._coming |= set(what.bindings)
        self._coming -= set(what.gone)
        if len(self._coming) > WANTED_MAX:
            raise Malformed(f"{len(self._coming)} bindings are wanted of an exchange")
        if what.is_whole:
            self.hops, self.wanted = what.hops, frozenset(self._coming)
        return what.is_whole
