"""A backup of a store, taken while its broker is live: one moment of its journal and its pages.

    backup.json   what it is; written last, so a folder without it is no backup
    journal/      the segments that were needed at that moment, up to the last whole frame
    pages/        the page files of that moment

The journal is read frame by frame as a replica reads it (ipc/journal/history.c), so each frame is
checked on its way, and a segment that is recycled meanwhile is noticed.  A message is in the
journal, in a page file, or in the journal again.  So the moment is one at which no page file has
changed between two looks, and the journal was read to its end between them.

Segments of an earlier backup that are still needed are not copied: they get one more name.  (The
segments of the store itself are written over once they are not needed.)
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.errors import (
    DiskFull,
    Error,
    InvalidArgument,
    JournalDamaged,
    MessageGone,
    NotFound,
)
from shmbroker.ipc.base.trust import check_folder, make_folder
from shmbroker.ipc.instance import full_disk
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.page_files import Looked, Pages, copy_file
from shmbroker.ipc.instance.store import (
    JOURNAL,
    NODE,
    PAGES,
    journal_of,
    node_of_journal,
    pages_of,
    read_node,
)
from shmbroker.ipc.instance.whole import read_whole, sync_folder, write_whole
from shmbroker.ipc.journal.history import History, last_places
from shmbroker.ipc.journal.place import FRAME_BITS, Place
from shmbroker.ipc.journal.replay import Replay, frame_text
from shmbroker.ipc.journal.segment import HEADER, PAGE
from shmbroker.ipc.journal.segment_folder import segment_name
from shmbroker.ipc.journal.shipping import shipped

FILE: Final = "backup.json"
FORMAT: Final = 1

PAGE_FILE: Final = r"[0-9a-f]+/[0-9a-f]+\.page"

SEGMENTS_LOST_MAX: Final = 100
"""So often it begins again, because a segment was recycled before it was read."""
STILL_SECONDS: Final = 60.0
"""So long it waits for a moment at which no page file changes."""

Noted = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Backup:
    """What backup.json says."""

    shmbroker: str
    """The version that made it."""
    vhost: str
    node: str
    taken_at: str
    epoch: int
    frame: str
    """The last one: later ones are not in it."""
    end: int
    """Of that frame, in its segment."""
    segments: int = 0
    bytes: int = 0
    copied: int = 0
    """Of these bytes; the others are shared with an earlier backup."""
    pages: dict[str, list[object]] = field(default_factory=dict)
    """Of each page file its size and its checksum."""
    format: int = FORMAT


NOTHING: Final = Backup("", "", "", "", 0, "", 0)


def of_folder(folder: Path) -> Backup:
    """NotFound if it is no backup; InvalidArgument if it is one of another version."""
    if not (folder / FILE).exists():
        raise NotFound(f"{folder} is no backup, or one that was not finished: it has no {FILE}")
    found = read_whole(folder / FILE)
    if found.get("format", FORMAT) != FORMAT:
        raise InvalidArgument(
            f"{folder} has format {found.get('format')} of a backup, and this shmbroker reads "
            f"format {FORMAT}: use the version that made it, {found.get('shmbroker')}"
        )
    if not is_whole(found):
        raise JournalDamaged(f"{folder / FILE} is damaged: it does not say what is in the backup")
    return Backup(**found)


def is_whole(found: dict[str, Any]) -> bool:
    """It says all that backup.json says, and nothing else."""
    kinds = {name: type(value) for name, value in asdict(NOTHING).items()}
    pages = found.get("pages")
    return (
        {name: type(value) for name, value in found.items()} == kinds
        and isinstance(pages, dict)
        and all(
            re.fullmatch(PAGE_FILE, name) and isinstance(told, list)
            and [type(each) for each in told] == [int, str]
            for name, told in pages.items()
        )
    )  # fmt: skip


# --- the journal ----------------------------------------------------------------------------------


class Segments:
    """The segments of a backup while it is made: frames are put where they are in the store."""

    def __init__(self, source: Path, target: Path) -> None:
        self.source, self.target = source, target
        self.serial = self.end = 0
        self.last: Place | None = None
        """The frame that was put last."""
        self._file = -1
        make_folder(target)

    def begin(self, since: Path, last: Place, end: int) -> None:
        """Go on behind an earlier backup, whose last frame this is, and ends there."""
        *sealed, newest = sorted(since.glob("*.journal"))
        for each in sealed:
            try:
                os.link(each, self.target / each.name)
            except OSError:  # another file system
                copy_file(each, self.target / each.name)
        self.serial, self.end, self.last = int(newest.stem, 16), end, last
        if not head_of(self.source / newest.name):
            return  # nothing of it is needed any more
        copy_file(newest, self.target / newest.name, end)
        self._file = os.open(self.target / newest.name, os.O_RDWR | os.O_CLOEXEC)

    def put(self, frames: memoryview) -> None:
        """MessageGone: the file of a segment was recycled just now."""
        for place, body in shipped(frames):
            serial, within = place.number >> FRAME_BITS, place.number & (1 << FRAME_BITS) - 1
            if serial != self.serial or within == 1:
                self._next(serial, place.seal)
            self._write(memoryview(body))
            self.last = place

    def _write(self, body: memoryview) -> None:
        """All of it, or OSError: a disk that becomes full takes a part first."""
        while body:
            wrote = os.pwrite(self._file, body, self.end)
            self.end += wrote
            body = body[wrote:]

    def _next(self, serial: int, seal: int) -> None:
        name = segment_name(serial)
        try:
            file = os.open(self.source / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise MessageGone(f"{name} was recycled") from None
        with os.fdopen(file, "rb") as read:
            header = read.read(PAGE)
        if len(header) < PAGE or int.from_bytes(header[-4:], "little") != seal:
            raise MessageGone(f"{name} was recycled")
        self._done()
        self._file = os.open(
            self.target / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600
        )
        os.pwrite(self._file, header, 0)
        os.ftruncate(self._file, HEADER.unpack_from(header)[5])
        self.serial, self.end = serial, PAGE

    def _done(self) -> None:
        if self._file >= 0:
            file, self._file = self._file, -1
            try:
                os.fsync(file)
            finally:
                os.close(file)

    def close(self) -> None:
        self._done()
        sync_folder(self.target)


class Reading:
    """A journal that is read while it is written, into a backup."""

    def __init__(self, source: Path, target: Path, since: Path | None, noted: Noted) -> None:
        self.segments = Segments(source, target)
        self._source, self._noted = source, noted
        self._history = History(source)
        self._lost = 0
        if since is not None:
            self._go_on(since)

    def _go_on(self, since: Path) -> None:
        before = of_folder(since)
        place = check_last(since, before)
        if self._history.seek(place) or self._has_some_of(since / JOURNAL):
            self.segments.begin(since / JOURNAL, place, before.end)
            self._history.resume(place)
            return
        self._history.close()
        self._history = History(self._source)
        self._noted(f"nothing of {since} can be used: all is copied")

    def _has_some_of(self, since: Path) -> bool:
        """The last segment of an earlier backup was let go of, and not all of those before."""
        *sealed, newest = sorted(since.glob("*.journal"))
        heads = [(head_of(self._source / each.name), head_of(each)) for each in sealed]
        there = [one == other for one, other in heads if one]
        return any(there) and all(there) and not head_of(self._source / newest.name)

    def read_to_end(self) -> None:
        """All frames that are there by now."""
        while True:
            try:
                frames = self._history.read()
                if not frames:
                    return
                self.segments.put(frames)
            except MessageGone as gone:
                self._again(gone)

    def _again(self, gone: MessageGone) -> None:
        """A segment was recycled: it is not needed any more, says a later list."""
        self._lost += 1
        if self._lost > SEGMENTS_LOST_MAX:
            raise Error(
                f"{self._source} is written faster than it can be read ({gone}): begin again when "
                "less is published, or back up to a faster disk"
            )
        self._history.close()
        self._history, last = History(self._source), self.segments.last
        if last is not None:
            self._history.resume(last)

    def close(self) -> None:
        self._history.close()
        self.segments.close()


def head_of(segment: Path) -> bytes:
    """By which it is told from others of its name; nothing if there is none."""
    try:
        with segment.open("rb") as file:
            return file.read(PAGE)
    except FileNotFoundError:
        return b""


def checked(journal: Path) -> set[int]:
    """The segments that are needed, with all frames checked; JournalDamaged if one is not whole."""
    with Replay(journal) as replay:
        return {record.serial for record in replay}


def check_last(folder: Path, made: Backup) -> Place:
    """The last frame; JournalDamaged if it is not the one that the backup ends with."""
    last, _ = last_places(folder / JOURNAL)
    if last is None or frame_text(last.number) != made.frame:
        raise JournalDamaged(
            f"{folder / JOURNAL} ends with frame {frame_text(last.number) if last else 0}, and "
            f"the backup with {made.frame}: the file was damaged later"
        )
    return last


# --- all of it ------------------------------------------------------------------------------------


def take(config: Config, target: Path, since: Path | None, noted: Noted) -> Backup:
    """A backup in a folder that is made for it; NotFound if the store has no journal."""
    check_target(config, target)
    journal = journal_of(config)
    if not any(journal.glob("*.journal")):
        raise NotFound(f"{journal} has no segment: nothing was durable in this store yet")
    check_folder(journal)
    make_folder(target)
    try:
        made = taken(config, target, since, noted)
        write_whole(target / FILE, asdict(made), synced=True)
    except BaseException as error:
        shutil.rmtree(target, ignore_errors=True)
        if isinstance(error, OSError) and full_disk.is_full(error):
            raise DiskFull(f"{target}: {error.strerror}: nothing is left there") from error
        raise
    return made


def check_target(config: Config, target: Path) -> None:
    for folder in (config.store, journal_of(config), pages_of(config)):
        if target.resolve().is_relative_to(folder.resolve()):
            raise InvalidArgument(f"{target} is in the store itself: name a folder elsewhere")
    if target.exists() and any(target.iterdir()):
        why = "is not empty"
        if (target / JOURNAL).exists() and not (target / FILE).exists():
            why = "has a backup that was not finished, and may be removed"
        raise InvalidArgument(f"{target} {why}: name a folder that is made for the backup")


def taken(config: Config, target: Path, since: Path | None, noted: Noted) -> Backup:
    reading = Reading(journal_of(config), target / JOURNAL, since, noted)
    pages = Pages(pages_of(config))
    try:
        reading.read_to_end()  # what takes long, first
        copies = pages.copy(target / PAGES, still(reading, pages))
    finally:
        pages.close()
        reading.close()
    made = described(config, reading.segments, copies)
    try:
        return kept(target, made)
    except JournalDamaged as error:
        if since is None:
            raise
        raise JournalDamaged(
            f"{since} is damaged, or this store is: see shmbroker store verify {since}, and back "
            f"up without --since ({error})"
        ) from error


def still(reading: Reading, pages: Pages) -> Looked:
    """Read the journal to a moment at which the pages do not change: how they are then."""
    ends_at = time.monotonic() + STILL_SECONDS
    while time.monotonic() < ends_at:
        with suppress(MessageGone):
            pages.look()  # whatever is new is held first: that takes longer than to look again
            reading.read_to_end()
            seen = pages.look()
            reading.read_to_end()
            if pages.look() == seen:
                return seen
    raise Error(
        f"the page files of {pages.source} did not stand still for {STILL_SECONDS:.0f} s: back up "
        "when less is published"
    )


def described(config: Config, of: Segments, pages: dict[str, list[object]]) -> Backup:
    from importlib.metadata import version  # some 30 ms

    node, last = read_node(config.store / NODE), of.last
    assert last is not None  # a segment begins with a frame
    return Backup(
        shmbroker=version("shmbroker"),
        vhost=config.vhost,
        node=node.node if node is not None else node_of_journal(of.target),
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        epoch=last.epoch,
        frame=frame_text(last.number),
        end=of.end,
        pages=pages,
    )


def kept(target: Path, made: Backup) -> Backup:
    """Checked, without what is not needed by now: what is left."""
    needed = checked(target / JOURNAL)
    check_last(target, made)
    size = copied = 0
    for each in sorted((target / JOURNAL).glob("*.journal")):
        if int(each.stem, 16) in needed:
            status = each.stat()
            size += status.st_blocks * 512
            copied += status.st_blocks * 512 * (status.st_nlink == 1)
        else:
            each.unlink()
    paged = sum(int(str(each[0])) for each in made.pages.values())
    fields = asdict(made) | {
        "segments": len(needed), "bytes": size + paged, "copied": copied + paged,
    }  # fmt: skip
    return Backup(**fields)


def verified(folder: Path) -> Backup:
    """JournalDamaged if something of it does not check."""
    found = of_folder(folder)
    needed = checked(folder / JOURNAL)
    check_last(folder, found)
    if len(needed) != found.segments:
        raise JournalDamaged(
            f"{folder / JOURNAL} has {len(needed)} segments that are needed; {FILE} says "
            f"{found.segments}"
        )
    there = {str(each.relative_to(folder / PAGES)) for each in (folder / PAGES).glob("*/*")}
    if more := sorted(there - found.pages.keys()):
        raise JournalDamaged(f"{folder / PAGES / more[0]} is not of this backup: remove it")
    for name, (size, digest) in found.pages.items():
        path = folder / PAGES / name
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise JournalDamaged(f"{path} is missing") from None
        if len(content) != size or hashlib.blake2b(content, digest_size=16).hexdigest() != digest:
            raise JournalDamaged(f"{path} is not what was backed up: its checksum is another one")
    return found
