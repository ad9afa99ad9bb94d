"""The chunk: a message in the arena.  Lengths read from it are checked before they are followed."""

from __future__ import annotations

from shmbroker.core.atomics import load
from shmbroker.core.kernel import kernel
from shmbroker.core.layout import (
    CHUNK_EXTENDED,
    CHUNK_EXTENSION_BYTES,
    CHUNK_HEADER_BYTES,
    CHUNK_MARK_AT,
    CHUNK_SHAPE_AT,
    LINE_BYTES,
    MARK_FLAGS_MASK,
    MARK_FLAGS_SHIFT,
    MARK_MAGIC,
    MARK_MAGIC_SHIFT,
    PORT_DATA,
    PORT_DATA_BYTES,
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
def key_offset(mark: int) -> int:
    """Where the key starts in the chunk; the properties follow it."""
    if mark_flags(mark) & CHUNK_EXTENDED:
        return CHUNK_HEADER_BYTES + CHUNK_EXTENSION_BYTES
    return CHUNK_HEADER_BYTES


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
def chunk_address(port: int, chunk: int) -> int:
    """The address of the chunk at this offset, 0 if not even its header lies in the arena."""
    if chunk < 0 or chunk > load(port + PORT_DATA_BYTES) - LINE_BYTES:
        return 0
    return load(port + PORT_DATA) + chunk


@kernel
def chunk_fits(port: int, chunk: int, shape: int, mark: int) -> int:
    """1 if a chunk of this shape at this offset lies in the arena and looks like one."""
    if (mark >> MARK_MAGIC_SHIFT) != MARK_MAGIC or shape < 0:
        return 0
    if chunk + chunk_bytes(shape, mark) > load(port + PORT_DATA_BYTES):
        return 0
    return 1


@kernel
def chunk_is_sound(port: int, chunk: int) -> int:
    address = chunk_address(port, chunk)
    if address == 0:
        return 0
    return chunk_fits(port, chunk, load(address + CHUNK_SHAPE_AT), load(address + CHUNK_MARK_AT))
