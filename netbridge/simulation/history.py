"""What must be true: each confirmed message is at the far end once, in order, and none else is.

sent        a message that a program has published
confirmed   it is synced at the source: it must arrive, or be set aside with a reason
excused     it went with a store that was replaced by an older copy, or may come twice after that
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from shmbroker.netbridge.link.action import Line
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.simulation.record import Message
from shmbroker.netbridge.simulation.world import Wrong

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.ring import SourceRing, TargetRing

LATE_SECONDS = 0.05
OF_A_FAULT = {Reason.DISCONNECTED, Reason.SILENCE, Reason.CONNECT_TIMEOUT, Reason.SUPERSEDED}


class History:
    def __init__(self) -> None:
        self.sent: dict[str, list[Message]] = {}
        self.confirmed: dict[str, set[int]] = {}
        self.excused_loss: set[int] = set()
        self.excused_twice: set[int] = set()
        self.lines: list[Line] = []
        self.endings: list[tuple[float, Reason]] = []
        self.has_fault_of_frames = False

    def fails(self, text: str) -> None:
        raise Wrong(text)

    def publishes(self, queue: str, message: Message) -> None:
        self.sent.setdefault(queue, []).append(message)

    def confirms(self, queue: str, message: Message) -> None:
        self.confirmed.setdefault(queue, set()).add(message.number)

    def ended(self, now: float, reason: Reason) -> None:
        self.endings.append((now, reason))
        known = OF_A_FAULT | {Reason.STOPPED, Reason.PEER_CLOSING, Reason.PENDING_ACK_TIMEOUT}
        known |= {Reason.HANDSHAKE_TIMEOUT, Reason.BUSY}
        if self.has_fault_of_frames:
            known.add(Reason.FRAMES_MISSING)
        if reason not in known:
            self.fails(f"a link ended for {reason.value}")

    def seeks(self, ring: SourceRing, position: int) -> None:
        if position < ring.memory.gate:
            self.fails(f"{ring.name} is read at {position}, below its gate {ring.memory.gate}")

    def releases(self, ring: SourceRing, end: int) -> None:
        for position in range(ring.memory.gate, end):
            message = ring.memory.messages.get(position)
            if message and message.is_refused and position not in ring.memory.aside:
                self.fails(f"{ring.name}: {position} was refused, and is released")

    def holds(self, sizes: list[int], times: LinkTimes) -> None:
        """The last one may have been begun with a byte that was left."""
        if sum(sizes[:-1]) > times.window_size:
            self.fails(f"a target holds {sizes} bytes")

    def is_whole(self, rings: list[SourceRing], targets: dict[str, TargetRing]) -> bool:
        """All has arrived, is synced there, and is released here."""
        for ring in rings:
            wanted = self.confirmed.get(ring.name, set()) - self.excused_loss
            if wanted - self._arrived(targets[ring.name]) - _aside(ring):
                return False
            waiting = ring.synced.messages.keys() - ring.synced.aside.keys()
            if ring.synced.gate < max(waiting, default=-1) + 1:
                return False
        return True

    def _arrived(self, target: TargetRing) -> set[int]:
        entries = target.log[: target.synced]
        return {each.message.number for each in entries if each.message is not None}

    def check(self, rings: list[SourceRing], targets: dict[str, TargetRing]) -> None:
        for ring in rings:
            target = targets[ring.name]
            numbers = [each.message.number for each in target.log if each.message is not None]
            sent = {each.number for each in self.sent.get(ring.name, [])}
            if not set(numbers) <= sent:
                self.fails(f"{ring.name}: {set(numbers) - sent} were never sent")
            for number, times in Counter(numbers).items():
                if times > 1 and number not in self.excused_twice:
                    self.fails(f"{ring.name}: {number} has arrived {times} times")
            self._in_order(ring.name, numbers)
            if set(numbers) & _aside(ring):
                self.fails(f"{ring.name}: {set(numbers) & _aside(ring)} arrived, and are set aside")
            if target.seen:
                self.fails(f"{ring.name}: {target.seen} messages came that the target knew")

    def _in_order(self, name: str, numbers: list[int]) -> None:
        once = [each for each in numbers if each not in self.excused_twice]
        for first, second in pairwise(once):
            if second < first:
                self.fails(f"{name}: {second} has arrived behind {first}")

    def misses(self, rings: list[SourceRing], targets: dict[str, TargetRing]) -> str:
        """What has not arrived."""
        told = []
        for ring in rings:
            wanted = self.confirmed.get(ring.name, set()) - self.excused_loss
            missing = wanted - self._arrived(targets[ring.name]) - _aside(ring)
            gate, tail = ring.synced.gate, ring.synced.tail
            told.append(f"{ring.name}: {sorted(missing)[:5]} missing, released {gate} of {tail}")
        return "; ".join(told)


def _aside(ring: SourceRing) -> set[int]:
    """Numbers of what is in the source's dead-letter queue."""
    return {
        ring.synced.messages[position].number
        for position in ring.synced.aside
        if position in ring.synced.messages
    }
