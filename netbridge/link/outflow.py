"""The source's end of the flow to one target.

    OPENING --Opened--> FLOWING     the mark of the target says where the ring is read on

A message is DONE when the target has confirmed it, never because it was sent, and never because
the target's mark is behind it: a mark says what is appended, and a crash may take that back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from shmbroker.netbridge.link.action import (
    Action,
    Alert,
    BeginHistory,
    Line,
    Read,
    Release,
    Seek,
    SetAside,
    Unserved,
)
from shmbroker.netbridge.link.broken import broken
from shmbroker.netbridge.link.credit import Allowance
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.wire.frame import (
    Body,
    Confirm,
    Credit,
    Frame,
    Open,
    Opened,
    Part,
    Passed,
    Records,
    Reject,
    Resume,
    Unopened,
)
from shmbroker.netbridge.wire.value import value
from shmbroker.netbridge.wire.words import Level, TargetKind

Steps = Iterator[Frame | Action]
HEAD_ROOM = 4096
"""Of a frame, for its head."""
FIRST_BYTES = 16 << 10
"""Of the first batch of a connection; each one may be twice as large as the one before.  A frame is
there when all of it is, and TCP begins with some 14 KB in a round trip: of one large frame the
first message would come four round trips later."""
UNTOLD_MAX = 64 << 20
"""Bytes that are sent and that the target has not told of.  Its credit may be larger, and if it
never reads, they wait in this host's memory.  One message may be larger."""


@value
class Outlet:
    """A ring that is shipped to a target, as it stands when the link is made."""

    target: int
    kind: TargetKind
    name: str
    origin: bytes
    level: Level
    confirmed: int
    """Below it all is DONE."""
    released: int
    """Below it all stays DONE, also after a crash."""
    sent: int
    """Below it messages may have been sent before; the end of the ring if that is not known."""
    end: int
    """Of the ring."""
    begun: int = 0
    """Where this origin was new: the history began, or a link ended in good order."""
    exact: bool = True
    aside: tuple[int, ...] = ()
    """Positions that a former connection has set aside, and a crash would take back."""

    def without(self, target: int, position: int) -> Outlet:
        """This position of the target is set aside for good."""
        if target != self.target:
            return self
        return replace(self, aside=tuple(each for each in self.aside if each != position))


@value
class Batch:
    """What was read behind the cursor."""

    first: int
    end: int
    messages: int
    records: Body


class Outflow:
    def __init__(self, outlet: Outlet, frame_bytes: int) -> None:
        self.outlet = outlet
        self.target = outlet.target
        self.part_bytes = frame_bytes - HEAD_ROOM & -8
        self.batch_bytes = FIRST_BYTES
        """Of the next batch, at most."""
        self.allowance = Allowance()
        self.is_opened = self.is_answered = False
        self.told = self.confirmed = outlet.confirmed
        """What the target has told, and what of it may be DONE."""
        self.released = outlet.released
        """What is DONE for good.  A former connection may have released more than outlives a crash,
        and the target must not forget the origin before that does."""
        self.cursor = outlet.confirmed
        """Below it all was sent."""
        self.doubt_end = 0
        """Messages below it may be there already, and nobody will know."""
        self._untold: deque[tuple[int, int]] = deque()
        """What was sent: where it ends, and its bytes."""
        self.untold_bytes = 0
        self.message_bytes = 0
        self.has_news = True
        self.is_reading = False
        self.aside: deque[int] = deque(outlet.aside)
        """Positions that are being set aside: they are not DONE before they are."""
        self.parts: deque[Part] = deque()

    def begin(self) -> Steps:
        of = self.outlet
        yield Open(of.target, of.kind, of.name, of.origin, of.level, of.exact, 0)

    # --- resuming -----------------------------------------------------------------------------

    def opened(self, said: Opened) -> Steps:
        if self.is_answered:
            raise broken(Reason.UNEXPECTED, f"target {self.target} was opened twice")
        self.is_answered = True
        of = self.outlet
        if of.exact and said.mark > max(of.end, of.sent):
            detail = f"{of.name}: the mark is {said.mark}, the ring ends at {of.end}"
            yield Line(Alert.MARK_AHEAD, detail, said.mark - of.end)
            yield BeginHistory(self.target)
            return
        yield from self._told_behind(said)
        self.is_opened = True
        self.message_bytes = said.message_bytes
        self.allowance.raise_to(said.messages, said.bytes)
        self.cursor = max(said.mark, self.confirmed) if of.exact else self.confirmed
        yield Seek(self.target, self.cursor)
        yield Resume(self.target, self.cursor)
        if of.exact:
            yield from self._confirmed(min(said.confirmed, self.cursor), of.level)

    def _told_behind(self, said: Opened) -> Steps:
        of = self.outlet
        lacks = of.confirmed - said.mark
        is_behind = of.exact and lacks > 0 and of.confirmed > of.begun
        if is_behind or not of.exact:
            self.doubt_end = of.sent
        if is_behind and said.mark == 0:
            doubt = max(0, of.sent - of.confirmed)
            yield Line(Alert.ORIGIN_FORGOTTEN, f"{of.name}: {doubt} may come twice", doubt)
        elif is_behind:
            detail = f"{of.name}: the mark is {said.mark}, {of.confirmed} was confirmed"
            yield Line(Alert.MARK_BEHIND, detail, lacks)

    def unopened(self, said: Unopened) -> Steps:
        self.is_answered = True
        yield Unserved(self.target, said.reason)

    # --- sending ------------------------------------------------------------------------------

    @property
    def has_work(self) -> bool:
        return self.is_opened and (bool(self.parts) or self._may_read)

    @property
    def _may_read(self) -> bool:
        """Nothing goes past a message that is being set aside: the target's mark would pass it, and
        after a crash it would be taken for appended."""
        if not self.has_news or self.is_reading or self.parts or self.aside:
            return False
        return self.allowance.is_open and self.untold_bytes < UNTOLD_MAX

    def turn(self, goes_on: bool) -> Frame | Read | None:
        """One read, or one part; `goes_on`: what is not yet begun may begin."""
        if self.parts:
            return self.parts.popleft()
        if not (goes_on and self.is_opened and self._may_read):
            return None
        self.is_reading = True
        left = self.allowance
        return Read(self.target, left.left_messages, min(left.left_bytes, self.batch_bytes))

    def read(self, batch: Batch | None) -> tuple[Frame | Action, ...]:
        self.is_reading = False
        if batch is None:
            self.has_news = False
            return ()
        self.cursor = batch.end
        size = len(batch.records)
        redelivered = batch.first < self.doubt_end
        if batch.messages == 1 and size > self.message_bytes:
            self.aside.append(batch.first)
            reason = f"too large: {size} bytes, and the target takes {self.message_bytes}"
            return (SetAside(self.target, batch.first, reason),)
        self.batch_bytes = min(2 * self.batch_bytes, self.part_bytes)
        self.allowance.spend(batch.messages, size)
        self._untold.append((batch.end, size))
        self.untold_bytes += size
        if size > self.part_bytes:
            self._cut(batch, redelivered)
            return ()
        return (
            Records(
                self.target, batch.first, batch.end, batch.messages, redelivered, batch.records
            ),
        )

    def _cut(self, batch: Batch, redelivered: bool) -> None:
        view = memoryview(batch.records)
        for at in range(0, len(view), self.part_bytes):
            body = view[at : at + self.part_bytes]
            self.parts.append(Part(self.target, batch.first, at, len(view), redelivered, body))

    # --- what comes back ----------------------------------------------------------------------

    def credit(self, said: Credit) -> Steps:
        self.allowance.raise_to(said.messages, said.bytes)
        yield from ()

    def confirm(self, said: Confirm) -> Steps:
        if said.end > self.cursor:
            detail = f"{said.end} was confirmed, and {self.cursor} was sent"
            raise broken(Reason.UNEXPECTED, detail)
        yield from self._confirmed(said.end, said.level)

    def _confirmed(self, end: int, level: Level) -> Steps:
        self.told = max(self.told, end)
        while self._untold and self._untold[0][0] <= self.told:
            self.untold_bytes -= self._untold.popleft()[1]
        done = min((self.told, *self.aside))
        if done > self.confirmed:
            self.confirmed = done
            yield Release(self.target, done, level)

    def released_to(self, end: int) -> None:
        self.released = max(self.released, end)

    def reject(self, said: Reject) -> Steps:
        if not self.confirmed <= said.position < self.cursor or said.position in self.aside:
            raise broken(Reason.UNEXPECTED, f"{said.position} was rejected, but is not on its way")
        self.aside.append(said.position)
        yield SetAside(self.target, said.position, said.reason)

    def dealt(self, position: int) -> Steps:
        if position not in self.aside:
            return
        self.aside.remove(position)
        if self.is_opened and position < self.cursor:  # else it was not sent here
            yield Passed(self.target, position)
        yield from self._confirmed(self.told, self.outlet.level)

    @property
    def is_idle(self) -> bool:
        """Nothing is in doubt, also after a crash of either end."""
        is_busy = self.parts or self.aside or self.is_reading or not self.is_answered
        return not is_busy and (not self.is_opened or self.released >= self.cursor)
