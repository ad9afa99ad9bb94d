"""What every message carries: who published it, which one it is, and a checksum of all of it.

    0   identity   of the incarnation that published it
    8   number     its messages, counted from 0
    16  length     of what follows
    20  checksum   CRC-32 of the 20 bytes before and of what follows

An empty message has its identity and number in its key.  native/payload.h says the same in C.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from random import Random
from struct import Struct

BEFORE = Struct("<QQI")
CHECKSUM = Struct("<I")
HEADER_BYTES = BEFORE.size + CHECKSUM.size
LARGE_BYTES = 100 << 10
USUAL_BYTES = 20 << 10
_FILL = Random(1).randbytes(LARGE_BYTES + 4096)


@dataclass(frozen=True, slots=True)
class Seen:
    identity: int
    number: int
    is_whole: bool


def random_length(random: Random) -> int:
    """From nothing to 20 KiB, small ones more often; now and then 100 KiB."""
    if random.random() < 0.01:
        return LARGE_BYTES
    return int(USUAL_BYTES * random.random() ** 3)


def body_of(identity: int, number: int, length: int) -> bytes:
    start = (identity * 31 + number) % 4096
    fill = _FILL[start : start + length]
    before = BEFORE.pack(identity, number, length)
    return before + CHECKSUM.pack(zlib.crc32(fill, zlib.crc32(before))) + fill


def key_of(identity: int, number: int) -> str:
    return f"{identity}.{number}"


def seen(body: bytes | memoryview, key: str | None) -> Seen:
    """What a message says of itself, and whether that can be believed."""
    if len(body) == 0:
        identity, _, number = (key or "").partition(".")
        if identity.isdecimal() and number.isdecimal():
            return Seen(int(identity), int(number), True)
        return Seen(0, 0, False)
    if len(body) < HEADER_BYTES:
        return Seen(0, 0, False)
    identity_, number_, length = BEFORE.unpack_from(body)
    (checksum,) = CHECKSUM.unpack_from(body, BEFORE.size)
    right = zlib.crc32(body[HEADER_BYTES:], zlib.crc32(body[: BEFORE.size]))
    return Seen(identity_, number_, length == len(body) - HEADER_BYTES and checksum == right)
