"""What a journal has that another one lacks, both of one node: its tail.

A frame has the name that its author gave it in whichever journal it is: there it lies, or the
first COPIED of the frame says so.  The tail is behind the last frame that both have.  If segments
that both had are gone, that frame may be unknown, or lie further ahead: then the tail is too large,
and it says so.  Who reads it reads all of both journals.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from shmbroker.core.layout import POSITION_MASK, RECORD_KIND_SHIFT
from shmbroker.ipc._native import ffi
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.export import Needed
from shmbroker.ipc.journal.history import History
from shmbroker.ipc.journal.place import FRAME_BITS, Place
from shmbroker.ipc.journal.replay import Record, Replay
from shmbroker.ipc.journal.shipping import shipped
from shmbroker.ipc.journal.stored import HEAD

PLACE: Final = struct.Struct("=4q")
Message = tuple[int, int, int]
"""Kind (MESSAGE or UNPLACED), queue, position."""
Ranges = list[tuple[int, int, int, int]]
"""Kind, queue, first and last position."""

assert PLACE.size == ffi.sizeof("sb_place")


class Frame(NamedTuple):
    place: Place
    original: Place
    """As its author has named it."""
    repeated: Place | None
    """The frame of the live that was followed."""
    messages: list[tuple[Message, int]]
    """With the CRC of the body."""


@dataclass(slots=True)
class Tail:
    after: int = 0
    """The last frame, of this journal, that both are known to have; 0: none is."""
    is_exact: bool = False
    """The other journal has no gap behind that frame."""
    messages: list[Message] = field(default_factory=list)
    """In no other journal, and not acknowledged in this one."""
    bytes: int = 0

    @property
    def ranges(self) -> Ranges:
        found: Ranges = []
        for kind, queue, position in sorted(self.messages):
            if found and found[-1][:2] == (kind, queue) and found[-1][3] == position - 1:
                found[-1] = (kind, queue, found[-1][2], position)
            else:
                found.append((kind, queue, position, position))
        return found


def frames(folder: Path, passed: list[int]) -> Iterator[Frame]:
    """Those that are needed, up to one that does not check; somebody may write the journal, and let
    go of segments: those are noted."""
    with History(folder, passed) as history:
        while read := history.read():
            for place, body in shipped(read):
                yield _frame(place, body)


def _frame(place: Place, body: memoryview) -> Frame:
    at, copied, messages = 0, list[Place](), list[tuple[Message, int]]()
    while at < len(body):
        _, crc, length, _, queue, where = HEAD.unpack_from(body, at)
        kind = where >> RECORD_KIND_SHIFT
        if kind in (records.MESSAGE, records.UNPLACED):
            messages.append(((kind, queue, where & POSITION_MASK), crc))
        elif kind == records.COPIED and length == PLACE.size:
            copied.append(Place(*PLACE.unpack_from(body, at + HEAD.size)))
        at += HEAD.size + (length + 7 & -8)
    first, last = (copied[0], copied[-1]) if copied else (place, None)
    return Frame(place, first, last, messages)


def tail(old: Path, other: Path) -> Tail:
    """Of `old`, which nobody writes."""
    names, gaps = _names(other)
    found, passed = Tail(), list[int]()
    for frame in frames(old, passed):
        name = frame.original
        if (newest := names.get(name.seal)) is not None and name.number <= newest:
            found.after, found.is_exact = frame.place.number, (name.seal, name.number) not in gaps
    crcs = _left(old, found)
    for frame in frames(other, passed) if crcs else ():
        for message, crc in frame.messages:
            if message in crcs and crcs[message][0] == crc:
                del crcs[message]  # a segment that was made small has it behind that frame
    found.is_exact = found.is_exact and not passed
    found.messages = list(crcs)
    found.bytes = sum(size for _, size in crcs.values())
    return found


def _names(folder: Path) -> tuple[dict[int, int], set[tuple[int, int]]]:
    """By the seal of their authors' segments the last frame of each; and behind which ones frames
    may be missing, or none follows."""
    newest: dict[int, int] = {}
    gaps, passed = set[tuple[int, int]](), list[int]()
    former: Frame | None = None
    for frame in frames(folder, passed):
        name = frame.original
        newest[name.seal] = max(name.number, newest.get(name.seal, 0))
        if former is not None and not _follows(former, frame, passed):
            gaps.add((former.original.seal, former.original.number))
        former = frame
    if former is not None:
        gaps.add((former.original.seal, former.original.number))
    return newest, gaps


def _follows(former: Frame, frame: Frame, passed: list[int]) -> bool:
    """As the live that was followed has written them: there is nothing between the two."""
    begin, end = former.place.number >> FRAME_BITS, frame.place.number >> FRAME_BITS
    if any(begin <= serial < end for serial in passed):
        return False
    last, now = former.repeated or former.place, frame.repeated or frame.place
    if (former.repeated is None) != (frame.repeated is None):
        return former.repeated is not None  # it has taken over behind that one
    if last.number >> FRAME_BITS == now.number >> FRAME_BITS:
        return now.number == last.number + 1
    return now.number >> FRAME_BITS == (last.number >> FRAME_BITS) + 1


def _left(old: Path, found: Tail) -> dict[Message, tuple[int, int]]:
    """Messages behind that frame that are not acknowledged, with CRC and bytes."""
    needed, before = Needed(), set[Message]()
    placed: dict[Message, int] = {}
    unplaced: dict[int, tuple[Message, int]] = {}
    with Replay(old, salvage=True) as replay:
        for record in replay:
            needed.note(record)
            message = record.kind, record.queue, record.position
            if record.kind == records.QUEUES:
                unplaced.clear()  # the segment says which ones are left
            elif record.kind in (records.MESSAGE, records.UNPLACED) and record.frame <= found.after:
                before.add(message)
            elif record.kind == records.MESSAGE:
                placed[message] = len(record.body)
            elif record.kind == records.UNPLACED:
                unplaced.pop(record.position, None)
                if record.body:
                    unplaced[record.position] = message, len(record.body)
    crcs: dict[Message, int] = {}
    for frame in frames(old, []):
        if frame.place.number > found.after:
            crcs.update(frame.messages)
    there = [each for each in placed.items() if needed.is_there(*each[0][1:])]
    return {
        message: (crcs.get(message, -1), size)
        for message, size in (*there, *unplaced.values())
        if message not in before
    }


def within(old: Path, ranges: Ranges) -> Iterator[Record]:
    """These messages, in the order of the journal, and first the declarations of their queues."""
    queues = {queue for _, queue, _, _ in ranges}
    declared: dict[int, Record] = {}
    with Replay(old, salvage=True) as replay:
        for record in replay:
            if record.kind == records.QUEUE and record.queue in queues:
                declared[record.queue] = record
    yield from declared.values()
    told = set[Message]()
    wanted = _Ranges(ranges)
    with Replay(old, salvage=True) as replay:
        for record in replay:
            message = record.kind, record.queue, record.position
            if record.body and message in wanted and message not in told:
                told.add(message)
                yield record


class _Ranges:
    def __init__(self, ranges: Ranges) -> None:
        self._of: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for kind, queue, first, last in ranges:
            self._of.setdefault((kind, queue), []).append((first, last))

    def __contains__(self, message: Message) -> bool:
        kind, queue, position = message
        return any(first <= position <= last for first, last in self._of.get((kind, queue), ()))


def unretired(old: Path) -> Tail:
    """All of it, where nobody knows what others have."""
    try:
        sizes = _left(old, Tail())
    except Error:
        return Tail()
    return Tail(messages=list(sizes), bytes=sum(size for _, size in sizes.values()))
