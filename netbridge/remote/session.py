"""The broker's end of a session: events and a time in, actions out.

It outlives its links by `ttl` seconds.  What it has said and the program has not seen is kept, to
be said again on the next link; while that fills its window, nothing more is delivered or performed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from shmbroker.core.codes import OK, REVOKED
from shmbroker.netbridge.remote.action import (
    Action,
    Disconnect,
    GiveBack,
    Over,
    Perform,
    Say,
    Wanted,
)
from shmbroker.netbridge.remote.broken import SessionBroken
from shmbroker.netbridge.remote.call import FREE, NEVER, OF_DELIVERIES
from shmbroker.netbridge.remote.options import MIB, NO_LIMIT
from shmbroker.netbridge.remote.parts import Assembly, parted
from shmbroker.netbridge.wire.frame import (
    Attach,
    Attached,
    Body,
    Command,
    Delivery,
    Frame,
    Grant,
    Result,
    Seen,
)
from shmbroker.netbridge.wire.words import Level, Verb

NAME_DIGITS: Final = 12
HEAD_BYTES: Final = 64
"""Of a command or a frame that is kept here, beside its body: tiny ones are bounded, too."""


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Of a broker, for each of its sessions."""

    ttl: float = 60.0
    window: int = 16 * MIB
    """Bytes that are kept at most, whatever the program asks for."""
    held: int = 32 * MIB
    """Bytes of commands that wait for their turn; and of those that are being carried out, which
    wait for room, say.  One may be larger; what settles, takes or ends is carried out all the
    same."""
    frame_bytes: int = 4 * MIB
    message_bytes: int = 256 * MIB


@dataclass(slots=True)
class Flow:
    """To a consumer: what it may get, and has got."""

    messages: int = 0
    bytes: int = 0
    sent_messages: int = 0
    sent_bytes: int = 0

    @property
    def room(self) -> tuple[int, int]:
        messages, size = self.messages - self.sent_messages, self.bytes - self.sent_bytes
        return (messages, size) if messages > 0 and size > 0 else (0, 0)


@dataclass(slots=True)
class Kept:
    number: int
    size: int
    frame: Result | Delivery | None
    """None: it is counted only, because it may wait in this host's memory to be read."""


def _size(frame: Command | Result | Delivery) -> int:
    return len(frame.body) + HEAD_BYTES


class Session:
    def __init__(self, attach: Attach, limits: SessionLimits, now: float) -> None:
        self.limits = limits
        self.id = attach.session
        self.generation = attach.generation
        self.attempt = attach.attempt
        self.keeps = attach.window != NO_LIMIT
        self.window = min(attach.window, limits.window) if self.keeps else limits.window
        self.is_attached = True
        self.is_over = False
        self.until = NEVER
        self.seen = 0
        """Commands that have come."""
        self.said = 0
        self.kept: deque[Kept] = deque()
        self.kept_bytes = 0
        self.held: deque[Command] = deque()
        self.free: deque[Command] = deque()
        """They go ahead of those that are held, if too much is pending."""
        self.held_bytes = 0
        self.pending: dict[int, Command] = {}
        self.pending_bytes = 0
        self.flows: dict[int, Flow] = {}
        self.in_hand: dict[int, int] = {}
        """By delivery: its consumer, 0 if it was asked for singly."""
        self.settling: set[int] = set()
        self.next_delivery = 0
        self.assembly = Assembly(limits.message_bytes)
        self._did: list[Action] = []

    # --- its life -----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """For people; whoever knows the whole id is nearer to another's session."""
        return self.id.hex()[:NAME_DIGITS]

    def begin(self) -> list[Action]:
        self._did.append(Say(Attached(False, 0, int(self.limits.ttl * 1000))))
        return self._done()

    def may_resume(self, attach: Attach) -> bool:
        """Whether all that the program has not seen can be said again."""
        first = self.said - len(self.kept)
        same = attach.generation == self.generation and not self.is_over
        return same and self.keeps and first <= attach.seen <= self.said

    def resume(self, attach: Attach) -> list[Action]:
        """On another link."""
        self.attempt = attach.attempt
        self.is_attached = True
        self.until = NEVER
        self.assembly.clear()
        self._forget(attach.seen)
        self._did.append(Say(Attached(True, self.seen, int(self.limits.ttl * 1000))))
        for each in self.kept:
            if each.frame is not None:
                self._say(each.frame)
        self._go_on()
        return self._done()

    def detached(self, now: float) -> list[Action]:
        """Its link has ended."""
        self.is_attached = False
        self.until = now + self.limits.ttl
        if not self.keeps:
            self._end(forgets=False)
        return self._done()

    def tick(self, now: float) -> list[Action]:
        if now >= self.until:
            self._end(forgets=False)
        return self._done()

    def end(self) -> list[Action]:
        """Another one takes its place, or the broker stops."""
        self._end(forgets=False)
        return self._done()

    def _end(self, forgets: bool) -> None:
        if self.is_over:
            return
        self.is_over = True
        self.until = NEVER
        settled = [  # by what is carried out just before this
            range(each.command.value, each.command.value + each.command.count)
            for each in self._did
            if isinstance(each, Perform)
            and each.command.verb in OF_DELIVERIES
            and not each.command.repeated
        ]
        if rest := tuple(n for n in self.in_hand if not any(n in each for each in settled)):
            self._did.append(GiveBack(rest))
        self.in_hand.clear()
        self.pending.clear()
        self.flows.clear()
        self._did.append(Over(forgets))

    # --- what comes ---------------------------------------------------------------------------

    def received(self, frame: Frame) -> list[Action]:
        try:
            if not self.is_over:
                self._received(frame)
        except SessionBroken as error:
            self._did.append(Disconnect(str(error)))
        return self._done()

    def _received(self, frame: Frame) -> None:
        if isinstance(frame, Command):
            if frame.number != self.seen:
                raise SessionBroken(f"command {frame.number} comes, not {self.seen}")
            self._forget(frame.seen)
            whole = self.assembly.add(frame)
            if whole is not None:
                self._take(whole)
        elif isinstance(frame, Seen):
            self._forget(frame.seen)
        elif isinstance(frame, Grant):
            flow = self.flows.get(frame.consumer)
            if flow is not None:
                flow.messages = max(flow.messages, frame.messages)
                flow.bytes = max(flow.bytes, frame.bytes)
        else:
            raise SessionBroken(f"{type(frame).__name__.lower()} comes to a broker")
        self._go_on()

    def _take(self, command: Command) -> None:
        self.seen += 1
        (self.free if command.verb in FREE else self.held).append(command)
        self.held_bytes += _size(command)
        if self.held_bytes > self.limits.held and len(self.held) + len(self.free) > 1:
            raise SessionBroken(
                "its commands wait: it is to wait for answers, and say what it sees"
            )

    def _go_on(self) -> None:
        while line := self._next():
            command = line.popleft()
            self.held_bytes -= _size(command)
            self._step(command)
        if self.flows:
            self._did += [Wanted(target) for target in self.flows if self.room(target)[0]]

    def _next(self) -> deque[Command] | None:
        """In their order, as long as there is room for all.  What is pending may wait for those
        that are free: for room in a queue that this program takes from, say."""
        if self.is_over or not self._may_say:
            return None
        is_first = not self.free or (self.held and self.held[0].number < self.free[0].number)
        if is_first and self.pending_bytes < self.limits.held:
            return self.held
        return self.free

    @property
    def _may_say(self) -> bool:
        return self.kept_bytes < self.window

    def _step(self, command: Command) -> None:
        self.pending[command.number] = command
        self.pending_bytes += _size(command)
        verb = command.verb
        if verb is Verb.END:
            self.pending.clear()
            self._answer(Result(self.said, command.number, OK, 0, Level.SHM, False, b""))
            self._end(forgets=True)
        elif verb in OF_DELIVERIES:
            self._settle(command)
        else:
            if verb is Verb.LEAVE:
                self._leave(command.target)
            self._did.append(Perform(command))

    def _settle(self, command: Command) -> None:
        """Each delivery is settled once; a repeated one names what a former session was given."""
        numbers = range(command.value, command.value + command.count)
        if command.repeated:
            if command.verb is Verb.GIVE_BACK:  # the former session's end has done it
                self._finish(command.number, OK)
            else:
                self._did.append(Perform(command))
        elif all(each in self.in_hand and each not in self.settling for each in numbers):
            self.settling.update(numbers)
            self._did.append(Perform(command))
        else:
            self._finish(command.number, REVOKED)

    def counts_behind(self, delivery: int) -> None:
        """What is delivered from now on has higher numbers: a session before this one has used
        those up to this one."""
        self.next_delivery = max(self.next_delivery, delivery + 1)

    def has_in_hand(self, deliveries: list[int]) -> None:
        """Of a session before this one, whose transactions go on in it."""
        self.in_hand.update(dict.fromkeys(deliveries, 0))

    def begins_to_settle(self, deliveries: list[int]) -> bool:
        """With a transaction: what is settled in another way meanwhile is not."""
        may = all(each in self.in_hand and each not in self.settling for each in deliveries)
        if may:
            self.settling.update(deliveries)
        return may

    def withdraws(self, deliveries: list[int], *, has_begun: bool) -> list[Action]:
        """They were to be settled with a transaction that has failed: they go back, but for those
        that something else settles."""
        if has_begun:
            self.settling.difference_update(deliveries)
        free = [each for each in deliveries if each in self.in_hand and each not in self.settling]
        for each in free:
            del self.in_hand[each]
        if free:
            self._did.append(GiveBack(tuple(free)))
        return self._done()

    def has_settled(self, deliveries: list[int]) -> None:
        self.settling.difference_update(deliveries)
        for each in deliveries:
            self.in_hand.pop(each, None)

    def _leave(self, consumer: int) -> None:
        """What it has in hand stays in hand: a program may acknowledge behind its consumer."""
        self.flows.pop(consumer, None)

    # --- what the broker has done -------------------------------------------------------------

    def done(
        self,
        call: int,
        code: int,
        value: int = 0,
        level: Level = Level.SHM,
        body: Body = b"",
        takes: int = 0,
    ) -> list[Action]:
        """`takes`: so many messages were taken; they are the next deliveries."""
        if takes:
            value = self._takes(0, takes)
            code = takes
        if call in self.pending:
            self._finish(call, code, value, level, body)
        elif takes:
            self._returned(value, takes)
        return self._done()

    def deliver(self, consumer: int, messages: int, body: Body) -> list[Action]:
        """These were taken for this consumer; they are the next deliveries."""
        first = self._takes(consumer, messages)
        flow = self.flows.get(consumer)
        if flow is None or self.is_over:
            self._returned(first, messages)
            return self._done()
        flow.sent_messages += messages
        flow.sent_bytes += len(body)
        self._answer(Delivery(self.said, consumer, first, messages, False, body))
        return self._done()

    def ends_consumer(self, consumer: int, why: Body) -> list[Action]:
        """Nothing more comes; what it has in hand stays in hand."""
        if self.flows.pop(consumer, None) is not None and not self.is_over:
            self._answer(Delivery(self.said, consumer, self.next_delivery, 0, False, why))
        return self._done()

    def room(self, consumer: int) -> tuple[int, int]:
        """So many messages and bytes may be delivered now."""
        flow = self.flows.get(consumer)
        if flow is None or not self.is_attached or not self._may_say:
            return 0, 0
        return flow.room

    def _takes(self, consumer: int, messages: int) -> int:
        first = self.next_delivery
        self.next_delivery += messages
        self.in_hand.update(dict.fromkeys(range(first, self.next_delivery), consumer))
        return first

    def _returned(self, first: int, messages: int) -> None:
        numbers = tuple(range(first, first + messages))
        for each in numbers:
            self.in_hand.pop(each, None)
        self._did.append(GiveBack(numbers))

    def _finish(
        self, call: int, code: int, value: int = 0, level: Level = Level.SHM, body: Body = b""
    ) -> None:
        command = self.pending.pop(call)
        self.pending_bytes -= _size(command)
        if command.verb in OF_DELIVERIES and not command.repeated:
            is_dealt_with = code >= OK or code == REVOKED
            said: Iterable[int] = range(command.value, command.value + command.count)
            if command.count > len(self.in_hand):  # it says more than it can have
                said = [each for each in self.in_hand if each in said]
            for number in said:
                self.settling.discard(number)
                if is_dealt_with:
                    self.in_hand.pop(number, None)
        if command.verb is Verb.CONSUMER and code >= OK:
            self.flows[command.target] = Flow()
        elif command.verb is Verb.LEAVE:
            self._leave(command.target)  # again: it may have been opened meanwhile
        self._answer(Result(self.said, call, code, value, level, False, body))
        self._go_on()

    # --- what is said -------------------------------------------------------------------------

    def _answer(self, frame: Result | Delivery) -> None:
        self.said += 1
        kept = Kept(frame.number, _size(frame), frame if self.keeps else None)
        self.kept.append(kept)
        self.kept_bytes += kept.size
        if self.is_attached:
            self._say(frame)

    def _say(self, frame: Result | Delivery) -> None:
        self._did += map(Say, parted(frame, self.limits.frame_bytes))

    def _forget(self, seen: int) -> None:
        if seen > self.said:
            raise SessionBroken(f"{seen} frames were seen, and {self.said} were said")
        while self.kept and self.kept[0].number < seen:
            self.kept_bytes -= self.kept.popleft().size

    def _done(self) -> list[Action]:
        did, self._did = self._did, []
        return did
