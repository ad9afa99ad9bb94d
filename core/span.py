"""A span: some bytes at an address.  Read one by one, so never beyond its end."""

from __future__ import annotations

from shmbroker.core.atomics import load_byte
from shmbroker.core.kernel import cold, kernel
from shmbroker.core.layout import ROW_HASH_MASK

HASH_START = 0x811C9DC5
HASH_PRIME = 0x01000193
"""FNV-1a of 32 bits: the product stays inside a signed word."""


@kernel
def span_equals(left: int, right: int, length: int) -> int:
    for at in range(length):
        if load_byte(left + at) != load_byte(right + at):
            return 0
    return 1


@cold
def span_hash(start: int, span: int, length: int) -> int:
    """Go on with a hash over these bytes."""
    value = start
    for at in range(length):
        value = ((value ^ load_byte(span + at)) * HASH_PRIME) & ROW_HASH_MASK
    return value


@kernel
def word_hash(start: int, word: int) -> int:
    """Go on with a hash over the bytes of a word."""
    value = start
    for shift in range(0, 64, 8):
        value = ((value ^ ((word >> shift) & 0xFF)) * HASH_PRIME) & ROW_HASH_MASK
    return value
