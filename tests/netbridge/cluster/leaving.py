"""Exchanges of a cluster while a node leaves, with the machines of its members: one step at a time,
in an order that a seed draws.

`west` leaves to `east`; `north` publishes, and is started anew at times.  What carries decisions
out is modelled as `netbridge/clustered/` does it: bindings of the cluster's own, which outlive a
process; queues towards nodes, which are shipped in order; and the steps of a departure.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

from shmbroker.netbridge.cluster.advert import Advert, Binding, Queue
from shmbroker.netbridge.cluster.balancing import HERE, TURNS, members
from shmbroker.netbridge.cluster.codec import decode, encode
from shmbroker.netbridge.cluster.machine import Action
from shmbroker.netbridge.cluster.redistribution import Here
from shmbroker.netbridge.cluster.said import Left, Said, Say
from shmbroker.netbridge.cluster.succession import Succession
from shmbroker.netbridge.cluster.topics import Carried, Topics
from shmbroker.netbridge.clustered.messages import settled
from tests.netbridge.cluster.talk import Town, node_of

NEWS = "news"
NAMES = ("east", "north", "west")
HOLDER = {"east": "other", "north": "mine", "west": "old"}
"""The queue of each, bound from the beginning."""
BUSY_STEPS = 400
SLOW = 0.1


class SlowTown(Town):
    """Words arrive when it is drawn, in order on each link."""

    def __init__(self) -> None:
        super().__init__()
        self.coming: dict[tuple[str, int], deque[Said]] = {}

    def does(self, name: str, actions: Iterable[Action]) -> None:
        for action in list(actions):
            other = self.far.get((name, action.link)) if isinstance(action, Say) else None
            if other is not None and isinstance(action, Say):
                heard: Said = decode(encode(action.what))  # type: ignore[assignment]
                self.coming.setdefault(other, deque()).append(heard)

    def arrives(self, at: tuple[str, int]) -> None:
        name, link = at
        what = self.coming[at].popleft()
        if at in self.far and name in self.members:
            self.does(name, self.members[name].heard(link, what, self.now))

    @property
    def waiting(self) -> list[tuple[str, int]]:
        return [at for at, words in self.coming.items() if words]


@dataclass
class Node:
    """What outlives its process, and what does not."""

    name: str
    queues: dict[str, Counter[int]]
    bound: set[str]
    own: frozenset[Carried] = frozenset()
    ways: dict[str, deque[tuple[int, str]]] = field(default_factory=dict)
    """Of each other node: messages, and the queue there; empty: all that are bound."""
    left: dict[bytes, Left] = field(default_factory=dict)
    """Nodes that have left, as its file has them."""
    succession: Succession = field(default_factory=Succession)
    shows_queues: bool = True
    has_programs: bool = True


class World:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.mode = self.random.choice(("off", "on-demand", "strict"))
        self.slow = self.random.choice(NAMES)
        """What this one says takes long."""
        self.town = SlowTown()
        self.nodes = {
            name: Node(name, {HOLDER[name]: Counter()}, {HOLDER[name]},
                       ways={each: deque() for each in NAMES if each != name})
            for name in NAMES
        }  # fmt: skip
        self.published = 0
        self.epochs = dict.fromkeys(NAMES, 0)
        self.listens = True
        self.departure: Iterator[None] | None = None
        for name in NAMES:
            self._starts(name)
        self._settles()
        assert all(len(self._routes(each)) == len(NAMES) for each in self.nodes.values())

    # --- processes ----------------------------------------------------------------------------

    def _starts(self, name: str) -> None:
        self.epochs[name] += 1
        node = self.nodes[name]
        node.succession, node.shows_queues = Succession(), True
        machine = self.town.add(name, epoch=self.epochs[name])
        machine.left |= node.left
        machine.forgotten |= {each: left.epoch for each, left in node.left.items()}
        for other in NAMES:
            if other != name and other in self.town.members:
                self.town.link(name, other)
        self._look(node)

    def _dies(self, name: str) -> None:
        self.nodes[name].left = dict(self.town.members[name].left)
        self.town.dies(name)

    def _look(self, node: Node) -> None:
        """What it has is told, and what follows is done."""
        queues = [Queue(each, True, False) for each in node.queues] if node.shows_queues else []
        told: list[Advert] = [*queues, *self._bindings(node)]
        self.town.shows(node.name, *told)
        self._carry(node)

    def _bindings(self, node: Node) -> list[Binding]:
        return [Binding(NEWS, "fanout", each, False, "", b"\x80", False, False)
                for each in sorted(node.bound)]  # fmt: skip

    def _carry(self, node: Node) -> None:
        machine = self.town.members[node.name]
        copies = {each: machine.adverts.of(each) for each in machine.lives
                  if machine.adverts.is_read(each)}  # fmt: skip
        bindings = self._bindings(node)
        leavers = node.succession.looks(machine, copies, bindings, self.town.now)
        heirs = {each: of.heir for each, of in leavers.items()}
        if node.succession.waits:
            return
        there = copies | {each: leavers[each].copy for each in leavers.keys() - copies.keys()}
        here = [Here(each, False, None) for each in node.queues]
        known = {each.rstrip(b".").decode() for each in settled(machine, copies)}
        heard = known | {_named(each) for each in machine.lives}
        leads_to = {_named(each.to) for each in node.own if each.to not in (HERE, TURNS)}
        by_name = node.succession.is_new and not leads_to <= heard
        topics = Topics(self.mode, here, bindings, there, heirs, by_name=by_name)
        asked = topics.carried({NEWS: "fanout"})
        kept = {each for each in node.own - asked if not self._is_settled(node, each, known)}
        node.own = asked | kept

    def _is_settled(self, node: Node, each: Carried, known: set[str]) -> bool:
        if each.to in (HERE, TURNS):
            return node.ways.keys() <= known
        return _named(each.to) in known

    # --- messages -----------------------------------------------------------------------------

    def _routes(self, node: Node) -> list[tuple[str, str]]:
        """Where a message goes: here, or by a way, and to which queue."""
        machine = self.town.members[node.name]
        found = dict.fromkeys(("", each) for each in sorted(node.bound))
        for each in sorted(node.own, key=repr):
            if each.to == TURNS:
                queues = {at: machine.adverts.of(at).queues for at in machine.lives}
                turns = members(self.mode, each.queue, queues, frozenset())
                to = self.random.choice(turns).node if turns else node_of("west")
                found[_named(to), each.queue] = None
            else:
                found[_named(each.to), each.queue] = None
        return list(found)

    def _publish(self, node: Node) -> None:
        self.published += 1
        for way, queue in self._routes(node):
            if way:
                node.ways[way].append((self.published, queue))
            else:
                node.queues[queue][self.published] += 1

    def _ship(self, node: Node, way: str) -> None:
        number, queue = node.ways[way][0]
        to = way
        machine = self.town.members[node.name]
        if way not in self.town.members or (way == "west" and not self.listens):
            heir = machine.heir(node_of(way))
            if heir is None or heir == node_of(way) or _named(heir) not in self.town.members:
                return
            to = _named(heir)
        node.ways[way].popleft()
        there = self.nodes[to]
        for each in [queue] if queue else sorted(there.bound):
            if each in there.queues:  # else it goes to those that nobody has a queue for
                there.queues[each][number] += 1

    # --- west leaves --------------------------------------------------------------------------

    def _leaves(self, *, binds_early: bool) -> Iterator[None]:
        town, west, east = self.town, self.nodes["west"], self.nodes["east"]
        town.does("west", town.members["west"].departs(node_of("east")))
        yield
        east.queues.setdefault("old", Counter())
        if binds_early:
            east.bound.add("old")
        yield
        west.has_programs = west.shows_queues = False
        yield from self._until(lambda: self._has_heard("east"))
        self._look(east)  # programs that have come are heard from now on
        yield from self._until(lambda: self._drains() and self._has_heard("north"))
        for name, way in (("north", "east"), ("north", "west"), ("east", "west")):
            for _ in range(len(self.nodes[name].ways[way])):
                self._ship(self.nodes[name], way)  # published before all knew: TOLD_SECONDS ago
        self.listens = False
        yield from self._until(self._drains)
        east.bound.add("old")
        yield
        self._look(east)
        left = Left(node_of("west"), self.epochs["west"], node_of("east"))
        town.does("east", town.members["east"].leaves(left))
        yield
        town.does("west", town.members["west"].leaves(left))
        west.queues, west.bound, west.own = {}, set(), frozenset()
        yield
        self._dies("west")

    def _until(self, holds: Callable[[], bool]) -> Iterator[None]:
        while not holds():
            yield

    def _has_heard(self, name: str) -> bool:
        """And carried it out: TOLD_SECONDS are long enough for one that is reached."""
        machine = self.town.members[name]
        live = machine.lives.get(node_of("west"))
        if live is None or not live.heir or not machine.adverts.is_read(node_of("west")):
            return False
        self._carry(self.nodes[name])
        return not self.nodes[name].succession.waits

    def _drains(self) -> bool:
        west = self.nodes["west"]
        for number in west.queues["old"].elements():
            west.ways["east"].append((number, "old"))
        west.queues["old"].clear()
        return not any(west.ways.values())

    # --- steps --------------------------------------------------------------------------------

    def run(self, *, binds_early: bool = False) -> None:
        self.departure = self._leaves(binds_early=binds_early)
        for _ in range(BUSY_STEPS):
            self._step()
        while self.departure is not None:
            self._step()
        if "west" not in self.town.members and self.nodes["west"].bound:
            self.listens = self.nodes["west"].has_programs = True
            self._starts("west")  # it was killed
        self._settles()

    def _step(self) -> None:
        live = [each for each in self.nodes.values() if each.name in self.town.members]
        node = self.random.choice(live)
        waiting = self.town.waiting
        what = self.random.choices(
            ("hear", "carry", "look", "publish", "ship", "leave", "kill"),
            (30, 20, 10, 15, 30, 6, 0.2),
        )[0]  # fmt: skip
        if what == "hear" and waiting:
            at = self.random.choice(waiting)
            if self.town.far.get(at, at)[0] != self.slow or self.random.random() < SLOW:
                self.town.arrives(at)
        elif what == "carry" and node.name != "west":
            self._carry(node)
        elif what == "look":
            self._look(node)
        elif what == "publish" and node.has_programs:
            self._publish(node)
        elif what == "ship":
            way = self.random.choice(list(node.ways))
            if node.ways[way]:
                self._ship(node, way)
        elif what == "leave" and self.departure is not None:
            self.departure = self.departure if next(self.departure, self) is None else None
        elif what == "kill":
            self._kill(node.name)

    def _kill(self, name: str) -> None:
        """`west` ends what it does, and is back in the end; once its heir has bound, it is not
        killed, as both have the binding then, which is told in docs/scale-down.md."""
        if name == "west":
            if self.departure is not None and "old" not in self.nodes["east"].bound:
                self.departure = None
                self._dies(name)
            return
        self._dies(name)
        self._starts(name)

    def _settles(self) -> None:
        """All is heard, carried out and shipped."""
        for _ in range(4):
            while waiting := self.town.waiting:
                self.town.arrives(waiting[0])
            for name in self.town.members:
                self._look(self.nodes[name])
        for node in self.nodes.values():
            for way, messages in node.ways.items():
                while messages and node.name in self.town.members:
                    before = len(messages)
                    self._ship(node, way)
                    assert len(messages) < before, f"{node.name} keeps what is for {way}"

    def wrong(self) -> list[str]:
        """Of each queue, which message it has not once."""
        found = []
        for queue in HOLDER.values():
            has: Counter[int] = Counter()
            for node in self.nodes.values():
                has += node.queues.get(queue, Counter())
            found += [f"{queue} has {number} {has[number]} times"
                      for number in range(1, self.published + 1) if has[number] != 1]  # fmt: skip
        return found


def _named(node: bytes) -> str:
    return "" if node == HERE else node.rstrip(b".").decode()
