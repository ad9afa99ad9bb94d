"""The figures of all queues of a vhost, as columns.

Each ring is a file, and its first pages hold its counters.  These are read into one matrix, a row
a ring, without a mapping and without an object for each queue; then a figure of all queues is one
expression.  What a queue has seen and holds is reckoned as in ipc/latency/statistics.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from shmbroker.core import layout as at
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.vhost import vhost as vhosts

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

Column = NDArray[np.int64]
HEAD_BYTES: Final = at.RING_LEVELS_AT
OPENS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
SLOTS, HEAD, TAIL = at.RING_SLOTS_AT // 8, at.RING_HEAD_AT // 8, at.RING_TAIL_AT // 8
READ_SLOTS_MAX: Final = 1 << 14
"""So many slots are read at once."""
BATCH_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a catalog that are in use."""

    references: Column
    names: list[str]
    slots: Column
    flags: Column


def rows_of(broker: Broker) -> Rows:
    """A row that is changed while it is copied is left out: its queue has just come or gone."""
    size = at.QUEUE_ENTRIES_AT + at.QUEUE_ROWS * at.ENTRY_BYTES
    memory = ffi.buffer(ffi.cast("char *", lib.sb_catalog(broker._connection)), size)
    words = np.frombuffer(memory, np.int64, at.QUEUE_ROWS, at.QUEUE_COLUMN_AT)
    entries = np.frombuffer(
        memory, np.uint8, at.QUEUE_ROWS * at.ENTRY_BYTES, at.QUEUE_ENTRIES_AT
    ).reshape(at.QUEUE_ROWS, at.ENTRY_BYTES)
    before = words.copy()
    live = np.flatnonzero(before & at.ROW_LIVE)
    copied = entries[live]
    same = words[live] == before[live]
    live, copied = live[same], copied[same]
    generation = before[live] >> at.ROW_GENERATION_SHIFT & at.ROW_GENERATION_MASK
    head = copied.view(np.int64)
    lengths = head[:, at.ENTRY_NAME_LENGTH_AT // 8].clip(0, at.NAME_BYTES_MAX).tolist()
    text = copied[:, at.ENTRY_NAME_AT :].tobytes()
    room = at.ENTRY_BYTES - at.ENTRY_NAME_AT
    return Rows(
        generation << at.REFERENCE_INDEX_BITS | live,
        [
            text[place : place + length].decode(errors="replace")
            for place, length in zip(range(0, len(text), room), lengths, strict=True)
        ],
        head[:, at.QUEUE_SLOTS_AT // 8],
        head[:, at.QUEUE_FLAGS_AT // 8],
    )


@dataclass(frozen=True, slots=True)
class Piece:
    """Slots of a ring as they were read, in the order of their positions."""

    row: int
    first: int
    read: bytes


class Rings:
    """The rings of a vhost, one row for each."""

    def __init__(self, broker: Broker) -> None:
        self.rows = rows_of(broker)
        count = len(self.rows.names)
        self._heads = np.zeros((count, HEAD_BYTES // 8), np.int64)
        self._arena = np.frombuffer(broker._arena, np.int64)
        self.is_read = np.zeros(count, np.bool_)
        self.tails, self.ready, self.leased, self.aside, self.published_ns = np.zeros(
            (5, count), np.int64
        )
        self._begin, self._whose = vhosts.home(broker.vhost, looks=True)
        references = self.rows.references.tolist()
        self.places = {each: row for row, each in enumerate(references)}
        pieces: list[Piece] = []
        for row, reference in enumerate(references):
            self._open(row, reference, pieces)
        self.tails[:] = self.column(at.RING_TAIL_AT) & at.POSITION_MASK
        for some in batches(pieces):
            self._count(some)

    def column(self, offset: int) -> Column:
        """One word of the head of each ring."""
        return self._heads[:, offset // 8]

    # --- reading ------------------------------------------------------------------------------

    def _open(self, row: int, reference: int, pieces: list[Piece]) -> None:
        index = reference & at.REFERENCE_INDEX_MASK
        path = f"{self._begin}queue-{index}-{reference >> at.REFERENCE_INDEX_BITS}"
        try:
            file = os.open(path, OPENS)
        except OSError:  # deleted meanwhile
            return
        try:
            status = os.fstat(file)
            if self._whose.has_owner(status) and not self._whose.refused_bits(status):
                self._read(row, file, status.st_size, pieces)
        finally:
            os.close(file)

    def _read(self, row: int, file: int, size: int, pieces: list[Piece]) -> None:
        """Its head, and its slots from head to tail with the one at tail, which may be there."""
        head = self._heads[row].data
        if os.preadv(file, [head], 0) != HEAD_BYTES or head[0] != at.RING_MAGIC:
            return
        slots, first, tail = head[SLOTS], head[HEAD] & at.POSITION_MASK, head[TAIL]
        tail &= at.POSITION_MASK
        is_whole = slots > 0 and size >= at.RING_SLOTS_START + slots * at.SLOT_BYTES
        if not is_whole or slots & slots - 1 or not 0 <= tail - first <= slots:
            return
        self.is_read[row] = True
        for begin in range(first, tail + 1, READ_SLOTS_MAX):
            count = min(READ_SLOTS_MAX, tail + 1 - begin)
            pieces.append(Piece(row, begin, slots_read(file, slots, begin, count)))
        at_tail = int.from_bytes(pieces[-1].read[-at.SLOT_BYTES :][:8], "little")
        if is_there(at_tail, tail // slots & at.LAP_MASK):  # tail lags: all that is there counts
            for begin in range(tail + 1, first + slots, READ_SLOTS_MAX):
                count = min(READ_SLOTS_MAX, first + slots - begin)
                pieces.append(Piece(row, begin, slots_read(file, slots, begin, count)))

    # --- counting -----------------------------------------------------------------------------

    def _count(self, pieces: list[Piece]) -> None:
        words = np.frombuffer(b"".join(each.read for each in pieces), np.int64)
        words = words.reshape(-1, at.SLOT_BYTES // 8)[:, 0]
        lengths = np.array([len(each.read) // at.SLOT_BYTES for each in pieces])
        rows = np.repeat([each.row for each in pieces], lengths)
        begins = np.cumsum(lengths) - lengths
        firsts = np.array([each.first for each in pieces])
        positions = np.repeat(firsts - begins, lengths) + np.arange(len(words))
        laps = positions // self.column(at.RING_SLOTS_AT)[rows] & at.LAP_MASK
        there = is_there(words, laps) | (positions < self.tails[rows])
        np.maximum.at(self.tails, rows[there], positions[there] + 1)
        states = np.where(words & at.LAP_MASK == laps, words >> at.STATE_SHIFT & at.STATE_MASK, -1)
        is_ready = states == at.READY
        has_owner = words >> at.OWNER_SHIFT & at.OWNER_MASK != 0
        for column, counts in (
            (self.ready, is_ready),
            (self.leased, states == at.LEASED),
            (self.aside, is_ready & has_owner),
        ):
            column += np.bincount(rows[counts], minlength=len(column))
        self._note_oldest(words, rows, is_ready | (states == at.LEASED))

    def _note_oldest(self, words: Column, rows: Column, here: NDArray[np.bool_]) -> None:
        whose, first = np.unique(rows[here], return_index=True)
        chunks = words[here][first] >> at.CHUNK_SHIFT & at.CHUNK_MASK
        places = ((chunks << at.CHUNK_UNIT_SHIFT) + at.CHUNK_PUBLISHED_AT) // 8
        is_new = (self.published_ns[whose] == 0) & (places < len(self._arena))
        self.published_ns[whose[is_new]] = self._arena[places[is_new]]


def batches(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """So many that what is made of them has some megabytes."""
    some: list[Piece] = []
    size = 0
    for each in pieces:
        some.append(each)
        size += len(each.read)
        if size >= BATCH_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def slots_read(file: int, slots: int, begin: int, count: int) -> bytes:
    """So many slots from this position on, over the end of the ring."""
    place = begin & slots - 1
    first = min(count, slots - place)
    start = at.RING_SLOTS_START
    read = os.pread(file, first * at.SLOT_BYTES, start + place * at.SLOT_BYTES)
    if first < count:
        read += os.pread(file, (count - first) * at.SLOT_BYTES, start)
    return read


def is_there(word: Any, lap: Any) -> Any:
    """Whether the message of this lap has been published; of one slot or of many."""
    ahead = (word - lap) & at.LAP_MASK
    state = word >> at.STATE_SHIFT & at.STATE_MASK
    return (ahead == 0) & (state != at.FREE) | (ahead > 0) & (ahead < at.LAP_HALF)
