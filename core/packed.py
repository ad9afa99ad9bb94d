"""MessagePack objects: where each one ends, what it is, and the keys of a map.

Going over an object is iterative (a count of objects that are still to come), and never reads at or
beyond `end`, whatever the bytes.  A place is an address; -1 stands for bytes that are malformed.

Bytes may change while they are read, as a message's do that belongs to nobody: each byte that says
how far to go is read once, and compared with the end before anybody goes there.
"""

from __future__ import annotations

from shmbroker.core.atomics import load_byte
from shmbroker.core.kernel import cold, exported, exported_cold, kernel
from shmbroker.core.span import span_equals

NIL = 0xC0
UNUSED = 0xC1
FALSE = 0xC2
TRUE = 0xC3
FLOAT = 0xCA
DOUBLE = 0xCB
UINT64 = 0xCF
INT8 = 0xD0
INT64 = 0xD3


@kernel
def two_bytes(at: int) -> int:
    return load_byte(at) << 8 | load_byte(at + 1)


@kernel
def four_bytes(at: int) -> int:
    return two_bytes(at) << 16 | two_bytes(at + 2)


@kernel
def big_endian(at: int, size: int) -> int:
    """0, 1, 2, 4 or 8 bytes."""
    if size == 0:
        return 0
    if size == 1:
        return load_byte(at)
    if size == 2:
        return two_bytes(at)
    if size == 4:
        return four_bytes(at)
    return four_bytes(at) << 32 | four_bytes(at + 4)


@kernel
def length_size(kind: int) -> int:
    """How many bytes of length, or of count, follow this first byte."""
    if kind >= 0xC4 and kind <= 0xC6:  # bin
        return 1 << (kind - 0xC4)
    if kind >= 0xC7 and kind <= 0xC9:  # ext
        return 1 << (kind - 0xC7)
    if kind >= 0xD9 and kind <= 0xDB:  # str
        return 1 << (kind - 0xD9)
    if kind >= 0xDC and kind <= 0xDF:  # array, map
        return 2 << (kind & 1)
    return 0


@kernel
def fixed_size(kind: int) -> int:
    """How many bytes follow whose number the first byte alone says."""
    if kind >= 0xA0 and kind <= 0xBF:  # fixstr
        return kind & 0x1F
    if kind >= 0xC7 and kind <= 0xC9:  # the type of an ext
        return 1
    if kind == 0xCA or kind == 0xCB:  # float
        return 4 << (kind - 0xCA)
    if kind >= 0xCC and kind <= 0xD3:  # uint, int
        return 1 << (kind & 3)
    if kind >= 0xD4 and kind <= 0xD8:  # fixext
        return 1 + (1 << (kind - 0xD4))
    return 0


@kernel
def children(kind: int, count: int) -> int:
    """How many objects follow that are part of this one."""
    if kind >= 0x80 and kind <= 0x8F:
        return 2 * (kind & 0x0F)
    if kind >= 0x90 and kind <= 0x9F:
        return kind & 0x0F
    if kind == 0xDC or kind == 0xDD:
        return count
    if kind == 0xDE or kind == 0xDF:
        return 2 * count
    return 0


@cold
def deep_end(at: int, end: int) -> int:
    """object_end of any object, also of one that has others in it."""
    left = 1
    while left > 0:
        if left > end - at:  # each takes a byte at least
            return -1
        kind = load_byte(at)
        size = length_size(kind)
        at += 1
        if kind == UNUSED or size > end - at:
            return -1
        length = big_endian(at, size)
        inner = children(kind, length)
        at += size + fixed_size(kind)
        if kind < 0xDC or kind > 0xDF:
            at += length
        if at > end:
            return -1
        left += inner - 1
    return at


@exported
def object_end(at: int, end: int) -> int:
    """Where the object at this place ends, or -1; also if there is no such place.

    Short strings, numbers and truths are most of it.
    """
    if at < 0 or at >= end:
        return -1
    kind = load_byte(at)
    if kind >= 0xA0 and kind <= 0xBF:
        at += 1 + (kind & 0x1F)
    elif kind < 0x80 or kind >= 0xE0 or kind in (NIL, FALSE, TRUE):
        return at + 1
    elif kind >= FLOAT and kind <= INT64:
        at += 1 + (1 << (kind & 3))
    else:
        return deep_end(at, end)
    return at if at <= end else -1


@kernel
def is_string(kind: int) -> int:
    return int((kind >= 0xA0 and kind <= 0xBF) or (kind >= 0xD9 and kind <= 0xDB))


@kernel
def string_start(at: int, end: int) -> int:
    """Where the characters of the string at this place start, or -1 if it is none."""
    if at >= end:
        return -1
    kind = load_byte(at)
    if is_string(kind):
        return at + 1 + length_size(kind)
    return -1


@exported_cold
def map_start(at: int, end: int) -> int:
    """Where the first key of the map is that fills these bytes, or -1 if it is none."""
    if at >= end:
        return -1
    kind = load_byte(at)
    if (kind >= 0x80 and kind <= 0x8F) or kind == 0xDE or kind == 0xDF:
        start = at + 1 + length_size(kind)
        return start if start <= end else -1
    return -1


@exported_cold
def map_check(at: int, end: int) -> int:
    """1 if these bytes are one map whose keys are strings; no bytes at all are an empty one."""
    if at == end:
        return 1
    if object_end(at, end) != end:
        return 0
    key = map_start(at, end)
    while key >= 0 and key < end:
        if string_start(key, end) < 0:
            return 0
        key = object_end(object_end(key, end), end)
    return int(key == end)


@exported_cold
def map_find(at: int, end: int, name: int, name_end: int) -> int:
    """The place of the value of a key, or -1 if it is not there as a whole, or in front of it is no
    map."""
    key = map_start(at, end)
    while key >= 0 and key < end:
        value = object_end(key, end)
        start = string_start(key, end)
        if value < 0 or start < 0:
            return -1
        length = value - start
        if length == name_end - name and span_equals(start, name, length):
            return value if object_end(value, end) >= 0 else -1
        key = object_end(value, end)
    return -1
