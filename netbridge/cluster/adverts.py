"""What the lives of a cluster tell each other of their queues and bindings, as one of them does it.

Each live asks each other one: what is there after the version that I have seen?  The answer comes
when there is something, and is followed by the next question.  So a newcomer reads everything, page
by page, others read what has changed, and many changes while an answer is on its way are one.  A
link that is made again goes on where the former one was lost.  Of a live without a link its next
neighbour on the way there is asked, which tells what it has read itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from shmbroker.netbridge.cluster.advert import Advert, Binding, Queue
from shmbroker.netbridge.cluster.board import Board
from shmbroker.netbridge.cluster.said import Announcement, Ask, Link, Say, Told
from shmbroker.netbridge.election.question import Node

NOBODY = bytes(16)
"""The incarnation of a board of which nothing was seen."""


@dataclass(slots=True)
class Copy:
    """Of the board of another live."""

    queues: dict[str, Queue] = field(default_factory=dict)
    bindings: set[Binding] = field(default_factory=set)

    def copied(self) -> Copy:
        """As it is now."""
        return Copy(dict(self.queues), set(self.bindings))

    def takes(self, told: Told) -> None:
        self.queues.update((each.name, each) for each in told.queues)
        self.bindings.update(told.bindings)
        for name in told.gone_queues:
            self.queues.pop(name, None)
        self.bindings.difference_update(told.gone_bindings)


@dataclass(slots=True)
class _Reading:
    """How far the board of another live was seen."""

    incarnation: bytes = NOBODY
    version: int = 0
    whole: Copy = field(default_factory=Copy)
    coming: Copy | None = None
    """Read anew, and not whole yet."""
    was_whole: bool = False

    def takes(self, told: Told) -> None:
        if told.is_anew:
            self.coming = Copy()
        (self.coming or self.whole).takes(told)
        self.incarnation, self.version = told.incarnation, told.until
        if self.coming is not None and told.until == told.latest:
            self.whole, self.coming, self.was_whole = self.coming, None, True

    def ask(self, of: Node = b"") -> Ask:
        return Ask(self.incarnation, self.version, of)


@dataclass(slots=True)
class _Relay:
    """What others are told of the board of another live."""

    board: Board
    seen: tuple[bytes, int] = NOBODY, 0

    def page(self, reading: _Reading, asked: Ask) -> Told | None:
        seen = reading.incarnation, reading.version
        if reading.coming is None and self.seen != seen:
            self.board.shows([*reading.whole.queues.values(), *reading.whole.bindings])
            self.seen = seen
        return self.board.page(asked)


class Adverts:
    def __init__(self, incarnation: bytes, *, tells: bool = True) -> None:
        """`tells`: False, if others are to know of nothing here."""
        self.board = Board(incarnation)
        """Our own."""
        self._told = self.board if tells else Board(incarnation)
        """What others read of it."""
        self._readings: dict[Node, _Reading] = {}
        self._asked: dict[Node, Link] = {}
        """Over which link each live is asked."""
        self._there: dict[Link, Announcement] = {}
        self._beyond: dict[Node, Link] = {}
        """Lives without a link, and over which one they are asked."""
        self._relays: dict[Node, _Relay] = {}
        self._waits: dict[tuple[Link, Node], Ask] = {}
        """Questions to us, until there is an answer."""
        self._has_looked = False

    def of(self, node: Node) -> Copy:
        """What this live has told; what it told last, while it is missing."""
        reading = self._readings.get(node)
        return Copy() if reading is None else reading.whole

    def is_read(self, node: Node) -> bool:
        """`of` has all that this live told once; else it is not known yet what it wants."""
        reading = self._readings.get(node)
        return reading is not None and reading.was_whole

    @property
    def known(self) -> tuple[tuple[Node, bytes, int], ...]:
        """How far the board of each live was seen: another answer if `of` may have one."""
        return tuple(
            (node, each.incarnation, each.version) for node, each in self._readings.items()
        )

    def shows(self, adverts: Iterable[Advert]) -> Iterator[Say]:
        """All that this broker has now."""
        is_first, self._has_looked = not self._has_looked, True
        if self.board.shows(adverts) or is_first:
            yield from self._answers(b"")

    def hides(self) -> None:
        """It serves no more.  What it has told stands until this node tells anew, as a live."""
        self._has_looked = False

    def links(
        self, there: Mapping[Link, Announcement], beyond: Mapping[Node, Link]
    ) -> Iterator[Say]:
        """Those that lead to lives: one of each is asked.

        `beyond`: lives without a link, and that to the next neighbour on the way there.
        """
        self._there, self._beyond = dict(there), dict(beyond)
        for node, link in list(self._asked.items()):
            is_direct = link in there and there[link].node == node
            if not is_direct and beyond.get(node) != link:
                del self._asked[node]
        for link, live in there.items():
            yield from self._ask(live.node, link)
        for node, link in beyond.items():
            yield from self._ask(node, link)

    def _ask(self, node: Node, link: Link) -> Iterator[Say]:
        if node not in self._asked:
            self._asked[node] = link
            yield Say(link, self._reading(node).ask(node if node in self._beyond else b""))

    def down(self, link: Link) -> None:
        self._waits = {key: asked for key, asked in self._waits.items() if key[0] != link}

    def forget(self, node: Node) -> None:
        self._readings.pop(node, None)
        self._relays.pop(node, None)
        self._asked.pop(node, None)

    def heard(self, link: Link, what: Ask | Told) -> Iterator[Say]:
        if isinstance(what, Ask):
            self._waits[link, what.of] = what
            yield from self._answers(what.of)
            return
        live = self._there.get(link)
        node = what.of or (live.node if live is not None else b"")
        if live is None or self._asked.get(node) != link:
            return  # it was asked, and is no live any more, or not on the way any more
        reading = self._reading(node)
        reading.takes(what)
        yield Say(link, reading.ask(what.of))
        yield from self._answers(node)

    def _reading(self, node: Node) -> _Reading:
        return self._readings.setdefault(node, _Reading())

    def _answers(self, of: Node) -> Iterator[Say]:
        """To those that ask for this board, our own or one that was read.

        Not before it knows what it has: a board that is empty yet would take back what the
        former process of this node has told, and messages would not come until the next answer.
        So it is with what it has read of others."""
        for (link, wanted), asked in list(self._waits.items()):
            page = self._page(of, asked) if wanted == of else None
            if page is not None:
                del self._waits[link, of]
                yield Say(link, replace(page, of=of))

    def _page(self, of: Node, asked: Ask) -> Told | None:
        if not of:
            return self._told.page(asked) if self._has_looked else None
        if not self.is_read(of):
            return None
        relay = self._relays.setdefault(of, _Relay(Board(self.board.incarnation)))
        return relay.page(self._readings[of], asked)
