"""What programs call on a port: the kernels of core, with memory committed when it is needed.

Waiting here is spinning: *_wait looks so many times and then says EMPTY or FULL, so that the
caller can yield, sleep or give up.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, load, load_acquire, pause, store
from shmbroker.core.batch import publish_many_once, publish_once, receive_many
from shmbroker.core.chunk import body_offset
from shmbroker.core.codes import ARENA_FULL, EMPTY, FULL, INVALID, NEEDS_COMMIT, OK
from shmbroker.core.cursor import cursor_copy, cursor_next
from shmbroker.core.kernel import exported, kernel
from shmbroker.core.layout import (
    ARENA_COMMITTED_AT,
    BODY_BYTES_MAX,
    CHUNK_MARK_AT,
    CHUNK_SHAPE_AT,
    MARK_MAGIC,
    MARK_MAGIC_SHIFT,
    PORT_ARENA,
    PORT_BLOCK_SHIFT,
    PORT_BLOCKS,
    PORT_DATA,
    PORT_FILE,
    PORT_RUN_BYTES,
    SHAPE_BODY_SHIFT,
)
from shmbroker.core.publish import publish_chunk
from shmbroker.core.run import reserve, run_of
from shmbroker.core.take import receive, take
from shmbroker.ipc.system import system_allocate

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
        compare_exchange(load(port + PORT_ARENA) + ARENA_COMMITTED_AT, committed, committed + blocks)
    return code


@kernel
def commit(port: int, length: int) -> int:
    """Grow the arena for a chunk of this length: OK, ARENA_FULL or NO_MEMORY."""
    shift = load(port + PORT_BLOCK_SHIFT)
    committed = load_acquire(load(port + PORT_ARENA) + ARENA_COMMITTED_AT)
    left = load(port + PORT_BLOCKS) - committed
    if committed < 0 or left <= 0:
        return ARENA_FULL
    needed = (length + 2 * (1 << shift) - 1) >> shift  # a line of header at most, rounded up
    code = commit_blocks(port, committed, min(left, max(needed, committed, COMMIT_BYTES_MIN >> shift)))
    if code != OK:
        store(port + PORT_RUN_BYTES, 1 << shift)
        code = commit_blocks(port, committed, min(left, needed))
    return code


@exported
def loan(port: int, length: int) -> int:
    """A chunk to fill in place: its offset, for loan_body and publish_chunk, or a code."""
    if length < 0 or length > BODY_BYTES_MAX:
        return INVALID
    shape = length << SHAPE_BODY_SHIFT
    chunk = reserve(port, shape, MARK_MAGIC << MARK_MAGIC_SHIFT)
    while chunk == NEEDS_COMMIT:
        code = commit(port, length)
        if code != OK:
            return code
        chunk = reserve(port, shape, MARK_MAGIC << MARK_MAGIC_SHIFT)
    return chunk


@exported
def loan_body(port: int, chunk: int) -> int:
    """The address of the body of a chunk on loan, 0 if it is not ours."""
    if run_of(port, chunk) < 0:
        return 0
    address = load(port + PORT_DATA) + chunk
    return address + body_offset(load(address + CHUNK_SHAPE_AT), load(address + CHUNK_MARK_AT))


@exported
def publish(port: int, body: int, length: int) -> int:
    """Publish one message: its position, or a code (FULL: nothing was published)."""
    position = publish_once(port, body, length)
    while position == NEEDS_COMMIT:
        code = commit(port, length)
        if code != OK:
            return code
        position = publish_once(port, body, length)
    return position


@exported
def publish_many(port: int, bodies: int, lengths: int, count: int) -> int:
    """Publish messages that lie end to end: how many of them, or a code if none was."""
    done = publish_many_once(port, bodies, lengths, count)
    while done == NEEDS_COMMIT:
        code = commit(port, load(lengths))
        if code != OK:
            return code
        done = publish_many_once(port, bodies, lengths, count)
    return done


@exported
def publish_wait(port: int, body: int, length: int, spins: int) -> int:
    """publish, trying again while the ring is full."""
    position = publish(port, body, length)
    while position == FULL and spins > 0:
        pause()
        position = publish(port, body, length)
        spins -= 1
    return position


@exported
def publish_chunk_wait(port: int, chunk: int, spins: int) -> int:
    """publish_chunk, trying again while the ring is full."""
    position = publish_chunk(port, chunk)
    while position == FULL and spins > 0:
        pause()
        position = publish_chunk(port, chunk)
        spins -= 1
    return position


@exported
def take_wait(port: int, message: int, spins: int) -> int:
    """take, looking again while there is nothing."""
    code = take(port, message)
    while code == EMPTY and spins > 0:
        pause()
        code = take(port, message)
        spins -= 1
    return code


@exported
def receive_wait(port: int, message: int, buffer: int, capacity: int, spins: int) -> int:
    """receive, looking again while there is nothing."""
    length = receive(port, message, buffer, capacity)
    while length == EMPTY and spins > 0:
        pause()
        length = receive(port, message, buffer, capacity)
        spins -= 1
    return length


@exported
def receive_many_wait(
    port: int, messages: int, count: int, buffer: int, capacity: int, ends: int, spins: int
) -> int:
    """receive_many, looking again while there is nothing."""
    taken = receive_many(port, messages, count, buffer, capacity, ends)
    while taken == EMPTY and spins > 0:
        pause()
        taken = receive_many(port, messages, count, buffer, capacity, ends)
        spins -= 1
    return taken


@exported
def cursor_next_wait(cursor: int, message: int, spins: int) -> int:
    """cursor_next, looking again while there is nothing."""
    code = cursor_next(cursor, message)
    while code == EMPTY and spins > 0:
        pause()
        code = cursor_next(cursor, message)
        spins -= 1
    return code


@exported
def cursor_copy_wait(cursor: int, message: int, buffer: int, capacity: int, spins: int) -> int:
    """cursor_copy, looking again while there is nothing."""
    length = cursor_copy(cursor, message, buffer, capacity)
    while length == EMPTY and spins > 0:
        pause()
        length = cursor_copy(cursor, message, buffer, capacity)
        spins -= 1
    return length
