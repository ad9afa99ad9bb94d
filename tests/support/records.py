"""Records of the journal's format, as what follows a ring writes them into a buffer."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgpack

from shmbroker.core import layout as at
from shmbroker.ipc.journal import records

HEAD = struct.Struct("<IIIIQQ")
CHUNK = struct.Struct("<qqqq")
EXTENSION = struct.Struct("<qqqq")


def chunk(
    body: bytes,
    key: bytes = b"",
    properties: Mapping[str, Any] | bytes | None = None,
    priority: int | None = None,
    ttl: float | None = None,
) -> bytes:
    if isinstance(properties, bytes):
        packed = properties
    else:
        packed = msgpack.packb(dict(properties)) if properties else b""
    shape = len(body) << at.SHAPE_BODY_SHIFT | len(key) << at.SHAPE_KEY_SHIFT | len(packed)
    mark = at.MARK_MAGIC << at.MARK_MAGIC_SHIFT
    if priority is not None:
        mark |= (priority + 1) << at.MARK_PRIORITY_SHIFT
    more = b""
    if ttl is not None:
        mark |= at.CHUNK_EXTENDED << at.MARK_FLAGS_SHIFT
        more = EXTENSION.pack(time.monotonic_ns() + int(ttl * 1e9), 0, 0, 0)
    middle = key + packed
    middle += bytes(-len(middle) % 16)
    return CHUNK.pack(shape, 0, time.time_ns(), mark) + more + middle + body


def record(position: int, inside: bytes, queue: int = 7, kind: int = records.MESSAGE) -> bytes:
    where = kind << 56 | position
    head = HEAD.pack(0, 0, len(inside), 0, queue, where)
    return head + inside + bytes(-len(inside) % 8)


def stream(bodies: Iterable[bytes], first: int = 0, **more: Any) -> bytes:
    """A record for each body, at positions that follow each other."""
    return b"".join(
        record(position, chunk(body, **more)) for position, body in enumerate(bodies, first)
    )
