"""Reading a journal: its records, checked, oldest first; and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shmbroker.core.codes import EMPTY, JOURNAL_DAMAGED, OK, TORN
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import error_for
from shmbroker.ipc.base.names import path_bytes
from shmbroker.ipc.journal import records

KIND_NAMES = {
    value: name.lower().replace("_", "-")
    for name, value in vars(records).items()
    if isinstance(value, int) and name != "KINDS_MAX"
}


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a journal, and where it lies."""

    kind: int
    queue: int
    position: int
    body: bytes
    serial: int
    offset: int
    frame: int
    """Its number through all segments: `frame_text` prints it."""
    last: bool

    @property
    def kind_name(self) -> str:
        return KIND_NAMES.get(self.kind, f"kind-{self.kind}")

    @property
    def segment(self) -> str:
        return segment_name(self.serial)


@dataclass(frozen=True, slots=True)
class Report:
    """What a replay has seen."""

    segments: int
    frames: int
    records: int
    messages: int
    bytes: int
    torn: int
    damages: int
    ignored: int
    epoch: int
    frame: int
    """The last one that is whole; 0: none."""


def frame_text(number: int) -> str:
    """The number of a frame as all that prints it does: 7:12 is frame 12 of segment 7."""
    text = ffi.new("char[]", lib.SB_FRAME_TEXT_BYTES)
    length: int = lib.sb_frame_text(number, text)
    return str(ffi.unpack(text, length).decode())


def segment_name(serial: int) -> str:
    return f"{serial:016x}.journal"


class Replay(Closable):
    """An iterator over the records of a folder.

    `noted` is told of the ends that were cut, because a crash has left them half written; damage is
    an error, JournalDamaged.  A salvage tells `noted` of damage too, and goes on behind it.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        salvage: bool = False,
        noted: Callable[[str], object] = lambda text: None,
    ) -> None:
        self.folder = str(folder)
        self._salvage = salvage
        self._noted = noted
        self._replay: Any = ffi.NULL
        made = ffi.new("sb_replay **")
        code = lib.sb_replay_open(path_bytes(self.folder), salvage, made)
        if code != OK:
            raise error_for(code, f"journal {self.folder}", ffi.errno, detail_of(code))
        self._replay = made[0]

    def close(self) -> None:
        lib.sb_replay_close(self._replay)
        self._replay = ffi.NULL

    def __iter__(self) -> Iterator[Record]:
        found = ffi.new("sb_journal_record *")
        while (code := lib.sb_replay_next(self._replay, found)) != EMPTY:
            if code == OK:
                yield Record(
                    found.kind,
                    found.queue,
                    found.position,
                    ffi.unpack(ffi.cast("char *", found.body), found.length),
                    found.serial,
                    found.offset,
                    found.frame,
                    bool(found.last),
                )
            elif code == TORN or (self._salvage and code == JOURNAL_DAMAGED):
                self._noted(detail_of(code))
            else:
                raise error_for(code, f"journal {self.folder}", ffi.errno, detail_of(code))

    def progress(self) -> tuple[int, int]:
        """Bytes read, of so many."""
        total = ffi.new("int64_t *")
        return lib.sb_replay_progress(self._replay, total), total[0]

    def report(self) -> Report:
        told = ffi.new("sb_journal_report *")
        lib.sb_replay_report(self._replay, told)
        return Report(**{name: getattr(told, name) for name in Report.__slots__})
