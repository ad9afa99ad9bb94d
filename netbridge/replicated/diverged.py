"""What was set aside of a member's journal, and what nobody else has of that.

A set is counted when the new copy is whole, for then it is known what both have.  That reads both
journals, in a process of its own: confirms wait for the interpreter of the broker.  A file in the
set keeps what was found.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import Error, JournalDamaged
from shmbroker.ipc.instance.whole import read_whole, write_whole
from shmbroker.ipc.journal import divergence, records
from shmbroker.ipc.journal.export import folder_bytes, line_of
from shmbroker.ipc.journal.replay import Replay
from shmbroker.netbridge.member.codec import written
from shmbroker.netbridge.member.written import Written
from shmbroker.netbridge.replica.aside import ASIDE, JOURNAL, keep_newest, saved
from shmbroker.netbridge.wire.malformed import Malformed

NICE: Final = 10
COUNTS: Final = f"import os; os.nice({NICE}); from {__name__} import main; main()"
"""What it needs is loaded by then, too: that takes a second of a processor."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A set; for people."""

    number: int
    at: str
    """When it was set aside."""
    epoch: int
    holder: str
    """Who was live when its last frame was written."""
    messages: int
    """That no other member has, and that are not acknowledged in it."""
    size: int
    """Bytes of these."""
    is_exact: bool
    """The last frame that both have is known; otherwise there are so many messages at most."""
    bytes: int
    """Of all of its files."""


def kept(store: Path) -> list[Kept]:
    """The oldest first."""
    return [_kept(number, path) for number, path in saved(store)]


def _kept(number: int, path: Path) -> Kept:
    note = read_whole(path / ASIDE)
    if "ranges" not in note:
        note |= _found(path, divergence.unretired(path))
    return Kept(
        number, str(note.get("at", "")), note["epoch"], note["holder"], note["messages"],
        note["size"], note["exact"], folder_bytes(path),
    )  # fmt: skip


def _found(path: Path, tail: divergence.Tail) -> dict[str, object]:
    standing = _standing(path)
    return {
        "epoch": standing.epoch, "holder": standing.holder, "messages": len(tail.messages),
        "size": tail.bytes, "exact": tail.is_exact, "ranges": tail.ranges,
    }  # fmt: skip


def _standing(path: Path) -> Written:
    """The newest that it has."""
    found = b""
    try:
        with Replay(path, salvage=True) as replay:
            for record in replay:
                if record.kind == records.STANDING:
                    found = record.body
        return written(found) if found else Written()
    except (JournalDamaged, Malformed):
        return Written()


def exported(store: Path, number: int) -> Iterator[str]:
    """The messages that no other member has, and the declarations of their queues, as lines."""
    path = dict(saved(store))[number]
    ranges = read_whole(path / ASIDE).get("ranges")
    if ranges is None:
        ranges = divergence.unretired(path).ranges
    wanted = [(int(kind), int(queue), int(first), int(last)) for kind, queue, first, last in ranges]
    for record in divergence.within(path, wanted):
        yield line_of(record)


# --- counting -----------------------------------------------------------------------------------


def is_counted(store: Path) -> bool:
    return all("ranges" in read_whole(path / ASIDE) for _, path in saved(store))


def counted(store: Path, most: int) -> list[Kept]:
    """Those that were not counted yet are, and no more than `most` stay; it takes its time."""
    command = [sys.executable, "-c", COUNTS, str(store), str(most)]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Error(f"what was set aside in {store} is not counted: {done.stderr.decode()[-500:]}")
    return [Kept(**each) for each in json.loads(done.stdout)]


def _count(store: Path) -> list[Kept]:
    news = []
    for number, path in saved(store):
        note = read_whole(path / ASIDE)
        if "ranges" not in note:
            note |= _found(path, _tail(path, store / JOURNAL))
            write_whole(path / ASIDE, note, synced=True)
            news.append(_kept(number, path))
    return news


def _tail(path: Path, ours: Path) -> divergence.Tail:
    """Of a damaged one all that can be read: it must not keep the others from being counted."""
    try:
        return divergence.tail(path, ours)
    except JournalDamaged:
        return divergence.unretired(path)


def main() -> None:
    store, most = Path(sys.argv[1]), int(sys.argv[2])
    news = _count(store)
    told = [{name: getattr(each, name) for name in Kept.__slots__} for each in news]
    sys.stdout.write(json.dumps(told))
    keep_newest(store, most)
