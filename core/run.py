"""Runs: the blocks that one producer owns for one queue, and how it cuts chunks from them.

A run is filled front to back.  A producer goes round in the few runs it has: one whose last
position head has passed is empty again, without a look at its block words.  Runs start small and
double with traffic.  The list is private memory.  If the producer dies, the blocks' own words
still name it as their owner, and the repair seals them.
"""

from __future__ import annotations

from shmbroker.core.atomics import load, load_acquire, store
from shmbroker.core.block import block_at, block_free, block_seal, blocks_of, run_search
from shmbroker.core.chunk import chunk_bytes
from shmbroker.core.codes import (
    ARENA_FULL,
    CLOSED,
    INVALID,
    OVER_SHARE,
    TOO_LARGE,
    TOO_MANY_LOANS,
)
from shmbroker.core.head import head_load
from shmbroker.core.kernel import cold, exported, exported_cold, kernel
from shmbroker.core.layout import (
    CHUNK_MARK_AT,
    CHUNK_ORIGIN_AT,
    CHUNK_PUBLISHED_AT,
    CHUNK_SHAPE_AT,
    PORT_BLOCK_SHIFT,
    PORT_CURRENT,
    PORT_CURSOR,
    PORT_DATA,
    PORT_DATA_BYTES,
    PORT_HEAD_SEEN,
    PORT_LIMIT,
    PORT_OWNER,
    PORT_PUBLISHED,
    PORT_RUN_BYTES,
    PORT_RUN_COUNT,
    PORT_RUNS,
    PORT_SHARE,
    PORT_STOP,
    RUN_BYTES_AT,
    RUN_BYTES_MAX,
    RUN_ENTRY_SHIFT,
    RUN_LAST_AT,
    RUN_LOANS_AT,
    RUN_START_AT,
    RUNS,
    STOPPED_FOR_GOOD,
)
from shmbroker.core.reclaim import reclaim

RECLAIMS_BEFORE_GROWTH = 16
KEPT_SHIFT = 4
"""One producer keeps no more than this part of the arena for one queue, unless it is one run.  The
rest is sealed, and whoever lacks memory may have it once head has passed it, also if this producer
does nothing any more.  To keep less would be slower: what it keeps is warm."""


@kernel
def run_at(port: int, index: int) -> int:
    return port + PORT_RUNS + (index << RUN_ENTRY_SHIFT)


@kernel
def run_is_empty(port: int, index: int) -> int:
    run = run_at(port, index)
    if load(run + RUN_LOANS_AT) == 0 and load(run + RUN_LAST_AT) < load(port + PORT_HEAD_SEEN):
        return 1
    return 0


@kernel
def run_use(port: int, index: int) -> int:
    """Cut the next chunks from this run, from its start."""
    start = load(run_at(port, index) + RUN_START_AT)
    store(port + PORT_CURRENT, index)
    store(port + PORT_CURSOR, start)
    store(port + PORT_LIMIT, start + load(run_at(port, index) + RUN_BYTES_AT))
    return index


@kernel
def run_find_empty(port: int, length: int) -> int:
    """An empty run of ours that is long enough, the last used first: it is warm; -1 if none is."""
    count = load(port + PORT_RUN_COUNT)
    index = min(load(port + PORT_CURRENT) + 1, count)
    for _ in range(count):
        index -= 1
        if index < 0:
            index = count - 1
        if load(run_at(port, index) + RUN_BYTES_AT) >= length and run_is_empty(port, index):
            return index
    return -1


@cold
def run_release(port: int, index: int) -> int:
    """Return the blocks of a run: free if head has passed them, else sealed."""
    run = run_at(port, index)
    shift = load(port + PORT_BLOCK_SHIFT)
    first = load(run + RUN_START_AT) >> shift
    last = load(run + RUN_LAST_AT)
    for block in range(first, first + (load(run + RUN_BYTES_AT) >> shift)):
        if last < load(port + PORT_HEAD_SEEN):
            block_free(port, block)
        else:
            word = load_acquire(block_at(port, block))
            block_seal(port, block, word, last, load(port + PORT_OWNER))
    return index


@kernel
def run_forget(port: int, index: int) -> int:
    """Drop an entry of the list; the last one takes its place."""
    last = load(port + PORT_RUN_COUNT) - 1
    for at in range(0, 1 << RUN_ENTRY_SHIFT, 8):
        store(run_at(port, index) + at, load(run_at(port, last) + at))
    store(port + PORT_RUN_COUNT, last)
    if load(port + PORT_CURRENT) == last:
        store(port + PORT_CURRENT, index)
    return last


@exported_cold
def port_trim(port: int) -> int:
    """Return all empty runs; how many.  For a port that has been idle, or an arena in need."""
    head_load(port)
    trimmed = 0
    index = 0
    while index < load(port + PORT_RUN_COUNT):
        if run_is_empty(port, index):
            if index == load(port + PORT_CURRENT):
                store(port + PORT_CURSOR, 0)
                store(port + PORT_LIMIT, 0)
            run_release(port, index)
            run_forget(port, index)
            trimmed += 1
        else:
            index += 1
    return trimmed


@kernel
def runs_bytes(port: int) -> int:
    total = 0
    for index in range(load(port + PORT_RUN_COUNT)):
        total += load(run_at(port, index) + RUN_BYTES_AT)
    return total


@kernel
def run_oldest(port: int) -> int:
    """The one that was used longest ago and has no loans; -1: all have some."""
    count = load(port + PORT_RUN_COUNT)
    index = load(port + PORT_CURRENT)
    for _ in range(count):
        index += 1
        if index >= count:
            index = 0
        if load(run_at(port, index) + RUN_LOANS_AT) == 0:
            return index
    return -1


@kernel
def run_place(port: int, length: int) -> int:
    """An index for one more run of this length, sealing the oldest if that is too many."""
    kept = load(port + PORT_DATA_BYTES) >> KEPT_SHIFT
    while load(port + PORT_RUN_COUNT) == RUNS or runs_bytes(port) + length > kept:
        index = run_oldest(port)
        if index < 0:
            break
        run_release(port, index)
        run_forget(port, index)
    count = load(port + PORT_RUN_COUNT)
    if count == RUNS:
        return TOO_MANY_LOANS
    return count


@cold
def share_left(port: int, needed: int) -> int:
    """How many blocks our participant may still own; if too few, empty runs are returned."""
    share = load(port + PORT_SHARE) >> load(port + PORT_BLOCK_SHIFT)
    owner = load(port + PORT_OWNER)
    left = share - blocks_of(port, owner)
    if left < needed and port_trim(port) > 0:
        left = share - blocks_of(port, owner)
    return left


@cold
def run_acquire(port: int, length: int) -> int:
    """Own blocks for at least this many bytes and use them; a code if there are none."""
    shift = load(port + PORT_BLOCK_SHIFT)
    needed = (length + (1 << shift) - 1) >> shift
    wanted = max(needed, load(port + PORT_RUN_BYTES) >> shift)
    if load(port + PORT_SHARE) != 0:
        if needed << shift > load(port + PORT_SHARE):
            return TOO_LARGE
        wanted = min(wanted, share_left(port, needed))
        if wanted < needed:
            return OVER_SHARE
    first = run_search(port, wanted)
    if first == ARENA_FULL:
        wanted = needed
        port_trim(port)
        first = run_search(port, wanted)
    if first < 0:
        return first
    index = run_place(port, wanted << shift)
    if index < 0:
        for block in range(first, first + wanted):
            block_free(port, block)
        return index
    run = run_at(port, index)
    store(run + RUN_START_AT, first << shift)
    store(run + RUN_BYTES_AT, wanted << shift)
    store(run + RUN_LAST_AT, -1)
    store(run + RUN_LOANS_AT, 0)
    store(port + PORT_RUN_COUNT, index + 1)
    store(port + PORT_RUN_BYTES, min(RUN_BYTES_MAX, 2 * load(port + PORT_RUN_BYTES)))
    return run_use(port, index)


@cold
def run_next(port: int, length: int) -> int:
    """Go on to a run with room for this many bytes: one of ours that is empty, else a new one."""
    if load(port + PORT_STOP) == STOPPED_FOR_GOOD:
        return CLOSED
    index = run_find_empty(port, length)
    if index < 0:
        head_load(port)
        index = run_find_empty(port, length)
    reclaims = 0
    while index < 0 and reclaims < RECLAIMS_BEFORE_GROWTH and reclaim(port) > 0:
        index = run_find_empty(port, length)
        reclaims += 1
    if index >= 0:
        return run_use(port, index)
    return run_acquire(port, length)


@kernel
def run_has(port: int, index: int, chunk: int) -> int:
    run = run_at(port, index)
    into = chunk - load(run + RUN_START_AT)
    return int(into >= 0 and into < load(run + RUN_BYTES_AT))


@cold
def run_search_of(port: int, chunk: int) -> int:
    """The index of the run that a chunk of ours was cut from, -1 if it is not ours."""
    for index in range(load(port + PORT_RUN_COUNT)):
        if run_has(port, index, chunk):
            return index
    return -1


@kernel
def run_of(port: int, chunk: int) -> int:
    """The same, looking at the current run first."""
    current = load(port + PORT_CURRENT)
    if run_has(port, current, chunk):
        return current
    return run_search_of(port, chunk)


@kernel
def cut(port: int, length: int) -> int:
    """Where the next chunk of this length goes, or a code; it is ours once the cursor is moved."""
    chunk = load(port + PORT_CURSOR)
    if chunk + length <= load(port + PORT_LIMIT):
        return chunk
    if length > load(port + PORT_DATA_BYTES) >> 2:
        return TOO_LARGE
    code = run_next(port, length)
    if code < 0:
        return code
    return load(port + PORT_CURSOR)


@kernel
def header_write(port: int, chunk: int, shape: int, mark: int, origin: int) -> int:
    """Write the header of a chunk that nobody else sees yet; the chunk's address."""
    address = load(port + PORT_DATA) + chunk
    store(address + CHUNK_SHAPE_AT, shape)
    store(address + CHUNK_ORIGIN_AT, origin)
    store(address + CHUNK_PUBLISHED_AT, load(port + PORT_PUBLISHED))
    store(address + CHUNK_MARK_AT, mark)
    return address


@kernel
def cut_published(port: int, end: int, position: int) -> int:
    """The chunk at the cursor became the message at this position: go on behind it."""
    store(port + PORT_CURSOR, end)
    last = run_at(port, load(port + PORT_CURRENT)) + RUN_LAST_AT
    if position > load(last):
        store(last, position)
    return position


@exported
def reserve(port: int, shape: int, mark: int) -> int:
    """Cut a chunk for a message of this shape: its offset, or a code.  Nobody else sees it yet."""
    if shape < 0:
        return INVALID
    length = chunk_bytes(shape, mark)
    chunk = cut(port, length)
    if chunk < 0:
        return chunk
    loans = run_at(port, load(port + PORT_CURRENT)) + RUN_LOANS_AT
    store(loans, load(loans) + 1)
    store(port + PORT_CURSOR, chunk + length)
    header_write(port, chunk, shape, mark, 0)
    return chunk


@exported_cold
def unreserve(port: int, chunk: int) -> int:
    """Drop a reserved chunk without publishing it."""
    index = run_of(port, chunk)
    if index < 0:
        return INVALID
    run = run_at(port, index)
    if load(run + RUN_LOANS_AT) <= 0:
        return INVALID
    store(run + RUN_LOANS_AT, load(run + RUN_LOANS_AT) - 1)
    address = load(port + PORT_DATA) + chunk
    length = chunk_bytes(load(address + CHUNK_SHAPE_AT), load(address + CHUNK_MARK_AT))
    if load(port + PORT_CURRENT) == index and chunk + length == load(port + PORT_CURSOR):
        store(port + PORT_CURSOR, chunk)
    return 0


@kernel
def run_published(port: int, chunk: int, position: int) -> int:
    """A reserved chunk became the message at this position."""
    index = run_of(port, chunk)
    if index < 0:
        return INVALID
    run = run_at(port, index)
    store(run + RUN_LOANS_AT, load(run + RUN_LOANS_AT) - 1)
    if position > load(run + RUN_LAST_AT):
        store(run + RUN_LAST_AT, position)
    return index
