"""The side of replicas on one link, as netbridge/queue_replicated/following.py has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.queue_replica.action import (
    Action,
    Became,
    Begin,
    GiveUp,
    GoOn,
    LetDelete,
    Say,
    Stop,
)
from shmbroker.netbridge.queue_replica.codec import encode, from_original
from shmbroker.netbridge.queue_replica.machine import NOTHING, Replica
from shmbroker.netbridge.queue_replica.source import Source
from shmbroker.netbridge.queue_replica.told import (
    Chained,
    Counted,
    Follows,
    Has,
    Leave,
    Moment,
    OfOriginal,
    OfReplica,
    Shown,
    Unserved,
)
from shmbroker.netbridge.simulation.queue_replicas.copy import Copy
from shmbroker.netbridge.simulation.queue_replicas.feeder import OfOriginals, OfReplicas, Shipped
from shmbroker.netbridge.simulation.queue_replicas.queue import Queue

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.queue_replicas.broker import Broker

TELL: Final = 4
"""So many records come before it is said that they are here."""


@dataclass(eq=False, slots=True)
class Member:
    machine: Replica
    queue: Queue | None = None
    """None: it is not a replica yet."""
    is_answered: bool = False

    @property
    def has_begun(self) -> bool:
        return self.queue is not None


class Follower:
    def __init__(self, broker: Broker, of: str) -> None:
        self._broker, self.of = broker, of
        self.members: dict[str, Member] = {}
        self.copies: dict[int, Copy] = {}
        self._is_linked = False
        self._came = self._told = self._shown = self._told_shown = 0
        self._numbers = 0
        self._waiting: list[OfOriginals | Shipped] = []
        """What came behind a moment that may not be shown before the last one is on disk."""

    # --- its queues ---------------------------------------------------------------------------

    def add(self, name: str) -> None:
        """As it is ordered."""
        self._add(Member(self._machine(name)))

    def go_on(self, queue: Queue, identity: bytes) -> None:
        """It was a replica when this broker began."""
        self._add(Member(self._machine(queue.name, identity), queue))

    def _machine(self, name: str, identity: bytes = NOTHING) -> Replica:
        self._numbers += 1
        return Replica(self._numbers, name, identity, self._broker.node)

    def _add(self, member: Member) -> None:
        self.members[member.machine.queue] = member
        if self._is_linked and (known := self._next(member)) is not None:
            self._does(member, member.machine.linked(known))

    def abandon(self, name: str) -> None:
        """It has not begun in time."""
        member = self.members[name]
        if not member.has_begun:
            del self.members[name]
            self._does(member, member.machine.detach())

    def detach(self, name: str) -> None:
        member = self.members.pop(name)
        self._does(member, member.machine.detach())
        if member.queue is not None:
            member.queue.follows = None
            self._broker.watch.detached(self._broker, member.queue)
        self._broker.chained(name)

    def _next(self, member: Member) -> int | None:
        """None: the queue was deleted, and is forgotten."""
        queue, number = member.queue, member.machine.number
        if queue is None:
            return 0
        if self._broker.memory.queues.get(queue.name) is not queue:
            self.copies.pop(number, None)
            self.members.pop(queue.name, None)
            if self._is_linked:
                self._say(Leave(number))
            return None
        if number not in self.copies:
            self.copies[number] = Copy(queue)
        return self.copies[number].next

    # --- of the link --------------------------------------------------------------------------

    def came(self) -> None:
        self._is_linked = True
        self._came = self._told = self._shown = self._told_shown = 0
        self._waiting.clear()
        for each in list(self.members.values()):
            self.copies.pop(each.machine.number, None)
            if (known := self._next(each)) is not None:
                self._does(each, each.machine.linked(known))

    def gone(self) -> None:
        self._is_linked = False
        for each in list(self.members.values()):
            each.is_answered = False
            self._does(each, each.machine.lost("lost"))

    def take(self, message: OfOriginals | Shipped) -> None:
        memory = self._broker.memory
        is_moment = isinstance(message, OfOriginals) and bool(message.versions)
        if self._waiting or (is_moment and not memory.has_synced_all):
            self._waiting.append(message)
        elif isinstance(message, Shipped):
            self._shipped(message)
        else:
            self._heard(message)

    def look(self) -> None:
        """Whether the last moment is on disk; then the next one may be shown."""
        if not self._broker.memory.has_synced_all or not self._is_linked:
            return
        if self._shown != self._told_shown:
            self._told_shown = self._shown
            self._broker.watch.tells_shown(each.queue for each in self.copies.values())
            self._say(Shown(self._shown))
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            self.take(message)

    def _shipped(self, shipped: Shipped) -> None:
        for record in shipped.records:
            copy = self.copies.get(record.number)
            if copy is not None:
                copy.take(record)
        self._came += len(shipped.records)
        if self._came - self._told >= TELL:
            self._tell_has()

    def _tell_has(self) -> None:
        self._told = self._came
        self._say(Has(self._came))

    def _heard(self, message: OfOriginals) -> None:
        said = from_original(message.said)
        if isinstance(said, Moment):
            if said.is_whole:
                self._show(message.versions)
                self._shown += 1
                self._broker.looks()
            if self._came != self._told:
                self._tell_has()
            return
        each = next((m for m in self.members.values() if m.machine.number == said.number), None)
        if each is not None:
            self._said(each, said)

    def _said(self, each: Member, said: OfOriginal) -> None:
        now = self._broker.host.clock
        if isinstance(said, Follows):
            each.is_answered = True
            if (known := self._next(each)) is not None:
                self._does(each, each.machine.follows(said, known, now))
                self._broker.chained(each.machine.queue)
        elif isinstance(said, Chained):
            self._does(each, each.machine.chained(said.chain, now))
            self._broker.chained(each.machine.queue)
        elif isinstance(said, Counted):
            if each.is_answered:
                self._does(each, each.machine.counted())
        elif isinstance(said, Unserved):
            each.is_answered = False
            self._does(each, each.machine.unserved(said, now))

    def _show(self, versions: dict[int, int]) -> None:
        self._broker.memory.committed += 1
        for number, copy in self.copies.items():
            self._broker.shows(copy, versions.get(number))
        self._broker.watch.shown(self._broker, self, versions)
        for each in list(self.members.values()):
            if each.queue is None or not each.is_answered:
                continue
            shown = self.copies.get(each.machine.number)
            if shown is not None and shown.is_stale:
                each.is_answered = False
                self._does(each, each.machine.stale())
            elif shown is not None and shown.why:
                each.is_answered = False
                self._does(each, each.machine.fails(shown.why, self._broker.host.clock))

    def tick(self) -> None:
        now = self._broker.host.clock
        for each in list(self.members.values()):
            if each.machine.due <= now and (known := self._next(each)) is not None:
                self._does(each, each.machine.tick(known, now))

    # --- what is done -------------------------------------------------------------------------

    def _does(self, each: Member, actions: Iterable[Action]) -> None:
        number = each.machine.number
        for action in list(actions):
            match action:
                case Say(what):
                    self._say(what)
                case Begin():
                    self._begin(each, action)
                case GoOn():
                    """Clocks agree here."""
                case LetDelete(is_deletable):
                    if each.queue is not None:
                        each.queue.is_deletable = is_deletable
                case GiveUp():
                    self.members.pop(each.machine.queue, None)
                case Stop():
                    self.copies.pop(number, None)
                case Became(state, why):
                    self._broker.tells(f"{each.machine.queue} of {self.of} is {state}: {why}")
        self._broker.wake(each.machine.due)

    def _begin(self, each: Member, action: Begin) -> None:
        memory, name = self._broker.memory, each.machine.queue
        self._broker.watch.follows(self._broker, each.machine.chain)
        former = memory.queues.get(name)
        if former is not None:
            self._broker.watch.replaces(self._broker, former, action)
        made = memory.declare(name, is_durable=action.is_durable)
        made.slots = self._broker.slots_of(name)
        made.begin(action.position)
        made.follows = Source(self.of, action.identity)
        each.queue = made
        self.copies[each.machine.number] = Copy(made)
        memory.changed()

    def _say(self, what: OfReplica) -> None:
        if self._is_linked:
            self._broker.say(self.of, OfReplicas(encode(what)))
