"""Grouping handlers in one process; what is said goes through its codec, and links may be slow."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from shmbroker.netbridge.cluster.arbiter import Arbiter
from shmbroker.netbridge.cluster.codec import decode, encode
from shmbroker.netbridge.cluster.group import (
    Action,
    Drop,
    Group,
    Holder,
    Keep,
    Routed,
    Tell,
    TellAll,
    TimedOut,
    Unrouted,
)
from shmbroker.netbridge.cluster.grouping import Grouping
from shmbroker.netbridge.cluster.handler import Handler
from shmbroker.netbridge.cluster.machine import Line
from shmbroker.netbridge.cluster.option import ON_DEMAND
from shmbroker.netbridge.cluster.said import Grouped
from tests.netbridge.cluster.talk import node_of


@dataclass
class Place:
    """A node: what outlives its broker."""

    kept: dict[Group, bytes] = field(default_factory=dict)
    unkept: deque[tuple[Keep | Drop, Handler]] = field(default_factory=deque)
    """On its way to the disk."""
    queues: dict[str, bool] = field(default_factory=dict)
    """Whether somebody consumes."""
    untold: set[str] = field(default_factory=set)
    """Queues of which the others do not know yet."""
    timeouts: list[Group] = field(default_factory=list)


@dataclass
class Towns:
    mode: str = ON_DEMAND
    is_slow: bool = False
    """Links and disks do something when they are told so."""
    handlers: dict[str, Handler] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    links: dict[frozenset[str], dict[str, deque[bytes]]] = field(default_factory=dict)
    """Between two, what is on its way to each."""
    forgotten: set[str] = field(default_factory=set)
    heirs: dict[str, str] = field(default_factory=dict)
    """Of those of them that were scaled down."""
    lines: list[tuple[str, str]] = field(default_factory=list)
    ways: dict[Group, set[bytes]] = field(default_factory=dict)
    """To which nodes anybody has ever sent each group."""
    now: float = 0.0
    _settles: bool = False

    def starts(self, name: str, *, local: bool = False, timeout: float = 5.0,
               group_timeout: float | None = None, handler: str = "mine",
               known: dict[Group, bytes] | None = None) -> Handler:  # fmt: skip
        place = self.places.setdefault(name, Place())
        wanted = Grouping(handler, local, timeout, group_timeout, 30.0)
        kept = dict(place.kept) if local else {}
        made = Handler(wanted, self.mode, node_of(name), kept, known or {}, self.now)
        self.handlers[name] = made
        self.looks()
        return made

    def dies(self, name: str) -> None:
        """What was on its way to its disk may be there, or not: here it is not."""
        for other in [each for each in self.handlers if self.is_linked(name, each)]:
            self.cut(name, other)
        del self.handlers[name]
        self.places[name].unkept.clear()

    def is_linked(self, near: str, far: str) -> bool:
        return frozenset({near, far}) in self.links

    def link(self, near: str, far: str) -> None:
        self.links[frozenset({near, far})] = {near: deque(), far: deque()}
        for one, other in ((near, far), (far, near)):
            self.does(one, self.handlers[one].up(node_of(other), self.now))
        self.looks()

    def meet(self) -> None:
        names = sorted(self.handlers)
        for at, near in enumerate(names):
            for far in names[at + 1 :]:
                if not self.is_linked(near, far):
                    self.link(near, far)

    def cut(self, near: str, far: str) -> None:
        del self.links[frozenset({near, far})]
        for one, other in ((near, far), (far, near)):
            if one in self.handlers:
                self.does(one, self.handlers[one].down(node_of(other), self.now))
        self.looks()

    def forget(self, name: str) -> None:
        """At all, as `cluster forget` does."""
        self.forgotten.add(name)
        self.looks()

    def leaves(self, name: str, heir: str) -> None:
        """Scaled down: that one has what it had."""
        self.dies(name)
        self.heirs[name] = heir
        self.forget(name)

    def has(self, name: str, queue: str, *, consumed: bool | None = True) -> None:
        """None: it is deleted."""
        queues = self.places[name].queues
        if consumed is None:
            del queues[queue]
        else:
            queues[queue] = consumed
        self.looks()

    def looks(self) -> None:
        """All know what all have, as adverts tell."""
        there = {each: place for each, place in self.places.items() if each not in self.forgotten}
        nodes = [*map(node_of, there)]
        gone = {node_of(each): node_of(self.heirs[each]) if each in self.heirs else None
                for each in self.forgotten}  # fmt: skip
        queues = {node_of(each): place.queues.keys() - place.untold
                  for each, place in there.items()}  # fmt: skip
        for name, handler in list(self.handlers.items()):
            order = sorted(there, key=lambda each: (each != name, each))
            holders: dict[str, list[Holder]] = {}
            for each in order:
                up = each == name or self.is_linked(name, each)
                for queue, is_consumed in there[each].queues.items():
                    if each != name and queue in there[each].untold:
                        continue
                    holders.setdefault(queue, []).append(Holder(node_of(each), is_consumed, up))
            self.does(name, handler.looks(nodes, gone, queues, holders, self.now))

    def wants(self, name: str, group: str, queue: str = "orders") -> bytes | None:
        """The node that it goes to, if that is known at once."""
        made = Group(queue, group)
        self.does(name, self.handlers[name].wants(made, self.now))
        return self.handlers[name].routes.get(made)

    def later(self, seconds: float, steps: int = 1) -> None:
        for _ in range(steps):
            self.now += seconds / steps
            for name, handler in list(self.handlers.items()):
                self.does(name, handler.tick(self.now))

    def does(self, name: str, actions: Iterable[Action | Line]) -> None:
        for action in list(actions):
            self.do(name, action)
        if self.is_slow or self._settles:
            return
        self._settles = True
        while self.passes() or self.keeps():
            pass
        self._settles = False

    def do(self, name: str, action: Action | Line) -> None:
        handler, place = self.handlers[name], self.places[name]
        match action:
            case Tell():
                self.says(name, action.to, action.what)
            case TellAll():
                for each in [*self.handlers]:
                    if each != name:
                        self.says(name, node_of(each), action.what)
            case Keep() | Drop():
                place.unkept.append((action, handler))
            case TimedOut():
                place.timeouts.append(action.group)
            case Line():
                self.lines.append((name, action.state))
            case Routed() | Unrouted():
                route = handler.routes.get(action.group)
                assert route == (action.node if isinstance(action, Routed) else None)
                if route is not None:
                    self.ways.setdefault(action.group, set()).add(route)

    def says(self, name: str, to: bytes, what: Grouped) -> None:
        other = next((each for each in self.handlers if node_of(each) == to), "")
        link = self.links.get(frozenset({name, other}))
        if link is not None:
            link[other].append(encode(what))

    def passes(self) -> bool:
        """The first word of some link arrives."""
        for ends in self.links:
            for name in sorted(ends):
                if self.passes_to(name, ends):
                    return True
        return False

    def passes_to(self, name: str, ends: frozenset[str]) -> bool:
        coming = self.links[ends][name]
        if not coming:
            return False
        [other] = ends - {name}
        what = decode(coming.popleft())
        assert isinstance(what, Grouped)
        self.does(name, self.handlers[name].heard(node_of(other), what, self.now))
        return True

    def keeps(self) -> bool:
        return any(self.keeps_at(name) for name in list(self.handlers))

    def keeps_at(self, name: str) -> bool:
        place = self.places[name]
        if not place.unkept:
            return False
        action, handler = place.unkept.popleft()
        if isinstance(action, Drop):
            place.kept.pop(action.group, None)
        else:
            place.kept[action.group] = action.node
            self.does(name, handler.kept(action.number, action.group, self.now))
        return True

    def arbiter(self, name: str) -> Arbiter:
        found = self.handlers[name].arbiter
        assert found is not None
        return found
