"""What a disk may have after a crash, from what native/storage.c wrote down.

A kill leaves everything that was called.  A power loss leaves what was synced, and of the rest any
part: of each sector one of its versions since the last sync, in any order; of the names in the
folder any of the changes since it was synced.  Folders in the folder are the same, by themselves.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

MADE, WRITTEN, SYNCED, LINKED, UNLINKED, RENAMED, FOLDER_SYNCED, MARKED, FOLDER_MADE = range(9)
OPENAT, PWRITE, FDATASYNC, FSYNC, LINKAT, UNLINKAT, RENAMEAT, FALLOCATE = range(8)
SECTOR: Final = 512

ENTRY = struct.Struct("=qqqq128s128s")

Folder = dict[str, bytes]


@dataclass(slots=True)
class Entry:
    """One call."""

    kind: int
    inode: int
    offset: int
    name: str
    other: str
    data: bytes


def entries(trace: Path) -> Iterator[Entry]:
    text, at = trace.read_bytes(), 0
    while at < len(text):
        kind, inode, offset, length, name, other = ENTRY.unpack_from(text, at)
        at += ENTRY.size
        data = text[at : at + length] if kind == WRITTEN else b""
        at += len(data)
        names = (each.rstrip(b"\0").decode() for each in (name, other))
        yield Entry(kind, inode, offset, *names, data)


@dataclass(slots=True)
class File:
    """What programs read, what the disk has for sure, and what it may have."""

    now: bytearray = field(default_factory=bytearray)
    synced: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes]] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        put(self.now, offset, data)
        self.pending.append((offset, data))

    def sync(self) -> None:
        self.synced = bytearray(self.now)
        self.pending.clear()

    def after_power_loss(self, random: Random, share: float) -> bytes:
        """Each sector is as of some moment since the last sync."""
        left = bytearray(self.synced)
        moments: dict[int, int] = {}
        for number, (offset, data) in enumerate(self.pending):
            for begin in range(offset - offset % SECTOR, offset + len(data), SECTOR):
                if begin not in moments:
                    moments[begin] = random.randrange(len(self.pending)) if share < 1 else 1 << 60
                    moments[begin] = moments[begin] if random.random() < share else -1
                if number <= moments[begin]:
                    low, high = max(begin, offset), min(begin + SECTOR, offset + len(data))
                    put(left, low, data[low - offset : high - offset])
        return bytes(left)


FOLDER: Final = File()


def is_in(name: str, folder: str) -> bool:
    return name.rpartition("/")[0] == folder


def reachable(names: dict[str, File]) -> dict[str, File]:
    """The files whose folders have their names, too."""

    def is_there(name: str) -> bool:
        folder = name.rpartition("/")[0]
        return not folder or (names.get(folder) is FOLDER and is_there(folder))

    return {name: file for name, file in names.items() if file is not FOLDER and is_there(name)}


def put(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset + len(data):
        content.extend(bytes(offset + len(data) - len(content)))
    content[offset : offset + len(data)] = data


class Storage:
    """A folder on a disk, as calls change it."""

    def __init__(self) -> None:
        self.files: dict[int, File] = {}
        self.now: dict[str, File] = {}
        self.synced: dict[str, File] = {}
        self.pending: list[tuple[Entry, File | None]] = []

    def apply(self, entry: Entry) -> None:
        if entry.kind == MADE:
            self.files[entry.inode] = File()
        if entry.kind == WRITTEN:
            self.files[entry.inode].write(entry.offset, entry.data)
        elif entry.kind == SYNCED:
            self.files[entry.inode].sync()
        elif entry.kind == FOLDER_SYNCED:
            there = {name: file for name, file in self.now.items() if is_in(name, entry.name)}
            other = {
                name: file for name, file in self.synced.items() if not is_in(name, entry.name)
            }
            self.synced = other | there
            self.pending = [each for each in self.pending if not is_in(each[0].name, entry.name)]
        elif entry.kind != MARKED:
            file = self.files[entry.inode] if entry.kind == MADE else self.now.get(entry.name)
            file = FOLDER if entry.kind == FOLDER_MADE else file
            change(self.now, entry, file)
            self.pending.append((entry, file))

    def after_kill(self) -> Folder:
        return {name: bytes(file.now) for name, file in reachable(self.now).items()}

    def after_power_loss(
        self, random: Random, share: float, share_of_names: float | None = None
    ) -> Folder:
        """Share: how much of what was not synced is left, of 1."""
        names = dict(self.synced)
        for entry, file in self.pending:
            if random.random() < (share if share_of_names is None else share_of_names):
                change(names, entry, file)
        names = reachable(names)
        left = {id(file): file.after_power_loss(random, share) for file in names.values()}
        return {name: left[id(file)] for name, file in names.items()}


def change(names: dict[str, File], entry: Entry, file: File | None) -> None:
    if entry.kind in (UNLINKED, RENAMED):
        names.pop(entry.name, None)
    if entry.kind in (LINKED, RENAMED) and file:
        names[entry.other] = file
    if entry.kind in (MADE, FOLDER_MADE) and file:
        names[entry.name] = file


def write_folder(folder: Path, content: Folder) -> None:
    """Make a folder's files these, whatever it had."""
    for path in folder.iterdir():
        if path.name not in content:
            path.unlink()
    for name, data in content.items():
        (folder / name).write_bytes(data)
