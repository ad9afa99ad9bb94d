"""What this broker wants of the messages of another one: a set of queues, compared and told.

    wanted   the queues here that have consumers and that the patterns allow, and the static ones
    told     what the other end was told over the connection that is up; nothing without one

Whenever one of the two may have changed, the difference is told.  So nothing depends on an event:
a consumer that came or went while the link was down is in the difference that is told at `up`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from shmbroker.ipc.base.pattern import MANY, matches
from shmbroker.netbridge.network.said import Wants

NAMES_MAX: Final = 256
"""Of a page."""
PAGE_BYTES_MAX: Final = 24 << 10
WORD_BYTES: Final = 5
"""Of a name on the wire, beside its text, at most."""


@dataclass(frozen=True, slots=True)
class Here:
    """A queue of this broker."""

    name: str
    is_consumed: bool


@dataclass(frozen=True, slots=True)
class Terms:
    """Of a link."""

    prefetch: int = 1000
    include: tuple[str, ...] = (MANY,)
    include_static: tuple[str, ...] = ()
    """These are wanted, whether somebody consumes here or not."""
    exclude: tuple[str, ...] = ()
    """These win."""
    static_bridge: bool = False
    """Nothing is wanted but what is static."""

    def wants(self, queue: Here) -> bool:
        if _is_any(self.exclude, queue.name):
            return False
        if _is_any(self.include_static, queue.name):
            return True
        on_demand = queue.is_consumed and not self.static_bridge
        return on_demand and _is_any(self.include, queue.name)


class Demand:
    """Of one link, for as many connections as it has."""

    def __init__(self, terms: Terms, *, is_duplex: bool = False) -> None:
        """`is_duplex`: the other end may want messages, too."""
        self._terms, self._is_duplex = terms, is_duplex
        self._wanted: frozenset[str] = frozenset()
        self._told: frozenset[str] | None = None
        """None: there is no connection."""

    @property
    def wanted(self) -> frozenset[str]:
        return self._wanted

    def up(self) -> list[Wants]:
        """Over a new connection."""
        self._told = frozenset()
        return [*self._pages(frozenset())]

    def down(self) -> None:
        self._told = None

    def looks(self, here: Iterable[Here]) -> list[Wants]:
        """At all queues of this broker."""
        self._wanted = frozenset(each.name for each in here if self._terms.wants(each))
        if self._told is None or self._told == self._wanted:
            return []
        return [*self._pages(self._told)]

    def _pages(self, told: frozenset[str]) -> Iterator[Wants]:
        """The first of a connection comes also if nothing is wanted: it has the terms."""
        added = _paged(sorted(self._wanted - told))
        gone = _paged(sorted(told - self._wanted))
        self._told = self._wanted
        pages = [*((each, ()) for each in added), *(((), each) for each in gone)] or [((), ())]
        for number, (queues, without) in enumerate(pages, 1):
            yield Wants(
                self._terms.prefetch, self._is_duplex, number == len(pages), queues, without
            )


def _is_any(patterns: Iterable[str], name: str) -> bool:
    return any(matches(each, name) for each in patterns)


def _paged(names: Iterable[str]) -> list[tuple[str, ...]]:
    pages: list[list[str]] = []
    size = PAGE_BYTES_MAX
    for name in names:
        bytes_ = WORD_BYTES + len(name.encode(errors="replace"))
        if size + bytes_ > PAGE_BYTES_MAX or len(pages[-1]) == NAMES_MAX:
            pages.append([])
            size = 0
        pages[-1].append(name)
        size += bytes_
    return [tuple(each) for each in pages]
