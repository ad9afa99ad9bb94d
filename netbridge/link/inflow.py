"""The target's end of the flow of one target.

One buffer of records is poured at a time.  What came and is not appended is held here, bounded by
the window, and is in the source's ring as well.  A message that the target refuses stops the flow
of this target until the source has dealt with it: if the mark were moved on before, a link that is
lost in that moment would lose the message.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from shmbroker.netbridge.link.action import Action, CloseSink, OpenSink, Owes, Pour, Skip
from shmbroker.netbridge.link.broken import broken
from shmbroker.netbridge.link.credit import Window
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.wire.frame import (
    Body,
    Confirm,
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

Steps = Iterator[Frame | Action]
FEW = 8
"""Confirms of fewer messages wait a moment for more: a frame for each message would cost both ends
more than the message did."""


@value
class Poured:
    """How far a pour got; all of it is dealt with, or it is full, or the next one is refused."""

    bytes: int
    messages: int
    end: int
    """Below it all is appended."""
    confirmed: int = 0
    """Below it all has the level that the source has asked for."""
    is_full: bool = False
    refused: str = ""
    position: int = 0
    """Of the refused message, and the bytes of its record."""
    skip: int = 0


class Held:
    """Records that are not appended yet; without any: a message that its source has passed."""

    __slots__ = ("end", "records", "redelivered")

    def __init__(self, records: memoryview, end: int, redelivered: bool) -> None:
        self.records, self.end, self.redelivered = records, end, redelivered


class Inflow:
    def __init__(self, said: Open, times: LinkTimes, later: int = 0) -> None:
        """`later`: what our clock says more than the source's, in nanoseconds."""
        self.said = said
        self.later = later
        self.target = said.target
        self.times = times
        self.window = Window(times)
        self.held: deque[Held] = deque()
        self.is_opened = self.is_resumed = False
        self.is_pouring = self.is_full = False
        self.refused: Poured | None = None
        self.next = 0
        """No message before it comes any more on this connection."""
        self.appended = self.passed = self.confirmed = self.told = 0
        """Below these the mark is; or all is dealt with; or has the level; or that was told."""
        self.part: bytearray | None = None
        self.part_of: Part | None = None

    def begin(self) -> Steps:
        of = self.said
        yield OpenSink(of.target, of.kind, of.name, of.origin, of.level, of.exact, self.later)

    def opened(self, mark: int, confirmed: int, message_bytes: int) -> Steps:
        self.is_opened = True
        self.appended = self.passed = mark
        self.confirmed = self.told = confirmed
        most = min(message_bytes, self.times.max_message_size)
        yield Opened(self.target, mark, confirmed, most, *self.window.first())

    def unopened(self, reason: str) -> Steps:
        yield Unopened(self.target, reason[:500])

    def resume(self, said: Resume) -> Steps:
        if not self.is_opened or self.is_resumed:
            raise broken(Reason.UNEXPECTED, f"target {self.target} resumes, but was not opened")
        self.is_resumed = True
        self.next = said.position
        self.passed = max(self.passed, said.position)
        yield from self._tell()

    # --- what comes ---------------------------------------------------------------------------

    def _came(self, first: int, messages: int, size: int) -> None:
        if not self.is_resumed or first < self.next:
            raise broken(Reason.UNEXPECTED, f"target {self.target}: {first} comes out of turn")
        if not self.window.take(messages, size):
            raise broken(Reason.CREDIT, f"target {self.target}: {size} bytes beyond its credit")

    def records(self, said: Records) -> Steps:
        if self.part is not None:
            raise broken(Reason.UNEXPECTED, f"target {self.target}: a message has not all parts")
        self._came(said.first, said.messages, len(said.body))
        yield from self._hold(said.body, said.end, said.redelivered)

    def parts(self, said: Part) -> Steps:
        if said.total > self.times.max_message_size:
            raise broken(Reason.CREDIT, f"target {self.target}: {said.total} bytes are too large")
        if self.part is None:
            self._came(said.first, 1, said.total)
            self.part, self.part_of = bytearray(), said
        of = self.part_of
        assert of is not None
        if (said.first, said.total, said.offset) != (of.first, of.total, len(self.part)):
            raise broken(Reason.UNEXPECTED, f"target {self.target}: a part comes out of turn")
        self.part += said.body
        if len(self.part) == said.total:
            whole, self.part = self.part, None
            yield from self._hold(whole, said.first + 1, said.redelivered)

    def _hold(self, records: Body | bytearray, end: int, redelivered: bool) -> Steps:
        self.next = max(self.next, end)
        self.held.append(Held(memoryview(records), end, redelivered))
        yield from self._go_on()

    def passes(self, said: Passed) -> Steps:
        refused = self.refused
        if refused is not None and refused.position == said.position:
            self.refused = None
            self.held[0].records = self.held[0].records[refused.skip :]
            self.window.appended(1, refused.skip)
            yield from self._skip(said.position + 1)
            yield from self._go_on()
        elif self.is_resumed:
            yield from self._hold_passed(said.position + 1)
        else:
            raise broken(Reason.UNEXPECTED, f"target {self.target}: {said.position} is passed")

    def _hold_passed(self, end: int) -> Steps:
        """It needs no credit, so those in a row are one."""
        last = self.held[-1] if self.held else None
        if last is None or last.records:
            yield from self._hold(b"", end, False)
            return
        self.next = max(self.next, end)
        last.end = max(last.end, end)
        yield from self._go_on()

    # --- appending ----------------------------------------------------------------------------

    def _go_on(self) -> Steps:
        if self.held and not (self.is_pouring or self.is_full or self.refused is not None):
            yield from self._pour()
        yield from self._tell()

    def _pour(self) -> Steps:
        while self.held and not self.held[0].records:
            end = self.held.popleft().end
            if end > max(self.appended, self.passed):
                yield from self._skip(end)
        if self.held:
            self.is_pouring = True
            first = self.held[0]
            yield Pour(self.target, first.records, first.redelivered)

    def _skip(self, end: int) -> Steps:
        """The mark moves past what its source has dealt with: it is confirmed when that is synced,
        else a mark that a crash has taken back would look like messages that are missing."""
        self.appended = max(self.appended, end)
        self.passed = max(self.passed, end)
        yield Skip(self.target, end)

    def poured(self, told: Poured) -> Steps:
        self.is_pouring = False
        first = self.held[0]
        first.records = first.records[told.bytes :]
        self.window.appended(told.messages, told.bytes)
        self.appended = max(self.appended, told.end)
        self.passed = max(self.passed, told.end)
        self.confirmed = max(self.confirmed, told.confirmed)
        self.is_full = told.is_full
        if told.refused:
            self.refused = told
            yield Reject(self.target, told.position, told.refused[:500])
        yield from self._go_on()

    def room(self) -> Steps:
        """A target that was full may have room."""
        self.is_full = False
        yield from self._go_on()

    def has_confirmed(self, end: int) -> Steps:
        """All below has the level that the source asked for."""
        self.confirmed = max(self.confirmed, end)
        yield from self._tell()

    def want(self, messages: int) -> Steps:
        self.window.want(messages)
        yield from self._tell()

    def _tell(self) -> Steps:
        if not self.is_resumed:
            return
        credit = self.window.news(self.target)
        if credit is not None:
            yield credit
        owed = self._reached - self.told
        if owed >= FEW:
            yield from self.tell_confirmed()
        elif owed > 0:
            yield Owes(self.target)

    @property
    def _reached(self) -> int:
        return self.passed if self.confirmed >= self.appended else self.confirmed

    def tell_confirmed(self) -> Steps:
        if self._reached > self.told:
            self.told = self._reached
            yield Confirm(self.target, self.told, self.said.level)

    @property
    def is_idle(self) -> bool:
        return not self.held and self.part is None and self.told >= self.passed

    def end(self, forgets: bool) -> Steps:
        yield CloseSink(self.target, forgets)
