"""A member's journal: frames with epoch, holder, number and a chain over all of them, on a disk.

What was written outlives the process; what is synced outlives the power.  A torn frame is as one
that was not written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from shmbroker.netbridge.election.question import Copy
from shmbroker.netbridge.history.event import Queue
from shmbroker.netbridge.member.standing import (
    Began,
    Copies,
    HandedOver,
    Parked,
    Past,
    Position,
    Record,
)
from shmbroker.netbridge.simulation.disk import Disk


@dataclass(frozen=True, slots=True)
class Put:
    queue: Queue
    message: str
    producer: str
    number: int


@dataclass(frozen=True, slots=True)
class Taken:
    """An acknowledgement."""

    queue: Queue
    message: str


@dataclass(frozen=True, slots=True)
class Made:
    """A queue, instead of its former incarnation: that is deleted."""

    queue: Queue


@dataclass(frozen=True, slots=True)
class Moved:
    """Into what goes to another node."""

    queue: Queue
    message: str


Op = Put | Taken | Made | Moved


@dataclass(frozen=True, slots=True)
class Frame:
    epoch: int
    holder: str
    number: int
    chain: int
    ops: tuple[Op, ...] = ()
    record: Record | None = None

    @property
    def position(self) -> Position:
        return Position(self.epoch, self.holder, self.number, self.chain)


def chained(before: int, epoch: int, holder: str, number: int, content: object) -> int:
    return hash((before, epoch, holder, number, content))


@dataclass(slots=True)
class Marks:
    """What a member notes for itself."""

    node: bytes = b""
    is_whole: bool = True
    left: tuple[int, int] | None = None
    """The age of the frame behind which stands that it has left in good order."""
    drained: int = 0
    """All that it has of this epoch, and before, is at another node."""
    closed: int = 0
    """This epoch began with nothing, after that."""
    standing: tuple[Position, tuple[Copy, ...]] | None = None
    """What it said when it was emptied, as long as it has nothing again."""

    def is_behind(self, last: Position) -> bool:
        """It is of a time after that in which it left.  Numbers alone do not say so: a journal that
        was emptied counts from 1 again."""
        return self.left is None or last.age > self.left


@dataclass(slots=True)
class Log:
    disk: Disk
    frames: list[Frame] = field(default_factory=list)
    synced: int = 0
    marks: Marks = field(default_factory=Marks)
    synced_marks: Marks = field(default_factory=Marks)
    aside: list[Frame] = field(default_factory=list)
    """Erased when the copy that takes its place is whole."""
    aside_synced: int = 0
    _generation: int = 0

    @property
    def last(self) -> Position:
        return self.frames[-1].position if self.frames else Position()

    def has(self, position: Position) -> bool:
        if position.number == 0:
            return True
        there = position.number <= len(self.frames)
        return there and self.frames[position.number - 1].position == position

    def append(
        self, epoch: int, holder: str, ops: tuple[Op, ...], record: Record | None = None
    ) -> Frame:
        number = len(self.frames) + 1
        before = self.frames[-1].chain if self.frames else 0
        chain = chained(before, epoch, holder, number, (ops, record))
        frame = Frame(epoch, holder, number, chain, ops, record)
        self.frames.append(frame)
        return frame

    def fits(self, frame: Frame) -> bool:
        before = self.frames[-1].chain if self.frames else 0
        content = (frame.ops, frame.record)
        expected = chained(before, frame.epoch, frame.holder, frame.number, content)
        return frame.number == len(self.frames) + 1 and frame.chain == expected

    def sync(self, told: Callable[[int], None]) -> None:
        """Everything that was written."""
        end, generation = len(self.frames), self._generation

        def effect() -> None:
            if generation == self._generation:
                self.synced = max(self.synced, end)
                told(end)

        self.disk.write(effect)

    def emptied(self) -> None:
        """What was here is elsewhere."""
        self.frames, self.synced = [], 0
        self._generation += 1

    def mark(self, told: Callable[[], None] = lambda: None, **changes: object) -> None:
        self.marks = replace(self.marks, **changes)  # type: ignore[arg-type]
        marks = self.marks

        def effect() -> None:
            self.synced_marks = marks
            told()

        self.disk.write(effect)

    def replaced(self, frames: Sequence[Frame], told: Callable[[], None]) -> None:
        """By a whole copy.  What was here stays until the copy is synced."""
        if not self.aside:
            self.aside, self.aside_synced = self.frames, self.synced
        self.frames, self.synced = list(frames), 0
        self._generation += 1
        self.sync(lambda end: None)

        def whole() -> None:
            self.aside = []
            told()

        self.mark(whole, is_whole=True, left=None)

    def loses_power(self) -> None:
        if self.aside and self.synced_marks.is_whole:
            # that the copy is half is synced before what was here is moved: it was not moved
            self.frames, self.synced = self.aside, self.aside_synced
        self.aside = []
        del self.frames[self.synced :]
        self.marks = self.synced_marks
        self._generation += 1

    def past(self, name: str, node: bytes) -> Past:
        """What a process finds when it starts."""
        marks = self.marks
        past = Past(node, self.last, (), marks.is_whole, marks.left is not None)
        for frame in self.frames:
            record = frame.record
            if isinstance(record, (Began, Copies)) and marks.is_behind(frame.position):
                if any(copy.member == name for copy in record.copies):
                    past = replace(past, has_left=False)
            if isinstance(record, Began):
                past = replace(past, copies=record.copies, is_forced=record.is_forced)
                past = replace(past, handed_to="", is_parked=False)
            elif isinstance(record, Copies):
                past = replace(past, copies=record.copies)
            elif isinstance(record, HandedOver):
                past = replace(past, handed_to=record.to)
            elif isinstance(record, Parked):
                past = replace(past, is_parked=True, all_know=record.all_know)
        if not self.frames and marks.is_whole and marks.standing is not None:
            last, copies = marks.standing
            past = replace(past, last=replace(last, number=0, chain=0), copies=copies)
            past = replace(past, has_left=not marks.is_behind(last))
        epoch = past.last.epoch
        return replace(
            past, has_drained=0 < epoch == marks.drained, is_closed=0 < epoch == marks.closed
        )


def records(frames: Sequence[Frame]) -> tuple[Record, ...]:
    return tuple(frame.record for frame in frames if frame.record is not None)
