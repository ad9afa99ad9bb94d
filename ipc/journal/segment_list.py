"""Which segments of a journal are needed, and where each ends: its newest list holds."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from shmbroker.ipc._native import ffi
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.segment import PAGE, Segment
from shmbroker.ipc.journal.segment_folder import SegmentFolder

LISTED: Final = Struct("=2q")
UNKNOWN_END: Final = 0
AT_LEAST: Final = 1
"""A bit of an end, which is a multiple of 8: it may be further on."""


@dataclass(slots=True)
class Listed:
    """A segment that is needed."""

    serial: int
    end: int
    """Or UNKNOWN_END, or one with AT_LEAST."""

    @property
    def is_known(self) -> bool:
        return self.end != UNKNOWN_END and not self.end & AT_LEAST

    @property
    def reached(self) -> int:
        """What was synced reaches that far, at least."""
        return self.end & ~AT_LEAST


@dataclass(slots=True)
class SegmentList:
    entries: list[Listed]
    """Ascending."""
    ignored: int = 0
    """Segments that are there and not needed."""


def read_list(folder: SegmentFolder, *, salvage: bool = False) -> SegmentList:
    """What the newest list says, and the segments from there on; a salvage passes over what it
    cannot read."""
    reached = folder.reached()
    serials = folder.serials()
    newest, entries = len(serials), None
    while entries is None and newest > 0:
        newest -= 1
        try:
            entries = _last_in(folder, serials[newest])
        except Error:
            if not salvage:
                raise
    if entries is None:
        entries, newest = [], 0
    found = SegmentList(entries, max(newest - len(entries), 0))
    entries += [Listed(serial, UNKNOWN_END) for serial in serials[newest:]]
    if reached is not None:
        _note_reached(entries, serials[newest] if serials else 0, *reached)
    return found


def _last_in(folder: SegmentFolder, serial: int) -> list[Listed] | None:
    """The last list in a segment; None if it has not one whole frame."""
    with Segment.there(folder, serial) as segment:
        passing = ffi.new("sb_passing *")
        segment.pass_frames(passing)
        if not passing.last.number:
            return None
        if segment.kind_at(PAGE) != records.SEGMENTS:
            raise segment.damaged(f", offset {PAGE}: a segment begins with its list")
        body = segment.body_at(passing.list)
        entries = [Listed(*each) for each in LISTED.iter_unpack(body[: len(body) & -LISTED.size])]
        before = 0
        for each in entries:
            if not before < each.serial < serial or each.end < 0:
                raise segment.damaged(": its list of segments contradicts itself")
            before = each.serial
        return entries


def _note_reached(entries: list[Listed], newest: int, serial: int, end: int) -> None:
    """A segment that nobody has listed yet was synced so far: if it is not there, it is missing."""
    for each in entries:
        if each.serial == serial:
            if each.end == UNKNOWN_END or each.end & AT_LEAST:
                each.end = max(each.end, end | AT_LEAST)
            return
    if serial > newest:
        entries.append(Listed(serial, end | AT_LEAST))
        entries.sort(key=lambda each: each.serial)
