"""Members of a cluster in one process, with links; what is said goes through its codec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from shmbroker.netbridge.cluster.advert import Advert
from shmbroker.netbridge.cluster.codec import decode, encode
from shmbroker.netbridge.cluster.machine import Action, Line, Membership, Terms
from shmbroker.netbridge.cluster.said import Said, Say
from shmbroker.netbridge.election.threshold import Quorum


def node_of(name: str) -> bytes:
    return name.encode().ljust(16, b".")


@dataclass
class Town:
    members: dict[str, Membership] = field(default_factory=dict)
    far: dict[tuple[str, int], tuple[str, int]] = field(default_factory=dict)
    """The other end of each link."""
    lines: list[tuple[str, str, str]] = field(default_factory=list)
    """Who has written which state into its log, and what of it."""
    words: list[tuple[str, Said]] = field(default_factory=list)
    """All that was said, and by whom."""
    said: int = 0
    now: float = 0.0
    links: int = 0
    lives: int = 0

    def add(
        self, name: str, *, node: str = "", epoch: int = 1, is_live: bool = True,
        group: tuple[str, ...] = (), uri: str = "", key: str = "", quorum: Quorum | None = None,
        statics: tuple[str, ...] = (), learns: bool = True, programs: str = "", hops: int = 1,
    ) -> Membership:  # fmt: skip
        """`key`: of a second one of this name."""
        key = key or name
        terms = Terms(
            name, uri or f"tcp://{key}:1", group or (name,), statics, learns=learns,
            programs=programs, hops=hops,
        )  # fmt: skip
        self.lives += 1
        made = Membership(terms, self.lives.to_bytes(16), quorum or Quorum())
        self.members[key] = made
        self.does(key, made.becomes(node_of(node or name), epoch, is_live=is_live))
        return made

    def link(self, near: str, far: str) -> int:
        self.links += 1
        number = self.links
        self.far[near, number], self.far[far, number] = (far, number), (near, number)
        said = [(each, list(self.members[each].up(number, self.now))) for each in (near, far)]
        for name, actions in said:
            self.does(name, actions)
        return number

    def meet(self) -> None:
        """All links that are wanted are made."""
        while missing := next(self._missing(), None):
            self.link(*missing)

    def _missing(self) -> Iterator[tuple[str, str]]:
        linked = {(near, far) for (near, _), (far, _) in self.far.items()}
        for near, member in self.members.items():
            for far, other in self.members.items():
                if other.terms.uri in member.wanted and (near, far) not in linked:
                    yield near, far

    def cut(self, number: int) -> None:
        ends = [each for each, link in self.far if link == number]
        for each in ends:
            del self.far[each, number]
        for each in ends:
            if each in self.members:
                self.does(each, self.members[each].down(number, self.now))

    def dies(self, name: str) -> None:
        del self.members[name]
        for number in {link for each, link in self.far if each == name}:
            self.cut(number)

    def later(self, seconds: float) -> None:
        self.now += seconds
        for name, member in list(self.members.items()):
            self.does(name, member.tick(self.now))

    def forget(self, at: str, name: str) -> str:
        member = self.members[at]
        why = member.forget(node_of(name))
        if not why:
            self.does(at, member.forgets(node_of(name)))
        return why

    def does(self, name: str, actions: Iterable[Action]) -> None:
        for action in list(actions):
            if isinstance(action, Say):
                self.said += 1
                assert self.said < 10_000, "they do not stop"
                self.words.append((name, action.what))
                other = self.far.get((name, action.link))
                if other is not None and other[0] in self.members:
                    heard = self.members[other[0]].heard(
                        other[1], decode(encode(action.what)), self.now
                    )
                    self.does(other[0], heard)
            elif isinstance(action, Line):
                self.lines.append((name, action.state, action.detail))

    def shows(self, name: str, *adverts: Advert) -> None:
        """All that this one has."""
        self.does(name, self.members[name].shows(adverts))

    def copied(self, near: str, far: str) -> set[Advert]:
        """What `near` knows of the board of `far`."""
        copy = self.members[near].adverts.of(node_of(far))
        return {*copy.queues.values(), *copy.bindings}

    def knows(self, name: str) -> set[str]:
        return {each.name for each in self.members[name].lives.values()}

    def count(self, name: str) -> tuple[int, int]:
        """Lives as it counts them, and how many of the others have to say yes."""
        quorum = self.members[name].count
        return quorum.lives, quorum.needed

    def states(self, name: str, state: str) -> list[str]:
        return [detail for who, each, detail in self.lines if (who, each) == (name, state)]
