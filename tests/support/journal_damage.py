"""Flipped bits, cut files, noise: what is read of a journal then is right, or it is said.

    python -m tests.support.journal_damage FOLDER SEED COUNT

A frame that a crash may have torn, the last one of the newest segment, may be cut off, and that is
told.  Of anything else strict reading says JournalDamaged, with segment and offset; a salvage reads
all records but those that were hit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from shmbroker.ipc.base.errors import JournalDamaged
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.replay import Record, Replay, segment_name
from tests.support.journal_mutants import without_guard
from tests.support.journal_script import Objection
from tests.support.storage import Folder, write_folder

SEGMENT_BYTES = 32 << 10
PAGE = 4096
HEAD_BYTES = 32


def made(folder: Path) -> None:
    """Closed segments, a newest one, and one that is ready; one body looks like a record."""
    journal = Journal(folder, epoch=1, segment_bytes=SEGMENT_BYTES)
    random, position = Random(5), 0
    while journal.statistics().segments < 4 or position < 150:
        for _ in range(random.randint(1, 4)):
            journal.message(7, position, random.randbytes(random.choice((0, 10, 64, 900))))
            position += 1
        journal.commit()
        if position % 10 == 9:
            journal.message(8, position, a_record_of(folder, journal.statistics().offset))
            journal.commit()
    for _ in range(12):
        journal.message(7, position, b"behind")
        journal.commit()
        position += 1
    journal.wait()
    content = {path.name: path.read_bytes() for path in folder.glob("*.journal")}
    journal.close()
    write_folder(folder, content)


def a_record_of(folder: Path, end: int) -> bytes:
    """The bytes of the newest record, as somebody would get them who reads the file."""
    with Replay(folder) as replay:
        last = list(replay)[-1]
    return (folder / last.segment).read_bytes()[last.offset : end]


@dataclass(slots=True)
class Reading:
    """What was read, and what was said."""

    found: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str = ""


def read(folder: Path, *, salvage: bool = False) -> Reading:
    reading = Reading()
    try:
        with Replay(folder, salvage=salvage, noted=reading.notes.append) as replay:
            for record in replay:
                reading.found.append(record)
    except JournalDamaged as error:
        reading.error = str(error)
    return reading


def span(record: Record) -> range:
    whole = HEAD_BYTES + (len(record.body) + 7) // 8 * 8
    return range(record.offset, record.offset + whole)


def hits(record: Record, name: str, hit: range) -> bool:
    of = span(record)
    return record.segment == name and of.start < hit.stop and hit.start < of.stop


@dataclass(slots=True)
class Judge:
    """Knows what was there, and says what is wrong with what was read of it."""

    folder: Path
    content: Folder
    original: list[Record]

    def judge(self, name: str, damaged: bytes, hit: range) -> None:
        (self.folder / name).write_bytes(damaged)
        lost = [record for record in self.original if hits(record, name, hit)]
        self._strict(read(self.folder), name, lost, hit)
        whole = hit.start >= PAGE or len(hit) == 1
        self._salvaged(read(self.folder, salvage=True), lost, whole=whole)
        (self.folder / name).write_bytes(self.content[name])

    def _strict(self, reading: Reading, name: str, lost: list[Record], hit: range) -> None:
        last = self.original[-1]
        torn = bool(lost) and (lost[0].serial, lost[0].frame) == (last.serial, last.frame)
        rest = [r for r in self.original if (r.serial, r.frame) != (last.serial, last.frame)]
        if reading.error:
            if name not in reading.error:
                raise Objection(f"{name} is damaged, and that is said: {reading.error}")
            if reading.found != self.original[: len(reading.found)]:
                raise Objection(f"{name}: what was read before the damage is wrong")
            if lost and reading.found and (reading.found[-1].serial, reading.found[-1].offset) >= (
                lost[0].serial, lost[0].offset
            ):  # fmt: skip
                raise Objection(f"{name}: {hit} was read")
        elif torn:
            if reading.found != rest or not reading.notes:
                raise Objection(f"{name}: the last frame was hit at {hit}, and that is not told")
        elif reading.found != self.original:
            raise Objection(f"{name}: something is missing or wrong, and nothing is said; {hit}")
        elif lost or hit.start < PAGE:
            raise Objection(f"{name}: {hit} does not check, and nothing is said")

    def _salvaged(self, reading: Reading, lost: list[Record], *, whole: bool) -> None:
        wanted = [record for record in self.original if record not in lost]
        if reading.error and whole:
            raise Objection(f"a salvage goes on: {reading.error}")
        if reading.found != wanted and whole:
            raise Objection(f"salvage: {len(reading.found)} of {len(wanted)} records, or others")
        if lost and not reading.notes:
            raise Objection("salvage: a record is left out, and nothing is said")


def damages(random: Random, content: Folder, original: list[Record]) -> Iterator[
    tuple[str, bytes, range]
]:  # fmt: skip
    names = sorted(content)
    while True:
        name = random.choice(names)
        data = bytearray(content[name])
        of_file = [record for record in original if record.segment == name]
        match random.randrange(6):
            case 0 | 1 if of_file:
                at = random.choice(span(random.choice(of_file)))
                data[at] ^= 1 << random.randrange(8)
                yield name, bytes(data), range(at, at + 1)
            case 2:
                at = random.randrange(len(data))
                data[at] ^= 1 << random.randrange(8)
                yield name, bytes(data), range(at, at + 1)
            case 3:
                at = random.randrange(96)
                data[at] ^= 1 << random.randrange(8)
                yield name, bytes(data), range(at, at + 1)
            case 4 if of_file:
                at = random.randrange(PAGE, len(data)) // 512 * 512
                hit = range(at, at + random.choice((512, 4096)))
                data[at : hit.stop] = random.choice((random.randbytes, bytes))(len(hit))
                yield name, bytes(data[: len(content[name])]), hit
            case 5 if of_file:
                first = random.choice(of_file)
                data[first.offset : first.offset + 4] = random.randbytes(4)
                yield name, bytes(data), range(first.offset, first.offset + 4)


def cut_short(judge: Judge, random: Random) -> None:
    """A file that is shorter than it was."""
    name = random.choice(sorted(judge.content))
    size = random.randrange(len(judge.content[name]))
    (judge.folder / name).write_bytes(judge.content[name][:size])
    gone = range(size, 1 << 40)
    lost = [record for record in judge.original if hits(record, name, gone)]
    strict, salvaged = read(judge.folder), read(judge.folder, salvage=True)
    if not strict.error and (lost or strict.found != judge.original):
        raise Objection(f"{name} was cut at {size}, and nothing is said")
    if strict.error and name not in strict.error:
        raise Objection(f"{name} was cut at {size}, and that is said: {strict.error}")
    if size >= PAGE and salvaged.found != [r for r in judge.original if r not in lost]:
        raise Objection(f"salvage of {name}, cut at {size}: not all that is there")
    if lost and not (salvaged.notes or salvaged.error):
        raise Objection(f"salvage of {name}, cut at {size}: nothing is said")
    (judge.folder / name).write_bytes(judge.content[name])


def removed(judge: Judge) -> None:
    """A segment that is needed, and is not there."""
    needed = sorted({record.segment for record in judge.original})[:-1]
    for name in needed:
        (judge.folder / name).unlink()
        if name not in read(judge.folder).error:
            raise Objection(f"{name} is missing, and nothing is said")
        rest = [record for record in judge.original if record.segment != name]
        salvaged = read(judge.folder, salvage=True)
        if salvaged.found != rest or not salvaged.notes:
            raise Objection(f"salvage without {name}")
        (judge.folder / name).write_bytes(judge.content[name])


def noise(folder: Path, random: Random, content: Folder) -> None:
    """Anything: an answer, and no crash."""
    write_folder(folder, {})
    for serial in range(1, 4):
        data = bytearray(random.randbytes(random.choice((0, 100, PAGE, 3 * PAGE, SEGMENT_BYTES))))
        if random.random() < 0.7:
            data[:PAGE] = random.choice(sorted(content.values()))[:PAGE]
        (folder / segment_name(serial)).write_bytes(data)
    read(folder)
    read(folder, salvage=True)
    write_folder(folder, content)


def check(folder: Path, seed: int, count: int) -> str:
    random = Random(seed)
    made(folder)
    content = {path.name: path.read_bytes() for path in folder.glob("*.journal")}
    reading = read(folder)
    try:
        if reading.error or reading.notes:
            raise Objection(f"nothing is wrong, and is said: {reading.error} {reading.notes}")
        judge = Judge(folder, content, reading.found)
        if sum(record.kind == records.MESSAGE for record in reading.found) < 150:
            raise Objection("not all is read of what is well")
        if read(folder, salvage=True).found != reading.found:
            raise Objection("a salvage of what is well reads something else")
        removed(judge)
        for _, (name, damaged, hit) in zip(
            range(count), damages(random, content, reading.found), strict=False
        ):
            judge.judge(name, damaged, hit)
        for _ in range(count // 5):
            cut_short(judge, random)
            noise(folder, random, content)
    except Objection as objection:
        return str(objection)
    return f"{count} damages are well"


if __name__ == "__main__":
    with without_guard():
        print(check(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))  # noqa: T201
