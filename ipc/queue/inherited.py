"""Message ids and numbers of named producers that a node gives away when it leaves (inherited.c).

Of a queue there it is a table of rows, small enough to be told one by one: hashes of ids by their
lower bits, and one of producers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.layout import (
    INHERITED_BYTES,
    PRODUCER_BYTES,
    PRODUCER_IDENTITY_AT,
    PRODUCERS,
    RING_IDS_AT,
    RING_PRODUCERS_AT,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.ring.look import address_of, looking, port_to, ring_word

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
    """Their hashes, the oldest first."""
    with looking(queue):
        port = port_to(queue)
        _checked(queue, lib.sb_port_true_tail(port))  # notes the ids of all that was published
        last = lib.sb_port_id_count(port)
        serial = max(1, last - ring_word(port, RING_IDS_AT) + 1)
        halves = ffi.new("int64_t[]", 2 * AT_ONCE + 1)
        while serial <= last:
            count = lib.sb_port_ids_read(port, serial, last, address_of(halves), AT_ONCE)
            serial = int(halves[2 * count])
            yield bytes(ffi.buffer(halves, count * PAIR))


def _producers(queue: Queue) -> bytes:
    """Hashes of their names, and their last numbers."""
    pairs = []
    with looking(queue):
        port = port_to(queue)
        for each in range(1, PRODUCERS):
            entry = RING_PRODUCERS_AT + each * PRODUCER_BYTES
            identity = ring_word(port, entry + PRODUCER_IDENTITY_AT)
            if identity > 0:
                last = _checked(queue, lib.sb_port_producer_last(port, each))
                pairs.append(struct.pack("<qq", identity, last))
    return b"".join(pairs)


def _checked(queue: Queue, code: Any) -> int:
    if code < 0:
        raise queue._error(code, "what is remembered of")
    return int(code)
