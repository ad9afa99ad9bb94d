"""What must be there, and nothing else, when all are gone: read from the files themselves."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from shmbroker.core import layout as at

SHM = Path("/dev/shm")
_WORD = Struct("<q")
_ENTRY = Struct("<2q")
_STATES = {at.BLOCK_FREE: "free", at.BLOCK_OWNED: "owned", at.BLOCK_SEALED: "sealed"}


def _read(path: Path, start: int, length: int) -> bytes:
    """Part of a file: an arena is long, and mostly nothing."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(file, length, start)
    finally:
        os.close(file)


def _word(path: Path, start: int) -> int:
    value: int = _WORD.unpack(_read(path, start, 8))[0]
    return value


def blocks(vhost: str) -> Counter[tuple[str, int, int]]:
    """How many blocks of the arena are not free, by state, owner and queue."""
    arena = SHM / f"shmbroker.{vhost}.arena"
    count = _word(arena, at.ARENA_BLOCKS_AT)
    table = _read(arena, at.ARENA_TABLE_AT, count << at.BLOCK_ENTRY_SHIFT)
    taken: Counter[tuple[str, int, int]] = Counter()
    for word, _note in _ENTRY.iter_unpack(table):
        state = (word >> at.BLOCK_STATE_SHIFT) & at.STATE_MASK
        if state != at.BLOCK_FREE:
            owner = (word >> at.BLOCK_OWNER_SHIFT) & at.OWNER_MASK
            queue = (word >> at.BLOCK_QUEUE_SHIFT) & at.QUEUE_MASK
            taken[_STATES.get(state, str(state)), owner, queue] += 1
    return taken


def participants(vhost: str) -> tuple[int, list[int]]:
    """How many ids were ever used, and which of them are not free."""
    path = SHM / f"shmbroker.{vhost}.participants"
    high = _word(path, at.PARTICIPANTS_HIGH_AT)
    starts = ((id, at.PARTICIPANTS_AT + id * at.PARTICIPANT_BYTES) for id in range(1, high))
    return high - 1, [
        id
        for id, start in starts
        if _word(path, start + at.PARTICIPANT_STATE_AT) != at.PARTICIPANT_FREE
    ]


def names(vhost: str) -> set[str]:
    """The segments of a vhost, its name left off."""
    prefix = f"shmbroker.{vhost}."
    return {path.name.removeprefix(prefix) for path in SHM.glob(f"{prefix}*")}


def live_queues(vhost: str) -> set[str]:
    """The segments that the queues of the catalog have."""
    catalog = SHM / f"shmbroker.{vhost}.catalog"
    column = _read(catalog, at.QUEUE_COLUMN_AT, at.QUEUE_ROWS * at.ROW_BYTES)
    found = set()
    for row, (word,) in enumerate(_WORD.iter_unpack(column)):
        if word & at.ROW_LIVE:
            generation = (word >> at.ROW_GENERATION_SHIFT) & at.ROW_GENERATION_MASK
            found.add(f"queue-{row}-{generation}")
    return found


def leaks(vhost: str, together_max: int) -> Iterator[str]:
    """What a vhost still has that nobody who lives accounts for; all its participants are gone."""
    if taken := blocks(vhost):
        shown = ", ".join(
            f"{count} {state} (owner {owner}, queue row {queue})"
            for (state, owner, queue), count in taken.most_common(5)
        )
        yield f"{taken.total()} blocks of the arena are not free: {shown}"
    used, left = participants(vhost)
    if left:
        yield f"participants {left[:5]} are still entered"
    if used > together_max:
        yield f"{used} numbers of participants were used, for at most {together_max} at a time"
    wanted = {"catalog", "arena", "participants", "transactions"} | live_queues(vhost)
    if names(vhost) != wanted:
        yield f"/dev/shm has {sorted(names(vhost) ^ wanted)} too much, or too few"
