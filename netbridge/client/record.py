"""Messages as records: what a program publishes, and what is delivered to it.

    0   crc        0; looked at: TAKEN if somebody has it, and from bit 8 on which participant;
                   UNCONFIRMED if it is so
    4   body crc   0
    8   length     of the chunk
    12  frame      published: 0; delivered: how often before
    16  queue      0
    24  where      kind, and the position: published from 0 on, delivered that in the queue
    32  the chunk (core/chunk.py), zeros up to a multiple of 8

The word of expiry of a chunk is for how many nanoseconds the message may be delivered: clocks of
two hosts are not compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct
from struct import error as StructError
from typing import Any, Final

from shmbroker.core.layout import (
    CHUNK_EXPIRY_AT,
    CHUNK_EXTENDED,
    CHUNK_EXTENSION_BYTES,
    CHUNK_HEADER_BYTES,
    CHUNK_ONCE,
    CHUNK_ONCE_BYTES,
    MARK_FLAGS_MASK,
    MARK_FLAGS_SHIFT,
    MARK_MAGIC,
    MARK_MAGIC_SHIFT,
    MARK_PRIORITY_SHIFT,
    POSITION_MASK,
    RECORD_HEAD_BYTES,
    RECORD_IS_MESSAGE,
    RECORD_KIND_SHIFT,
    SHAPE_BODY_SHIFT,
    SHAPE_KEY_SHIFT,
    SHAPE_LENGTH_MASK,
)
from shmbroker.ipc._native import ffi
from shmbroker.ipc.message.copied import CopiedMessage, priority_of
from shmbroker.ipc.message.outgoing import Parts, as_buffer
from shmbroker.ipc.message.properties import readable
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.malformed import Malformed

_BEFORE: Final = Struct("<4LQ")
_WHERE: Final = Struct("<Q")
_CHUNK: Final = Struct("<4q")
_SHAPE: Final = Struct("<2q")
"""Half of the head of a chunk: shape and origin, or time and mark."""
_EXTENSION: Final = Struct("<4q")
_HEAD: Final = Struct("<4L2Q")
MESSAGE: Final = RECORD_IS_MESSAGE << RECORD_KIND_SHIFT
TAKEN: Final = 1
UNCONFIRMED: Final = 2
TAKEN_BY_SHIFT: Final = 8
"""A broker of an earlier version leaves these bits 0."""
BATCH: Final = 4096
"""Messages of one command at most."""
TORN: Final = "messages of the broker are torn"


@lru_cache(64)
def _around(length: int) -> tuple[bytes, bytes, bytes]:
    """Of a message with a body of this length and nothing else: its head up to the position, that
    of its chunk up to the time, and what is behind the body."""
    return (
        _BEFORE.pack(0, 0, CHUNK_HEADER_BYTES + length, 0, 0),
        _SHAPE.pack(length << SHAPE_BODY_SHIFT, 0),
        bytes(-(CHUNK_HEADER_BYTES + length) & 7),
    )


_WHERES: Final = [_WHERE.pack(MESSAGE | at) for at in range(BATCH)]


def plain(body: bytes) -> bytes:
    before, shape, rest = _around(len(body))
    return b"".join((before, _WHERES[0], shape, _now(), body, rest))


def _now() -> bytes:
    return _SHAPE.pack(time.time_ns(), MARK_MAGIC << MARK_MAGIC_SHIFT)


def plain_batch(bodies: Sequence[bytes]) -> bytes:
    """Up to BATCH of them."""
    count = len(bodies)
    lengths = set(map(len, bodies))
    pieces: list[bytes] = [b""] * (5 * count)
    pieces[1::5] = _WHERES[:count]
    pieces[3::5] = bodies
    now = _now()
    if len(lengths) == 1:
        before, shape, rest = _around(lengths.pop())
        pieces[0::5], pieces[2::5], pieces[4::5] = (
            [before] * count, [shape + now] * count, [rest] * count,
        )  # fmt: skip
    else:
        for at, body in enumerate(bodies):
            before, shape, rest = _around(len(body))
            pieces[5 * at], pieces[5 * at + 2], pieces[5 * at + 4] = before, shape + now, rest
    return b"".join(pieces)


def copied(body: Any) -> bytes:
    """Of any buffer; InvalidArgument if it is none."""
    return body if type(body) is bytes else bytes(ffi.buffer(as_buffer(body)))


def record(parts: Parts) -> bytes:
    """One message with all that it has."""
    body, length, key, key_length, properties, properties_length, ttl_ns, priority = parts
    flags = CHUNK_EXTENDED if ttl_ns else 0
    mark = MARK_MAGIC << MARK_MAGIC_SHIFT | flags << MARK_FLAGS_SHIFT
    mark |= priority << MARK_PRIORITY_SHIFT
    shape = length << SHAPE_BODY_SHIFT | key_length << SHAPE_KEY_SHIFT | properties_length
    named = key_length + properties_length
    chunk = b"".join(
        (
            _CHUNK.pack(shape, 0, time.time_ns(), mark),
            _EXTENSION.pack(ttl_ns, 0, 0, 0) if ttl_ns else b"",
            key, properties, bytes(-named & 15),
            body if type(body) is bytes else bytes(ffi.buffer(body)),
        )
    )  # fmt: skip
    head = _BEFORE.pack(0, 0, len(chunk), 0, 0)
    return b"".join((head, _WHERES[0], chunk, bytes(-len(chunk) & 7)))


def delivered(records: Body) -> Iterator[CopiedMessage]:
    """Copies, of what was delivered or looked at; Malformed if it is torn."""
    memory = memoryview(records)
    at = 0
    while at < len(memory):
        try:
            state, _body_crc, length, deliveries, _queue, where = _HEAD.unpack_from(memory, at)
            at += RECORD_HEAD_BYTES
            chunk = bytes(memory[at : at + length])
            copy = _copied(where & POSITION_MASK, deliveries, state, chunk)
        except StructError as error:
            raise Malformed(TORN) from error
        at += length + 7 & -8
        if at > len(memory):
            raise Malformed(TORN)
        yield copy


def contents(records: Body) -> tuple[list[int], list[int], list[bytes]]:
    """Positions, times of publishing, and bodies; Malformed if it is torn."""
    memory = bytes(records)
    positions, times, bodies = [], [], []
    at = 0
    try:
        while at < len(memory):
            _, _, length, _, _, where = _HEAD.unpack_from(memory, at)
            at += RECORD_HEAD_BYTES
            shape, _origin, published, _mark = _CHUNK.unpack_from(memory, at)
            positions.append(where & POSITION_MASK)
            times.append(published)
            bodies.append(memory[at + length - (shape >> SHAPE_BODY_SHIFT) : at + length])
            at += length + 7 & -8
    except StructError as error:
        raise Malformed(TORN) from error
    if at > len(memory):
        raise Malformed(TORN)
    return positions, times, bodies


def _copied(position: int, deliveries: int, state: int, chunk: bytes) -> CopiedMessage:
    shape, _origin, published, mark = _CHUNK.unpack_from(chunk)
    start, expires = CHUNK_HEADER_BYTES, 0
    flags = mark >> MARK_FLAGS_SHIFT & MARK_FLAGS_MASK
    if flags & CHUNK_EXTENDED:
        start += CHUNK_EXTENSION_BYTES
        (left,) = _WHERE.unpack_from(chunk, CHUNK_EXPIRY_AT)
        expires = time.monotonic_ns() + left if left else 0
    if flags & CHUNK_ONCE:
        start += CHUNK_ONCE_BYTES
    key_end = start + (shape >> SHAPE_KEY_SHIFT & SHAPE_LENGTH_MASK)
    properties_end = key_end + (shape & SHAPE_LENGTH_MASK)
    properties, unreadable = readable(chunk[key_end:properties_end])
    return CopiedMessage(
        position=position,
        body=chunk[len(chunk) - (shape >> SHAPE_BODY_SHIFT) :],
        key=chunk[start:key_end].decode(errors="replace") or None,
        properties=properties,
        published_at=published,
        deliveries=deliveries,
        is_taken=bool(state & TAKEN),
        is_confirmed=not state & UNCONFIRMED,
        priority=priority_of(mark),
        expires_ns=expires,
        taken_by=state >> TAKEN_BY_SHIFT or None,
        unreadable=unreadable,
    )
