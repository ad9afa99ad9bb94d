"""Room in the arena for a chunk: its memory is committed when it is needed."""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, load, load_acquire, store
from shmbroker.core.chunk import chunk_bytes
from shmbroker.core.codes import (
    DAMAGED,
    NEEDS_COMMIT,
    OK,
)
from shmbroker.core.kernel import cold, kernel
from shmbroker.core.layout import (
    ARENA_COMMITTED_AT,
    PORT_ARENA,
    PORT_BLOCK_SHIFT,
    PORT_BLOCKS,
    PORT_DATA,
    PORT_FILE,
    PORT_RUN_BYTES,
)
from shmbroker.core.run import reserve
from shmbroker.ipc.base.system import system_allocate

COMMIT_BYTES_MIN = 1 << 20
"""The arena grows by at least this, and doubles, so that growing is rare."""


@kernel
def commit_blocks(port: int, committed: int, blocks: int) -> int:
    """Put memory behind so many more blocks: OK or a code."""
    shift = load(port + PORT_BLOCK_SHIFT)
    data_at = load(port + PORT_DATA) - load(port + PORT_ARENA)
    start = data_at + (committed << shift)
    code = system_allocate(load(port + PORT_FILE), start, blocks << shift)
    if code == OK:
        # if somebody else has grown the arena meanwhile, what we allocated is there for the next
        address = load(port + PORT_ARENA) + ARENA_COMMITTED_AT
        compare_exchange(address, committed, committed + blocks)
    return code


@cold
def commit(port: int, length: int) -> int:
    """Grow the arena for a chunk of this length: OK (search again), NO_MEMORY or DAMAGED."""
    shift = load(port + PORT_BLOCK_SHIFT)
    committed = load_acquire(load(port + PORT_ARENA) + ARENA_COMMITTED_AT)
    left = load(port + PORT_BLOCKS) - committed
    if committed < 0:
        return DAMAGED
    if left <= 0:  # somebody else has grown it to the end since we searched
        return OK
    needed = (length + 2 * (1 << shift) - 1) >> shift  # a line of header at most, rounded up
    wanted = max(needed, committed, COMMIT_BYTES_MIN >> shift)
    code = commit_blocks(port, committed, min(left, wanted))
    if code != OK:
        store(port + PORT_RUN_BYTES, 1 << shift)
        code = commit_blocks(port, committed, min(left, needed))
    return code


@cold
def reserve_growing(port: int, shape: int, mark: int) -> int:
    chunk = NEEDS_COMMIT
    while chunk == NEEDS_COMMIT:
        code = commit(port, chunk_bytes(shape, mark))
        if code != OK:
            return code
        chunk = reserve(port, shape, mark)
    return chunk


@kernel
def reserve_any(port: int, shape: int, mark: int) -> int:
    """A chunk of this shape, growing the arena if need be."""
    chunk = reserve(port, shape, mark)
    if chunk != NEEDS_COMMIT:
        return chunk
    return reserve_growing(port, shape, mark)
