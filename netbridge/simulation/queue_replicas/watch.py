"""Sees all brokers at once, and what must be true of replicas.

Each change of the originals makes a version of them.  A replica shows what its queue was in one
version, but for messages that were taken singly before they were copied; all that are shown
together show one version, at which no transaction stood half way.  Versions never go back, and what
was detached takes nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.queue_replica.action import Begin
from shmbroker.netbridge.queue_replica.told import Chain, Follow
from shmbroker.netbridge.queue_replica.waited import NONE
from shmbroker.netbridge.simulation.queue_replicas.memory import Memory
from shmbroker.netbridge.simulation.queue_replicas.queue import NO_VERSION, PART, Queue
from shmbroker.netbridge.simulation.world import Wrong

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.queue_replicas.broker import Broker
    from shmbroker.netbridge.simulation.queue_replicas.follower import Follower

ORIGINALS: Final = "a"
NAMES: Final = ("first", "second", "third")
"""Of the queues of programs."""
Version = dict[str, dict[int, int]]
Place = tuple[str, str]
"""A broker and a queue."""


class Watch:
    def __init__(self, memories: dict[str, Memory], kill: Callable[[Broker], None]) -> None:
        self._memories, self.kills = memories, kill
        self._versions: list[Version] = []
        self._halves: set[int] = set()
        """Versions in which a transaction stood half way."""
        self.singly: set[int] = set()
        """Messages that were taken, or expired, outside of transactions."""
        self._numbers: dict[tuple[bytes, int], int] = {}
        """By queue and position, what was published there last."""
        self._vectors: dict[str, list[dict[str, int]]] = {}
        """By broker, which versions its replicas have shown together."""
        self._last: dict[Place, int] = {}
        self._shown_below: dict[bytes, int] = {}
        """By the identity of an original."""
        self._told_shown: dict[bytes, int] = {}
        """By the identity of a durable replica: up to where it said that it is on disk."""
        self._detached: dict[Place, tuple[Queue, dict[int, int]]] = {}
        self.excused: set[Place] = set()
        """Followed by difference, where the original has other messages at the same positions: of a
        store that was replaced by an older copy nobody can know it."""
        self.confirmed = self.unwaited = 0
        self.moments = self.resumed = self.begun = self.saved = self.anew = self.kept = 0

    # --- originals ----------------------------------------------------------------------------

    def published(self, queue: Queue, number: int) -> None:
        self._numbers[queue.identity, queue.tail] = number

    def changes(self) -> None:
        """Of the originals."""
        memory = self._memories[ORIGINALS]
        if memory.under_way:
            self._halves.add(len(self._versions))
        for queue in memory.queues.values():
            if queue.follows is None:
                queue.version = len(self._versions)
        self._versions.append({name: memory.content(each) for name, each in memory.queues.items()})

    def shows_others(self, name: str) -> None:
        """A broker with replicas has changed."""
        queues = self._memories[name].queues
        self._vectors.setdefault(name, []).append({each: q.version for each, q in queues.items()})

    # --- replicas -----------------------------------------------------------------------------

    def begins(self, of: Broker, other: str, queue: Queue, wish: Follow, begins: int) -> None:
        theirs = self._memories[other].queues.get(queue.name)
        if wish.identity != queue.identity or begins != wish.next or theirs is None:
            return
        self.resumed += 1
        known = ((self._numbers.get((queue.identity, at)), n) for at, n in theirs.content.items())
        if of.name == ORIGINALS and any(real != number for real, number in known):
            self.excused.add((other, queue.name))

    def follows(self, broker: Broker, chain: Chain) -> None:
        if any(each.node == broker.node for each in chain):
            raise Wrong(f"{broker.name} begins to follow itself: {[each.name for each in chain]}")

    def replaces(self, broker: Broker, former: Queue, action: Begin) -> None:
        """A queue is empty, and a replica from now on."""
        self.begun += 1
        self.saved += action.saves
        source, name = former.follows, f"{former.name} of {broker.name}"
        if source is None or source.identity != action.identity:
            if not action.saves:
                raise Wrong(f"what was in {name} is nowhere any more")
        elif action.identity not in self._memories[source.plan].has_lost:
            raise Wrong(f"{name} is emptied, and could go on")
        else:
            self.anew += 1
        if (broker.name, former.name) in self.excused:  # who follows it may show it yet
            self.excused |= set(self._that_follow(former))
        self.excused.discard((broker.name, former.name))

    def _that_follow(self, queue: Queue) -> Iterable[Place]:
        for name, memory in self._memories.items():
            there = memory.queues.get(queue.name)
            if there and there.follows and there.follows.identity == queue.identity:
                yield name, queue.name

    def shown(self, broker: Broker, follower: Follower, versions: dict[int, int]) -> None:
        """A moment, of these queues."""
        self.moments += 1
        shown: dict[str, int] = {}
        for number in versions:
            copy = follower.copies.get(number)
            if copy is None or copy.is_stale or copy.queue.name not in NAMES:
                continue
            queue = copy.queue
            self._is_a_version(broker, queue)
            if copy.why:
                continue
            shown[queue.name] = queue.version
            if queue.follows is not None:
                below = self._shown_below.get(queue.follows.identity, 0)
                self._shown_below[queue.follows.identity] = max(below, copy.end)
        self._are_together(broker, follower.of, shown)
        broker.memory.changed()

    def _is_a_version(self, broker: Broker, queue: Queue) -> None:
        place, version = (broker.name, queue.name), queue.version
        if queue.follows is not None and (queue.follows.plan, queue.name) in self.excused:
            self.excused.add(place)
        if version == PART or place in self.excused:
            return
        name = f"{queue.name} of {broker.name}"
        if 0 <= version < self._last.get(place, NO_VERSION):
            raise Wrong(f"{name} goes back: version {version} after {self._last[place]}")
        self._last[place] = version
        there = self._versions[version].get(queue.name, {}) if version >= 0 else {}
        here = queue.content
        if not here.items() <= there.items():
            more = sorted(here.items() - there.items())
            raise Wrong(f"{name} has {more}, which version {version} has not: {there}")
        missing = {number for at, number in there.items() if at not in here} - self.singly
        if missing:
            raise Wrong(f"{name} lacks {sorted(missing)} of version {version}: {there}")

    def _are_together(self, broker: Broker, of: str, shown: dict[str, int]) -> None:
        halves = set(shown.values()) & self._halves
        if halves:
            raise Wrong(f"{broker.name} shows versions {halves}, half of a transaction")
        if PART in shown.values():
            return
        if of == ORIGINALS:
            is_one = len(set(shown.values())) < 2
        else:
            vectors = reversed(self._vectors.get(of, []))
            is_one = not shown or any(shown.items() <= each.items() for each in vectors)
        if not is_one:
            raise Wrong(f"{broker.name} shows several versions together: {shown}")

    def tells_shown(self, queues: Iterable[Queue]) -> None:
        self._told_shown.update((each.identity, each.tail) for each in queues if each.is_durable)

    def loses_power(self, name: str, former: list[Queue]) -> None:
        """What its replicas have is older; what they said that they have is there."""
        self._last.clear()
        there = {each.identity: each for each in self._memories[name].queues.values()}
        for queue in former:
            below, kept = self._told_shown.get(queue.identity, 0), there.get(queue.identity)
            if below > (0 if kept is None else kept.tail):
                raise Wrong(f"{queue.name} of {name} has lost what it said that it has: {below}")
            self.kept += below > 0

    def detached(self, broker: Broker, queue: Queue) -> None:
        self._detached[broker.name, queue.name] = queue, queue.content

    # --- confirms -----------------------------------------------------------------------------

    def confirms(self, broker: Broker, identity: bytes, below: int) -> None:
        """Those who wait for replicas are told."""
        shown = self._shown_below.get(identity, 0)
        self.confirmed += below != NONE
        self.unwaited += below == NONE
        if below != NONE and below > shown:
            raise Wrong(f"{broker.name} confirms below {below}, and replicas show below {shown}")

    # --- whatever happens ---------------------------------------------------------------------

    def check(self) -> None:
        for (name, _), (queue, content) in self._detached.items():
            if queue.follows is None and queue.content != content:
                raise Wrong(f"{queue.name} of {name} is detached, and has changed")
