"""The chunk: a message in the arena.  Lengths read from it are checked before they are followed."""

from __future__ import annotations

from shmbroker.core.atomics import load, load_acquire, store
from shmbroker.core.codes import OK
from shmbroker.core.kernel import exported, kernel
from shmbroker.core.layout import (
    ARENA_COMMITTED_AT,
    CHUNK_EXPIRY_AT,
    CHUNK_EXTENDED,
    CHUNK_EXTENSION_BYTES,
    CHUNK_HEADER_BYTES,
    CHUNK_MARK_AT,
    CHUNK_ONCE,
    CHUNK_ONCE_BYTES,
    CHUNK_SHAPE_AT,
    LINE_BYTES,
    MARK_DELIVERIES_MASK,
    MARK_FLAGS_MASK,
    MARK_FLAGS_SHIFT,
    MARK_MAGIC,
    MARK_MAGIC_SHIFT,
    PORT_ARENA,
    PORT_BLOCK_SHIFT,
    PORT_BLOCKS,
    PORT_COMMITTED_BYTES,
    PORT_DATA,
    SHAPE_BODY_SHIFT,
    SHAPE_KEY_SHIFT,
    SHAPE_LENGTH_MASK,
)


@kernel
def shape_body(shape: int) -> int:
    return shape >> SHAPE_BODY_SHIFT


@kernel
def shape_key(shape: int) -> int:
    return (shape >> SHAPE_KEY_SHIFT) & SHAPE_LENGTH_MASK


@kernel
def shape_properties(shape: int) -> int:
    return shape & SHAPE_LENGTH_MASK


@kernel
def mark_flags(mark: int) -> int:
    return (mark >> MARK_FLAGS_SHIFT) & MARK_FLAGS_MASK


@kernel
def once_offset(mark: int) -> int:
    """Where a chunk with the flag ONCE has the hash of its message's id."""
    return CHUNK_HEADER_BYTES + (mark_flags(mark) & CHUNK_EXTENDED) * CHUNK_EXTENSION_BYTES


@kernel
def is_once(mark: int) -> int:
    return (mark_flags(mark) & CHUNK_ONCE) // CHUNK_ONCE


@kernel
def key_offset(mark: int) -> int:
    """Where the key starts in the chunk, the properties behind it.  Takers ask: no branches."""
    return once_offset(mark) + is_once(mark) * CHUNK_ONCE_BYTES


@kernel
def body_offset(shape: int, mark: int) -> int:
    """Where the body starts in the chunk: behind key and properties, on a multiple of 16."""
    before = shape_key(shape) + shape_properties(shape)
    return key_offset(mark) + ((before + 15) & -16)


@kernel
def chunk_bytes(shape: int, mark: int) -> int:
    """How much of the arena the chunk takes: whole lines."""
    return (body_offset(shape, mark) + shape_body(shape) + LINE_BYTES - 1) & -LINE_BYTES


@kernel
def is_chunk(image: int, length: int) -> int:
    """1 if these bytes, from a file or from another host, are a whole chunk."""
    if length < CHUNK_HEADER_BYTES:
        return 0
    shape = load(image + CHUNK_SHAPE_AT)
    mark = load(image + CHUNK_MARK_AT)
    if shape < 0 or mark >> MARK_MAGIC_SHIFT != MARK_MAGIC:
        return 0
    return int(body_offset(shape, mark) + shape_body(shape) == length)


@exported
def chunk_expiry(image: int) -> int:
    """When the message in this chunk expires, 0: never."""
    if mark_flags(load(image + CHUNK_MARK_AT)) & CHUNK_EXTENDED == 0:
        return 0
    return load(image + CHUNK_EXPIRY_AT)


@kernel
def mark_delivered(mark: int) -> int:
    """The mark of a message that may have been delivered elsewhere: that counts as once.

    It is no reason to dead-letter or to delay it: those look at the word (dead_letter.c).
    """
    return mark + int((mark & MARK_DELIVERIES_MASK) == 0)


@kernel
def chunk_delivered(image: int) -> int:
    """The message in this chunk, which nobody else sees yet, may have been delivered elsewhere."""
    store(image + CHUNK_MARK_AT, mark_delivered(load(image + CHUNK_MARK_AT)))
    return OK


@kernel
def committed_blocks(port: int) -> int:
    """How many blocks have memory behind them."""
    committed = load_acquire(load(port + PORT_ARENA) + ARENA_COMMITTED_AT)
    return max(0, min(committed, load(port + PORT_BLOCKS)))


@kernel
def has_memory(port: int, end: int) -> int:
    """1 if the arena's data has memory up to this offset; beyond it a look would be a SIGBUS."""
    if end <= load(port + PORT_COMMITTED_BYTES):
        return 1
    committed = committed_blocks(port) << load(port + PORT_BLOCK_SHIFT)
    store(port + PORT_COMMITTED_BYTES, committed)
    return int(end <= committed)


@kernel
def chunk_address(port: int, chunk: int) -> int:
    """The address of the chunk at this offset, 0 if not even its header lies in the arena."""
    if not has_memory(port, chunk + LINE_BYTES):
        return 0
    return load(port + PORT_DATA) + chunk


@kernel
def chunk_fits(port: int, chunk: int, shape: int, mark: int) -> int:
    """1 if a chunk of this shape at this offset lies in the arena and looks like one."""
    if (mark >> MARK_MAGIC_SHIFT) != MARK_MAGIC or shape < 0:
        return 0
    return has_memory(port, chunk + chunk_bytes(shape, mark))
