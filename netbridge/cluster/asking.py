"""A live that wants another one to run its backup: whom it asks, and when again.

All lives that are reached are asked how many they run, and who runs fewest is asked for one more.
Whoever refuses comes behind the others from then on.  A live that says it runs ours already is
taken at its word, so a broker that was started anew needs no second backup.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.cluster.machine import NEVER, Line
from shmbroker.netbridge.cluster.said import Counted, Granted
from shmbroker.netbridge.election.question import Node

SETTLE_SECONDS: Final = 1.0
"""Who was just started reaches one after the other, and one of them may run its backup."""
ANSWER_SECONDS: Final = 30.0
"""Who has not begun a backup by then counts as one that refuses; it may say yes later."""


@dataclass(frozen=True, slots=True)
class Count:
    """Ask this one how many backups it runs."""

    node: Node


@dataclass(frozen=True, slots=True)
class Request:
    """Ask this one to run ours."""

    node: Node
    count: int
    """How many it runs, as far as we know."""


@dataclass(frozen=True, slots=True)
class Release:
    """This one runs ours, and another one does as well: it need not any more."""

    node: Node


Action = Count | Request | Release | Line
Actions = Iterator[Action]


class Asking:
    def __init__(self, retries: int | None, interval: float) -> None:
        """`retries`: after the first refusal; None: for ever."""
        self._retries, self._interval = retries, interval
        self.host: Node | None = None
        """Who runs our backup."""
        self.backup = ""
        """Its name there."""
        self.why = "nobody was asked yet"
        """There is no backup."""
        self.due = NEVER
        self._is_live = False
        self._up: frozenset[Node] = frozenset()
        self._left = retries
        self._refused: list[Node] = []
        """In this order; who has refused last is asked last."""
        self._told: set[tuple[Node, str]] = set()
        """Refusals that are in the log: there is no line for each attempt."""
        self._counts: dict[Node, Counted | None] | None = None
        """While they are counted; None for who has not answered."""
        self._asked: Node | None = None
        """Has been asked for one, and has not answered."""

    # --- what happens -------------------------------------------------------------------------

    def becomes(self, now: float, *, is_live: bool) -> Actions:
        if is_live and not self._is_live:
            self._left, self.due = self._retries, now
            self.why = "nobody was asked yet"
        elif not is_live:
            self.host, self._asked, self._counts, self.due = None, None, None, NEVER
            self.why = "it is not live"
        self._is_live = is_live
        yield from self.tick(now)

    def reaches(
        self, nodes: Collection[Node], now: float, anew: Set[Node] = frozenset()
    ) -> Actions:
        """The other lives to which there are links; `anew`: to these it is another link than
        before, perhaps to another broker of the node, and what was said over the former is lost."""
        came, gone = (set(nodes) - self._up) | anew, (self._up - set(nodes)) | anew
        self._up = frozenset(nodes)
        if not self._is_live:
            return
        for node in sorted(gone):
            yield from self._lost(node, now)
        self._refused = [each for each in self._refused if each not in came]
        if came:
            self._left = self._retries
        is_at_rest = self.host is None and self._asked is None
        for node in sorted(came):
            if self._counts is not None:
                self._counts[node] = None
            if self._counts is not None or not is_at_rest:
                yield Count(node)  # it may run ours
        if came and is_at_rest and self._counts is None:
            self.due = min(self.due, now + min(self._interval, SETTLE_SECONDS))
        yield from self.tick(now)

    def counted(self, node: Node, what: Counted, now: float) -> Actions:
        if not self._is_live:
            return
        if self.host is not None:
            if node != self.host and what.is_yours:
                yield Release(node)
            elif node == self.host and not what.is_yours:
                yield from self._ended(node, "it does not run it any more", now)
            return
        if what.is_yours:
            yield from self._hosted(node, what.backup)
            return
        if self._counts is not None and node in self._counts:
            self._counts[node] = what
            if all(self._counts.values()):
                yield from self._choose(now)

    def answered(self, node: Node, what: Granted, now: float) -> Actions:
        """To a request."""
        if not self._is_live:
            return
        was_asked = node == self._asked
        if was_asked:
            self._asked = None
        if not what.why:
            if self.host not in (None, node):
                yield Release(node)
            elif self.host is None:
                yield from self._hosted(node, what.backup)
            return
        if not was_asked or self.host is not None:
            return
        if what.is_old:
            self.due = now  # with the count of now
            yield from self.tick(now)
            return
        yield from self._refused_by(node, what.why, now)

    def ended(self, node: Node, why: str, now: float) -> Actions:
        """The backup there has ended."""
        if node == self.host:
            yield from self._ended(node, why, now)

    def tick(self, now: float) -> Actions:
        if now < self.due:
            return
        self.due = NEVER
        if self._counts is not None:
            yield from self._choose(now)
        elif self._asked is not None:
            node, self._asked = self._asked, None
            yield from self._refused_by(node, "it has not answered", now)
        elif self._is_live and self.host is None and self._up:
            self._counts = dict.fromkeys(self._up)
            self.due = now + self._interval
            for node in sorted(self._up):
                yield Count(node)
        elif self._is_live and self.host is None and not self._up:
            self.why = "no other live is reached"

    # --- within -------------------------------------------------------------------------------

    def _choose(self, now: float) -> Actions:
        """Of those that have answered."""
        counts, self._counts = self._counts or {}, None
        self.due = NEVER
        there = {node: each for node, each in counts.items() if each is not None}
        able = [node for node, each in there.items() if not each.why]
        if able:
            node = min(able, key=lambda each: (self._rank(each), there[each].count, each))
            self._asked, self.due = node, now + ANSWER_SECONDS
            yield Request(node, there[node].count)
            return
        self.why = "; ".join(sorted({each.why for each in there.values()})) or (
            "no other live has answered")  # fmt: skip
        self._waits(now)

    def _rank(self, node: Node) -> int:
        return self._refused.index(node) + 1 if node in self._refused else 0

    def _refused_by(self, node: Node, why: str, now: float) -> Actions:
        if (node, why) not in self._told:
            self._told.add((node, why))
            yield Line("warning", "backup refused", why, node)
        self.why = why
        self._refuses(node, now)

    def _refuses(self, node: Node, now: float) -> None:
        self._refused = [*(each for each in self._refused if each != node), node]
        self._waits(now)

    def _waits(self, now: float) -> None:
        if self._left is None:
            self.due = now + self._interval
        elif self._left > 0:
            self._left -= 1
            self.due = now + self._interval
        else:
            self.why += "; backup-request-retries are used up"
            self.due = NEVER

    def _hosted(self, node: Node, backup: str) -> Actions:
        self.host, self.backup, self.why = node, backup, ""
        self._asked, self._counts, self.due = None, None, NEVER
        self._refused.clear()
        self._told.clear()
        self._left = self._retries
        yield Line("info", "backup hosted", f"{backup} is our backup", node)

    def _lost(self, node: Node, now: float) -> Actions:
        """The link may be all that is lost: whoever comes back is asked whether it runs ours."""
        if node == self._asked:
            self._asked = None
            self._refuses(node, now)
        if self._counts is not None and self._counts.pop(node, None) is None:
            if all(self._counts.values()):
                yield from self._choose(now)
        if node == self.host:
            yield from self._ended(node, "who hosts it is not reached", now)

    def _ended(self, node: Node, why: str, now: float) -> Actions:
        self.host, self.why = None, why
        self.due = now + self._interval
        yield Line("warning", "backup ended", f"{self.backup}: {why}", node)
