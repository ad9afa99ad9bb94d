"""Who is in a cluster, as one of its members knows it: events and a time in, actions out.

A member tells each link who it is, which other lives it has links to and which were forgotten.
What is new to it, it tells on.  So whoever reaches one member learns all of them.  Of each node the
live with the highest (epoch, version) counts, and its backups by their names.  What the lives have
of queues they tell each other directly (`adverts.py`), or along a chain (`paths.py`).

Two processes that have one node id and are no members of one group are a copied store: the one
that was there first stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final
from zlib import crc32

from shmbroker.netbridge.cluster.advert import Advert
from shmbroker.netbridge.cluster.adverts import Adverts
from shmbroker.netbridge.cluster.paths import Path, paths
from shmbroker.netbridge.cluster.said import (
    Announcement,
    Ask,
    Forgotten,
    Here,
    Known,
    Left,
    Link,
    Said,
    Say,
    Told,
)
from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.election.threshold import Quorum

NEVER: Final = float("inf")
NEIGHBOURS_MAX: Final = 255
"""That a member of a chain tells of."""
TWICE_SECONDS: Final = 2.0
"""Two processes of one node for so long are no takeover, but a copied store."""
LATE_SECONDS: Final = 0.5
"""Who looks so much later was paused."""
BEGINS_MIN: Final = 8
"""Digits of an id that name a node: fewer may be a name, of one that is known no more."""
UNKNOWN: Final = 0
"""An epoch that no live has: whoever forgets a node by command did not know of its live."""


@dataclass(frozen=True, slots=True)
class Line:
    """Of the log."""

    level: str
    state: str
    detail: str
    node: Node = b""


@dataclass(frozen=True, slots=True)
class KeepLives:
    """The largest number of lives ever seen has changed, or who was counted off."""

    quorum: Quorum


@dataclass(frozen=True, slots=True)
class KeepLeft:
    """`left` has changed."""


Action = Say | Line | KeepLives | KeepLeft
Actions = Iterator[Action]


@dataclass(frozen=True, slots=True)
class Terms:
    """Times in seconds."""

    name: str
    uri: str
    """Our own connector."""
    group: tuple[str, ...]
    statics: tuple[str, ...]
    learns: bool = True
    """False: `allow-direct-connections-only`."""
    hops: int = 1
    """How far messages go; through others only where nobody connects to what it learns."""
    interval: float = 1.0
    """`notification-interval`."""
    attempts: int = 2
    """`notification-attempts`."""
    programs: str = ""
    """Where programs reach us; empty if they do not."""

    @property
    def is_chain(self) -> bool:
        return self.hops > 0 and not self.learns


@dataclass(slots=True)
class _Repeat:
    due: float
    left: int


class Membership:
    def __init__(
        self, terms: Terms, incarnation: bytes, quorum: Quorum, left: Iterable[Left] = ()
    ) -> None:
        """`left`: as it was kept."""
        self.terms = terms
        self.quorum = quorum
        self.me: Announcement | None = None
        """None: it does not know its node yet, and says nothing of itself."""
        self.lives: dict[Node, Announcement] = {}
        """Of other nodes."""
        self.backups: dict[tuple[Node, str], Announcement] = {}
        """By node and name; of its own node, too."""
        self.present: dict[Link, Announcement | None] = {}
        """Who is at the other end of each link, if it has said so."""
        self._here_now: Counter[bytes] = Counter()
        """Links to each process, by its incarnation: asked for so often that it is kept."""
        self.left: dict[Node, Left] = {each.node: each for each in left}
        """Nodes that were scaled down; they may be back since, with a higher epoch."""
        self.forgotten: dict[Node, int] = {each.node: each.epoch for each in self.left.values()}
        """Up to which epoch."""
        self._digest = _digest(self.forgotten)
        self.paths: dict[Node, Path] = {}
        """In a chain, to all lives that can be reached."""
        self.found: frozenset[str] = frozenset()
        """Uris of lives that discovery has found, as long as it does or somebody is there."""
        self.adverts = Adverts(incarnation, tells=terms.hops > 0)
        """What the lives tell each other of their queues.  One that takes no messages of others has
        none for them."""
        self._claims: dict[tuple[Node, str], tuple[int, int]] = {}
        """How many lives each of the others has seen since it was started, and the digest of what
        it knew to be forgotten, by node and name: one that was not restarted remembers those that
        are gone, and its backup may be a new one."""
        self._incarnation = incarnation
        self._repeats: dict[Link, _Repeat] = {}
        self._twice: dict[bytes, float] = {}
        """Since when a second process of a node is there, by its incarnation."""
        self._warned: set[bytes] = set()
        self._missing: set[Node] = set()
        """Lives that were at the end of a link, and are no more."""
        self._owed: dict[Link, set[Node]] = {}
        """Lives that were not there when this link came: it is told of them once they are."""

    # --- what happens -------------------------------------------------------------------------

    def becomes(self, node: Node, epoch: int, *, is_live: bool) -> Actions:
        """What this broker is from now on."""
        if not is_live:
            self.adverts.hides()
        version = self.me.version + 1 if self.me is not None else 1
        terms = self.terms
        self.me = Announcement(
            node, self._incarnation, epoch, version, terms.name, terms.uri, is_live, terms.group,
            terms.programs,
        )  # fmt: skip
        self.lives.pop(node, None)
        self.adverts.forget(node)
        yield from self._count()
        yield from self._to_all(self._here)
        yield from self._asks()

    def departs(self, to: Node) -> Actions:
        """This live leaves, and gives all that it has to that node."""
        assert self.me is not None, "it is a member"
        yield from self.tells(replace(self.me, heir=to))

    def tells(self, me: Announcement) -> Actions:
        self.me = replace(me, version=me.version + 1)
        yield from self._to_all(self._here)

    def shows(self, adverts: Iterable[Advert]) -> Actions:
        """All queues and bindings that this broker has now, as others are to know them."""
        yield from self.adverts.shows(adverts)

    def finds(self, uris: Iterable[str]) -> None:
        """By discovery, all that it knows now: first contacts, as the static connectors are."""
        there = {each.uri for each in self.present.values() if each is not None}
        self.found = frozenset(uris) | (self.found & there)

    def up(self, link: Link, now: float) -> Actions:
        self.present[link] = None
        self._owed[link] = {node for node in self.lives if not self.is_there(node)}
        for left in self.left.values():
            yield Say(link, left)
        for node, epoch in self.forgotten.items():
            yield Say(link, Forgotten(node, epoch))
        for node, each in self.lives.items():
            # who is gone is remembered by those that have seen it
            if self.is_there(node) or node in self.paths:
                yield Say(link, Known(each))
        if self.me is not None:
            self._repeats[link] = _Repeat(now + self.terms.interval, self.terms.attempts)
            yield Say(link, self._here)

    def down(self, link: Link, now: float) -> Actions:
        self.adverts.down(link)
        yield from self._parted(link, now)
        yield from self._asks()

    def _parted(self, link: Link, now: float) -> Actions:
        gone = self._is_at(link, None)
        self.present.pop(link, None)
        self._repeats.pop(link, None)
        self._owed.pop(link, None)
        if gone is None or gone.incarnation in self._here_now:
            return
        self._twice.pop(gone.incarnation, None)
        if not gone.is_live:
            self.backups.pop((gone.node, gone.name), None)
        elif (left := self.left.get(gone.node)) and gone.epoch <= left.epoch:
            self._claims.pop((gone.node, gone.name), None)
            yield from self._drops(gone.node, left.epoch)
            if self.me is not None:
                yield from self._to_all(self._here)  # it counts fewer
        elif (known := self.lives.get(gone.node)) and known.incarnation == gone.incarnation:
            self._missing.add(gone.node)
            yield Line("warning", "missing", f"{gone.name} at {gone.uri}", gone.node)
        for each in list(self.present.values()):  # one that had to wait for it
            if each is not None and each.node == gone.node:
                yield from self._met(each, now)

    def heard(self, link: Link, what: Said, now: float) -> Actions:
        if isinstance(what, (Ask, Told)):
            yield from self.adverts.heard(link, what)
            return
        yield from self._heard(link, what, now)
        yield from self._asks()

    def _heard(self, link: Link, what: Here | Known | Forgotten | Left, now: float) -> Actions:
        if isinstance(what, Left):
            yield from self.leaves(what, link)
        elif isinstance(what, Forgotten):
            epoch = self._up_to(what, link)
            yield from self._forgets(what.node, epoch, link if epoch == what.epoch else None)
        elif isinstance(what, Known):
            yield from self._learned(what.of, link, now, is_direct=False)
        else:
            self._is_at(link, what.me)
            yield from self._learned(what.me, link, now, is_direct=True)
            self._claims[what.me.node, what.me.name] = what.lives, what.forgets

    def named(self, name: str, others: Iterable[Node] = ()) -> Node | str:
        """By its id, the beginning of it or its name; a text says why it is none.

        `others`: of which only the ids are known."""
        known = {(node, "") for node in others} | self._claims.keys()
        known |= {(node, each.name) for node, each in self.lives.items()}
        nodes = sorted({node for node, of in known if name and name in (of, node.hex())})
        if not nodes and len(name) >= BEGINS_MIN:
            nodes = sorted({node for node, _ in known if node.hex().startswith(name.lower())})
        if len(nodes) > 1:
            return f"{name!r} may be {' or '.join(each.hex() for each in nodes)}"
        if not nodes:
            return f"there is no node {name!r} in this cluster, or it is this broker's own"
        return nodes[0]

    def forget(self, node: Node, others: Container[Node] = ()) -> str:
        """By command, which `forgets` carries out; why it may not be, or nothing."""
        if self.me is not None and node == self.me.node:
            return "it is this broker's own node"
        if node not in self.lives:
            is_counted = node in others or any(each == node for each, _ in self._claims)
            return "" if is_counted else f"there is no node {node.hex()} in this cluster"
        if self.is_there(node) or node in self.paths:
            return f"{self.lives[node].name} is there: stop it first"
        return ""

    def forgets(self, node: Node) -> Actions:
        """Also one of which only a backup was met: it counts with what that has told."""
        known = self.lives.get(node)
        epoch = known.epoch if known is not None else UNKNOWN
        yield from self._forgets(node, max(epoch, self.forgotten.get(node, UNKNOWN)), None)

    def leaves(self, left: Left, link: Link | None = None) -> Actions:
        """A node, perhaps this one, was scaled down."""
        known = self.left.get(left.node)
        if known is not None and left.epoch <= known.epoch:
            return
        self.left[left.node] = left
        yield KeepLeft()
        for each in self.present:
            if each != link:
                yield Say(each, left)
        if self.me is None or left.node != self.me.node:
            if left.epoch > self.forgotten.get(left.node, -1):
                yield from self._forgets(left.node, left.epoch, link)
            else:
                yield from self._drops(left.node, left.epoch)

    def heir(self, node: Node) -> Node | None:
        """Who has what this node has had: itself, if it is live; None: nobody that is known."""
        own = None if self.me is None else self.me.node
        seen: set[Node] = set()
        while node not in self.lives and node != own:
            if node in seen or node not in self.left:
                return None
            seen.add(node)
            node = self.left[node].to
        return node

    def waits_for_heir(self, node: Node) -> bool:
        """It was scaled down, and who has what it has had is not met yet."""
        seen: set[Node] = set()
        end = node
        while end in self.left and end not in seen:
            seen.add(end)
            end = self.left[end].to
        return node in self.left and self.heir(node) is None and end not in self.forgotten

    @property
    def orphans(self) -> frozenset[Node]:
        """Forgotten by command, also since they were back: nobody has what was for them."""
        own = set() if self.me is None else {self.me.node}
        return frozenset(
            node
            for node in self.forgotten.keys() - self.lives.keys() - own
            if node not in self.left or self.forgotten[node] > self.left[node].epoch
        )

    def tick(self, now: float) -> Actions:
        for link, repeat in list(self._repeats.items()):
            if now >= repeat.due and self.me is not None:
                repeat.due, repeat.left = now + self.terms.interval, repeat.left - 1
                if repeat.left <= 0:
                    del self._repeats[link]
                yield Say(link, self._here)
        for incarnation, since in list(self._twice.items()):
            if incarnation in self._warned or now < since + TWICE_SECONDS:
                continue
            if now >= since + TWICE_SECONDS + LATE_SECONDS:
                self._twice[incarnation] = now  # it was paused, and has yet to hear who is gone
            else:
                yield from self._warn(incarnation)

    @property
    def deadline(self) -> float:
        due = [each.due for each in self._repeats.values()]
        due += [
            since + TWICE_SECONDS
            for incarnation, since in self._twice.items()
            if incarnation not in self._warned
        ]
        return min(due, default=NEVER)

    # --- what is true -------------------------------------------------------------------------

    @property
    def wanted(self) -> frozenset[str]:
        """Uris to which links are to be."""
        learned = {each.uri for each in self.lives.values()} if self.terms.learns else set()
        return frozenset(learned.union(self.terms.statics, self.found) - {self.terms.uri})

    @property
    def count(self) -> Quorum:
        """With what was told by those that know of the same forgotten nodes."""
        told = [lives for lives, digest in self._claims.values() if digest == self._digest]
        return self.quorum.told(max(told, default=1))

    @property
    def electorate(self) -> Electorate:
        """The other lives; the same broker of a node, or its successor, is the same voter."""
        voters = tuple(sorted(node.hex() for node in self.lives))
        return Electorate(voters, self.count.needed)

    def is_there(self, node: Node) -> bool:
        """Its live is at the other end of some link."""
        live = self.lives.get(node)
        return live is not None and live.incarnation in self._here_now

    @property
    def there(self) -> list[Announcement]:
        """Lives of which that holds."""
        return [each for node, each in self.lives.items() if self.is_there(node)]

    def live_at(self, link: Link) -> Announcement | None:
        """The live that is at the other end, if it is the one that counts of its node."""
        at = self.present[link]
        live = None if at is None else self.lives.get(at.node)
        return live if at and live and live.incarnation == at.incarnation else None

    def parted_by(self, link: Link) -> bytes:
        """The process to which there is no other link than this one; empty: there is one, or it has
        not said who it is."""
        at = self.present[link]
        return at.incarnation if at is not None and self._here_now[at.incarnation] == 1 else b""

    def next_hop(self, node: Node) -> Node | None:
        """Over whose link messages for this live go; None: there is no way there now."""
        if not self.terms.is_chain or self.is_there(node):
            return node
        path = self.paths.get(node)
        return None if path is None or path.hops > self.terms.hops else path.first

    @property
    def can_vote(self) -> bool:
        """So many voters are there as a vote needs."""
        return sum(self.is_there(node) for node in self.lives) >= self.count.needed

    @property
    def duplicates(self) -> list[Announcement]:
        """Of which a warning was given, and that are there still."""
        found = {each.incarnation: each for each in self.present.values() if each is not None}
        return [each for each in found.values() if each.incarnation in self._warned]

    def _is_at(self, link: Link, who: Announcement | None) -> Announcement | None:
        """At the other end of this link, from now on; who was before."""
        former = self.present.get(link)
        if former is not None:
            self._here_now[former.incarnation] -= 1
            if not self._here_now[former.incarnation]:
                del self._here_now[former.incarnation]
        if who is not None:
            self._here_now[who.incarnation] += 1
        self.present[link] = who
        return former

    @property
    def _here(self) -> Here:
        assert self.me is not None
        return Here(self.me, self.quorum.seen_max, self._digest)

    # --- what it learns -----------------------------------------------------------------------

    def _learned(self, of: Announcement, link: Link, now: float, *, is_direct: bool) -> Actions:
        """What was forgotten comes back by itself, and not by hearsay."""
        if of.incarnation == self._incarnation:
            return
        if is_direct:
            yield from self._met(of, now, link)
        elif of.epoch > self.forgotten.get(of.node, -1) and of.is_live and not self._is_twice(of):
            yield from self._takes(of, link)

    def _met(self, of: Announcement, now: float, link: Link | None = None) -> Actions:
        if self._is_twice(of):
            self._twice.setdefault(of.incarnation, now)
            return
        self._twice.pop(of.incarnation, None)
        self._warned.discard(of.incarnation)
        if of.is_live:
            yield from self._takes(of, link)
            yield from self._tells_owed(of.node)
        else:
            self.backups[of.node, of.name] = of
        if of.is_live and of.node in self._missing and self.is_there(of.node):
            self._missing.discard(of.node)
            yield Line("info", "back", f"{of.name} at {of.uri}", of.node)

    def _is_twice(self, of: Announcement) -> bool:
        """Another process has this node id, is there, and is of another group."""
        if not of.is_live:
            return False
        former = self._holder_of(of.node)
        if former is None or former.incarnation == of.incarnation:
            return False
        is_own = former is self.me
        if not is_own and former.incarnation not in self._here_now:
            return False
        is_of_one = of.name in former.group or former.name in of.group
        return former.name == of.name or not is_of_one

    def _holder_of(self, node: Node) -> Announcement | None:
        if self.me is not None and self.me.node == node and self.me.is_live:
            return self.me
        return self.lives.get(node)

    def _warn(self, incarnation: bytes) -> Actions:
        self._warned.add(incarnation)
        second = next(
            (each for each in self.present.values() if each and each.incarnation == incarnation),
            None,
        )
        first = None if second is None else self._holder_of(second.node)
        if second is not None and first is not None:
            detail = (
                f"{first.name} at {first.uri} and {second.name} at {second.uri} have node id "
                f"{second.node.hex()}: the store of one is a copy"
            )
            yield Line("warning", "duplicate id", detail, second.node)

    def _takes(self, of: Announcement, link: Link | None) -> Actions:
        """A live; it is told on, if it is new.  That of our own node is no other life."""
        known = self.lives.get(of.node)
        is_ours = self.me is not None and of.node == self.me.node
        if is_ours or (known is not None and of.age <= known.age):
            return
        self.lives[of.node] = of
        self.backups.pop((of.node, of.name), None)
        if known is None:
            yield Line("info", "joined", f"{of.name} at {of.uri}", of.node)
        elif known.incarnation != of.incarnation:
            yield Line("info", "moved", f"{of.name} at {of.uri}, epoch {of.epoch}", of.node)
        yield from self._count()
        for each in self.present:
            if each != link:
                yield Say(each, Known(of))

    def _tells_owed(self, node: Node) -> Actions:
        """A backup has no other way to hear of a live that was away when it came here."""
        if not self.is_there(node):
            return
        for link, owed in self._owed.items():
            if node in owed:
                owed.discard(node)
                yield Say(link, Known(self.lives[node]))

    def _count(self) -> Actions:
        nodes = {node.hex() for node in self.lives}
        if self.me is not None:
            nodes.add(self.me.node.hex())
        former, self.quorum = self.quorum.seen_max, self.quorum.sees(nodes)
        if self.quorum.seen_max != former:
            yield KeepLives(self.quorum)
            if self.me is not None:
                yield from self._to_all(self._here)

    def _up_to(self, what: Forgotten, link: Link) -> int:
        """Of a command at one that did not know of its live: up to which epoch is known here.  What
        is said before it is said who comes is of long ago, and the node may have been back since.
        """
        known = self.lives.get(what.node)
        is_asked = what.epoch == UNKNOWN and what.node not in self.forgotten
        if not is_asked or known is None or self.present[link] is None:
            return what.epoch
        is_gone = not self.is_there(what.node) and what.node not in self.paths
        return known.epoch if is_gone else what.epoch

    def _forgets(self, node: Node, epoch: int, link: Link | None) -> Actions:
        if epoch > self.forgotten.get(node, -1):
            self.forgotten[node] = epoch
            self._digest = _digest(self.forgotten)
        elif link is not None:
            return  # by command: it may have been there when another one forgot it
        here = {(at.node, at.name) for at in self.present.values() if at is not None}
        for who in self._claims.keys() - here:
            if who[0] == node:
                del self._claims[who]
        yield from self._drops(node, epoch)
        known = self.lives.get(node)
        if known is not None and known.epoch > epoch and link is not None:
            # whoever gave the command did not know of this one, which counts
            yield Say(link, Known(known))
        for each in self.present:
            if each != link:
                yield Say(each, Forgotten(node, epoch))
        if self.me is not None:
            yield from self._to_all(self._here)

    def _drops(self, node: Node, epoch: int) -> Actions:
        known = self.lives.get(node)
        if known is not None and known.epoch <= epoch and not self.is_there(node):
            del self.lives[node]
            self.adverts.forget(node)
            self._missing.discard(node)
            state = "left" if node in self.left else "forgotten"
            yield Line("info", state, f"{known.name} at {known.uri}", node)
        if node not in self.lives and (self.me is None or self.me.node != node):
            former, self.quorum = self.quorum, self.quorum.forgets(node.hex())
            if self.quorum != former:
                yield KeepLives(self.quorum)

    def _asks(self) -> Actions:
        """A live asks the others for what they have, of which one it has links to."""
        yield from self._looks_around()
        there: dict[Link, Announcement] = {}
        if self.me is not None and self.me.is_live:
            lives = {link: self.live_at(link) for link in self.present}
            there = {link: live for link, live in lives.items() if live is not None}
        ways = {live.node: link for link, live in reversed(there.items())}
        firsts = {node: self.next_hop(node) for node in self.paths if node not in ways}
        beyond = {node: ways[first] for node, first in firsts.items() if first and first in ways}
        yield from self.adverts.links(there, beyond)

    def _looks_around(self) -> Actions:
        """In a chain: whom this live has links to, and whom it reaches by those."""
        me = self.me
        if me is None or not self.terms.is_chain:
            return
        near = tuple(node for node in sorted(self.lives) if self.is_there(node))[:NEIGHBOURS_MAX]
        if me.is_live and near != me.neighbours:
            yield from self.tells(replace(me, neighbours=near))
        found = paths(near, {node: each.neighbours for node, each in self.lives.items()})
        found.pop(me.node, None)
        self.paths = found if me.is_live else {}

    def _to_all(self, what: Said) -> Actions:
        for link in list(self.present):
            yield Say(link, what)


def _digest(forgotten: Mapping[Node, int]) -> int:
    told = sorted(node + epoch.to_bytes(8) for node, epoch in forgotten.items())
    return crc32(b"".join(told))
