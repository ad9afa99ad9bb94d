"""The calls of a session that have not ended: waiting to be said, or said and not answered."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from shmbroker.netbridge.link.deadlines import Deadlines
from shmbroker.netbridge.remote.call import OF_DELIVERIES, TAKES, UNSENT, Call
from shmbroker.netbridge.remote.options import NO_LIMIT
from shmbroker.netbridge.wire.words import Verb

TOGETHER: Final = 16 << 20
OF_MESSAGES: Final = OF_DELIVERIES | TAKES | {Verb.LEAVE}
"""Until one is answered the broker may have messages that nobody else gets."""


class Calls:
    def __init__(self, window: int, memory: int) -> None:
        """`window`: bytes that may be sent ahead of the answers by each producer; `memory`: by all
        of them at most.  No producer has more than half of all."""
        window = memory if window == NO_LIMIT else window
        self.together = min(max(2 * window, TOGETHER), memory)
        self.window = min(window, self.together // 2)
        self.waiting: deque[Call] = deque()
        self.sent: dict[int, Call] = {}
        """By number, in their order: kept until they are answered, to be said again."""
        self.next = 0
        self._bytes = 0
        self._used: Counter[int | Call] = Counter()
        """Of these, in each window."""
        self._deadlines: Deadlines[Call] = Deadlines(lambda call: call.until)

    def next_to_send(self, may: Callable[[Call], bool]) -> list[Call]:
        """Those that may go now; the order of those that share a window stays."""
        if not self.waiting:
            return []
        if len(self.waiting) == 1:
            (call,) = self.waiting
            if (call.size and not self._fits(call)) or not may(call):
                return []
            self.waiting.clear()
            self._send(call)
            return [call]
        goes: list[Call] = []
        kept: deque[Call] = deque()
        held: set[int] = set()
        is_full = False
        for call in self.waiting:
            shares = call.size > 0
            fits = not shares or (not is_full and self._fits(call))
            waits = shares and call.target in held and not call.has_number
            if fits and not waits and may(call):
                self._send(call)
                goes.append(call)
                continue
            is_full |= shares and not self._has_memory(call)
            held.add(call.target)
            kept.append(call)
        self.waiting = kept
        return goes

    def _fits(self, call: Call) -> bool:
        """One may be larger than its window, or it could never go."""
        used = self._used[call.share]
        return (not used or used + call.size <= self.window) and self._has_memory(call)

    def _has_memory(self, call: Call) -> bool:
        return not self._bytes or self._bytes + call.size <= self.together

    def _send(self, call: Call) -> None:
        call.number = self.next
        self.next += 1
        self.sent[call.number] = call
        self._bytes += call.size
        self._used[call.share] += call.size

    def answered(self, number: int) -> Call | None:
        call = self.sent.pop(number, None)
        if call is not None:
            self._bytes -= call.size
            self._used[call.share] -= call.size
            if not self._used[call.share]:
                del self._used[call.share]
            self._deadlines.drop(call)
        return call

    def withdraw(self) -> list[Call]:
        """All of them, those that were sent first; the next session counts anew."""
        everything = [*self.sent.values(), *self.waiting]
        for call in everything:
            self._deadlines.drop(call)
        self.waiting = deque()
        self.sent = {}
        self.next = self._bytes = 0
        self._used.clear()
        return everything

    def put(self, call: Call) -> None:
        if call.was_sent:
            call.repeated = True
        call.number = UNSENT
        self.waiting.append(call)
        self._deadlines.look(call)

    def put_first(self, call: Call) -> None:
        """Before all that waits."""
        self.waiting.appendleft(call)
        self._deadlines.look(call)

    def abandon(self, call: Call) -> None:
        """Nobody waits for it any more; one that was sent is answered yet."""
        call.is_abandoned = True
        self._deadlines.drop(call)
        if not call.was_sent:
            self.waiting.remove(call)

    def wait_again(self, call: Call, until: float) -> None:
        call.until, call.is_abandoned = until, False
        self._deadlines.look(call)

    @property
    def is_awaited(self) -> bool:
        """Something is to be said, or answered, before the session ends; what nobody waits for may
        wait at the broker for ever."""
        sent = self.sent.values()
        is_asked = any(not each.is_abandoned or each.verb in OF_DELIVERIES for each in sent)
        return is_asked or any(not each.is_internal for each in self.waiting)

    @property
    def are_open(self) -> bool:
        """A session that is not ended in good order leaves something at its broker, or undone."""
        return any(
            each.verb in OF_MESSAGES or not (each.is_internal or each.is_abandoned)
            for each in (*self.sent.values(), *self.waiting)
        )

    def of(self, verb: Verb) -> list[Call]:
        return [call for call in (*self.waiting, *self.sent.values()) if call.verb is verb]

    def is_said_again(self, producer: int) -> bool:
        """Something of it that an earlier session may have published."""
        calls = self.of(Verb.PUBLISH)
        return any(each.repeated and each.target == producer for each in calls)

    def find(self, id: int) -> Call | None:
        for call in (*self.waiting, *self.sent.values()):
            if call.id == id and not (call.is_internal or call.is_abandoned):
                return call
        return None

    def behind(self, call: Call) -> list[Call]:
        """Of the same `publish_many`, in their order; what has ended is not among them."""
        if call.many is None:
            return []
        all_of_it = [
            each for each in (*self.sent.values(), *self.waiting) if each.many is call.many
        ]
        return [each for each in all_of_it if each.id > call.id and not each.is_abandoned]

    def on_its_way(self, like: Call) -> Call | None:
        """The same one, said and not answered; perhaps nobody waits for it any more."""
        what = like.verb, like.target, like.value, like.count
        for call in self.sent.values():
            if (call.verb, call.target, call.value, call.count) == what:
                return call
        return None

    def late(self, now: float) -> list[Call]:
        return self._deadlines.late(now)

    @property
    def deadline(self) -> float:
        return self._deadlines.first
