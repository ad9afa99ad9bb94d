"""Message ids and numbers of named producers that a node gives away when it leaves (inherited.c).

Of a queue there it is a table of rows, small enough to be told one by one: hashes of ids by their
lower bits, and one of producers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.layout import INHERITED_BYTES, PRODUCERS
from shmbroker.ipc._native import ffi, lib

if TYPE_CHECKING:
    from shmbroker.ipc.queue.queue import Queue

INHERITED: Final = "$ids"
"""The last value of each key is a row, or of which nodes there are rows of a queue."""
SEPARATOR: Final = "\x01"
"""In a key, between the name of a queue and what it is of."""
PRODUCERS_ROW: Final = "p"
WORD: Final = 8
PAIR: Final = 2 * WORD
IDENTITY: Final = 2 * WORD
NODE: Final = IDENTITY + WORD
"""Of one whose ids are known: the identity of the queue there, and by how many bits rows are."""
AT_ONCE: Final = 4096
ROW_PAIRS: Final = 128
"""So many are to be in a row; no more have room than INHERITED_BYTES say."""

Table = dict[str, bytes]
"""Rows by their names."""


def identity_of(queue: Queue) -> bytes:
    identity = ffi.new("int64_t[2]")
    lib.sb_queue_identity(queue._queue, identity)
    return bytes(ffi.buffer(identity))


def there(identity: bytes) -> str:
    """An identity, as it is in keys."""
    return "".join(identity[at : at + WORD][::-1].hex() for at in (0, WORD))


def table_of(queue: Queue) -> tuple[int, Table]:
    """All that a queue remembers: by how many bits, and the rows."""
    pairs = b"".join(_ids(queue))
    bits = (len(pairs) // PAIR // ROW_PAIRS).bit_length()
    while (table := _by_bits(pairs, bits)) is None:
        bits += 1
    if producers := _producers(queue):
        table[PRODUCERS_ROW] = producers
    return bits, table


def _by_bits(pairs: bytes, bits: int) -> Table | None:
    """None: a row is too long."""
    rows: dict[int, list[bytes]] = {}
    for at in range(0, len(pairs), PAIR):
        low = int.from_bytes(pairs[at + WORD : at + PAIR], "little")
        rows.setdefault(low & ((1 << bits) - 1), []).append(pairs[at : at + PAIR])
    if any(len(each) * PAIR > INHERITED_BYTES for each in rows.values()):
        return None
    return {f"{number:x}": b"".join(each) for number, each in rows.items()}


def _ids(queue: Queue) -> Iterator[bytes]:
    serial, halves = ffi.new("int64_t *"), ffi.new("int64_t[]", 2 * AT_ONCE)
    while count := _checked(queue, lib.sb_ids_after(queue._queue, serial, halves, AT_ONCE)):
        yield bytes(ffi.buffer(halves, count * PAIR))


def _producers(queue: Queue) -> bytes:
    pairs = ffi.new("int64_t[]", 2 * PRODUCERS)
    count = _checked(queue, lib.sb_producers(queue._queue, pairs, PRODUCERS))
    return bytes(ffi.buffer(pairs, count * PAIR))


def _checked(queue: Queue, code: Any) -> int:
    if code < 0:
        raise queue._error(code, "what is remembered of")
    return int(code)
