"""Making rings and arenas in zeroed memory, checking those that others made, opening a port.

Nothing of a segment is used before its header was checked.  What the checks have read is kept in
the port, in private memory, so that no later change of the shared header can mislead a kernel.
"""

from __future__ import annotations

from shmbroker.core.atomics import fill, load, load_acquire, store, store_release
from shmbroker.core.codes import (
    DAMAGED,
    INVALID,
    NO_PRODUCER,
    NOT_A_SEGMENT,
    OK,
    OTHER_VERSION,
    TRUNCATED,
    WRONG_ARENA,
)
from shmbroker.core.head import head_load
from shmbroker.core.ids import ids_bytes
from shmbroker.core.kernel import exported, exported_cold, kernel
from shmbroker.core.layout import (
    ARENA_BLOCK_BYTES_AT,
    ARENA_BLOCKS_AT,
    ARENA_BYTES_AT,
    ARENA_BYTES_MAX,
    ARENA_IDENTITY_AT,
    ARENA_MAGIC,
    ARENA_MAGIC_AT,
    ARENA_TABLE_AT,
    ARENA_VERSION_AT,
    BLOCK_BYTES,
    BLOCK_ENTRY_SHIFT,
    DUPLICATE_IDS_MAX,
    GATES,
    LAYOUT_VERSION,
    ORIGIN_BYTES,
    ORIGINS,
    OWNER_MASK,
    PAGE_BYTES,
    PORT_ARENA,
    PORT_BARRIER,
    PORT_BLOCK_SHIFT,
    PORT_BLOCKS,
    PORT_BYTES,
    PORT_DATA,
    PORT_DATA_BYTES,
    PORT_FLAGS,
    PORT_HEADER,
    PORT_IDS,
    PORT_IDS_MAX,
    PORT_LAP_SHIFT,
    PORT_LIMIT,
    PORT_ORIGINS,
    PORT_ORIGINS_MAX,
    PORT_OWNER,
    PORT_PENDING,
    PORT_PRODUCER,
    PORT_QUEUE,
    PORT_RECLAIM_MASK,
    PORT_RUN_BYTES,
    PORT_RUN_COUNT,
    PORT_SCAN,
    PORT_SEQUENCE,
    PORT_SLOT_MASK,
    PORT_SLOTS,
    PORT_STOP,
    QUEUE_MASK,
    RING_ARENA_AT,
    RING_BYTES_AT,
    RING_CONFIRMED_AT,
    RING_FLAGS_AT,
    RING_IDS_AT,
    RING_JOURNAL_GATE_AT,
    RING_MAGIC,
    RING_MAGIC_AT,
    RING_ORIGINS_AT,
    RING_QUEUE_AT,
    RING_SLOTS_AT,
    RING_SLOTS_START,
    RING_VERSION_AT,
    SEQUENCE_MASK,
    SLOT_BYTES,
    SLOTS_MAX,
    SLOTS_MIN,
    STOPPED_FOR_GOOD,
)
from shmbroker.core.producer import number_at, producer_find
from shmbroker.core.run import run_forget, run_release
from shmbroker.core.tail import true_tail

RECLAIM_MASK_MAX = 31


@kernel
def log2(value: int) -> int:
    """The exponent of a power of two, -1 if it is none."""
    if value <= 0 or value & (value - 1):
        return -1
    exponent = 0
    while value > 1:
        value >>= 1
        exponent += 1
    return exponent


@exported
def ring_bytes(slots: int) -> int:
    """How large the segment of a ring of so many slots is, INVALID if there can be none."""
    if log2(slots) < 0 or slots < SLOTS_MIN or slots > SLOTS_MAX:
        return INVALID
    return RING_SLOTS_START + slots * SLOT_BYTES


@exported
def arena_data_at(blocks: int) -> int:
    """Where block 0 starts in the segment of an arena of so many blocks."""
    table = blocks << BLOCK_ENTRY_SHIFT
    return ARENA_TABLE_AT + ((table + PAGE_BYTES - 1) & -PAGE_BYTES)


@exported
def arena_bytes(data_bytes: int) -> int:
    """How large the segment of an arena for so much data is, INVALID if there can be none."""
    if data_bytes < BLOCK_BYTES or data_bytes > ARENA_BYTES_MAX or data_bytes % BLOCK_BYTES:
        return INVALID
    return arena_data_at(data_bytes // BLOCK_BYTES) + data_bytes


@exported
def ring_format(ring: int, slots: int, queue: int, flags: int, arena_identity: int) -> int:
    """Make a ring in zeroed memory; its magic is written last."""
    size = ring_bytes(slots)
    if size < 0 or queue < 0 or queue > QUEUE_MASK:
        return INVALID
    store(ring + RING_VERSION_AT, LAYOUT_VERSION)
    store(ring + RING_BYTES_AT, size)
    store(ring + RING_SLOTS_AT, slots)
    store(ring + RING_QUEUE_AT, queue)
    store(ring + RING_FLAGS_AT, flags)
    store(ring + RING_ARENA_AT, arena_identity)
    store_release(ring + RING_MAGIC_AT, RING_MAGIC)
    return OK


@exported
def ring_bytes_with(slots: int, ids: int) -> int:
    """ring_bytes, with room behind it for so many message ids."""
    size = ring_bytes(slots)
    if size < 0 or ids < 0 or ids > DUPLICATE_IDS_MAX:
        return INVALID
    return size + (ids_bytes(ids) if ids else 0)


@exported
def ring_origins_at(slots: int, ids: int) -> int:
    """Where the table of origins begins in the segment of such a ring: on a page."""
    size = ring_bytes_with(slots, ids)
    return size if size < 0 else (size + PAGE_BYTES - 1) & -PAGE_BYTES


@exported
def ring_bytes_all(slots: int, ids: int, origins: int) -> int:
    """ring_bytes_with, with room behind it for so many origins."""
    if origins < 0 or origins > ORIGINS:
        return INVALID
    if origins == 0:
        return ring_bytes_with(slots, ids)
    start = ring_origins_at(slots, ids)
    return start if start < 0 else start + origins * ORIGIN_BYTES


@exported
def arena_format(arena: int, data_bytes: int, identity: int) -> int:
    """Make an arena in zeroed memory, with nothing committed; its magic is written last."""
    size = arena_bytes(data_bytes)
    if size < 0:
        return INVALID
    store(arena + ARENA_VERSION_AT, LAYOUT_VERSION)
    store(arena + ARENA_BYTES_AT, size)
    store(arena + ARENA_BLOCK_BYTES_AT, BLOCK_BYTES)
    store(arena + ARENA_BLOCKS_AT, data_bytes // BLOCK_BYTES)
    store(arena + ARENA_IDENTITY_AT, identity)
    store_release(arena + ARENA_MAGIC_AT, ARENA_MAGIC)
    return OK


@exported
def ring_check(ring: int, size: int) -> int:
    """OK if this memory of size bytes is a ring that can be used."""
    if size < RING_SLOTS_START or load_acquire(ring + RING_MAGIC_AT) != RING_MAGIC:
        return NOT_A_SEGMENT
    if load(ring + RING_VERSION_AT) != LAYOUT_VERSION:
        return OTHER_VERSION
    wanted = ring_bytes(load(ring + RING_SLOTS_AT))
    if wanted < 0 or load(ring + RING_BYTES_AT) != wanted:
        return NOT_A_SEGMENT
    needed = ring_bytes_all(
        load(ring + RING_SLOTS_AT), load(ring + RING_IDS_AT), load(ring + RING_ORIGINS_AT)
    )
    if needed < 0:
        return NOT_A_SEGMENT
    queue = load(ring + RING_QUEUE_AT)
    journal = load(ring + RING_JOURNAL_GATE_AT)
    if queue < 0 or queue > QUEUE_MASK or journal < 0 or journal > GATES:
        return NOT_A_SEGMENT
    if size < needed:
        return TRUNCATED
    return OK


@exported
def arena_check(arena: int, size: int) -> int:
    """OK if this memory of size bytes is an arena that can be used."""
    if size < ARENA_TABLE_AT or load_acquire(arena + ARENA_MAGIC_AT) != ARENA_MAGIC:
        return NOT_A_SEGMENT
    if load(arena + ARENA_VERSION_AT) != LAYOUT_VERSION:
        return OTHER_VERSION
    blocks = load(arena + ARENA_BLOCKS_AT)
    if blocks <= 0 or blocks > ARENA_BYTES_MAX // BLOCK_BYTES:
        return NOT_A_SEGMENT
    if load(arena + ARENA_BLOCK_BYTES_AT) != BLOCK_BYTES:
        return NOT_A_SEGMENT
    wanted = arena_bytes(blocks * BLOCK_BYTES)
    if load(arena + ARENA_BYTES_AT) != wanted:
        return NOT_A_SEGMENT
    if size < wanted:
        return TRUNCATED
    return OK


@kernel
def port_set(
    port: int, ring: int, arena: int, slots: int, blocks: int, block_bytes: int, owner: int
) -> int:
    """Fill in a port for memory that was checked."""
    fill(port, 0, PORT_BYTES)
    store(port + PORT_HEADER, ring)
    store(port + PORT_SLOTS, ring + RING_SLOTS_START)
    store(port + PORT_SLOT_MASK, slots - 1)
    store(port + PORT_LAP_SHIFT, log2(slots))
    store(port + PORT_OWNER, owner)
    store(port + PORT_QUEUE, load(ring + RING_QUEUE_AT) & QUEUE_MASK)
    store(port + PORT_FLAGS, load(ring + RING_FLAGS_AT))
    store(port + PORT_ARENA, arena)
    store(port + PORT_DATA, arena + arena_data_at(blocks))
    store(port + PORT_DATA_BYTES, blocks * block_bytes)
    store(port + PORT_BLOCK_SHIFT, log2(block_bytes))
    store(port + PORT_BLOCKS, blocks)
    store(port + PORT_RUN_BYTES, block_bytes)
    store(port + PORT_RECLAIM_MASK, min(RECLAIM_MASK_MAX, max(1, slots >> 2) - 1))
    store(port + PORT_PENDING, -1)
    store(port + PORT_SCAN, (owner * blocks) >> 12)
    if load(ring + RING_JOURNAL_GATE_AT) != 0:
        store(port + PORT_BARRIER, ring + RING_CONFIRMED_AT)
    head_load(port)
    return OK


@kernel
def port_set_ids(port: int, address: int, capacity: int) -> int:
    store(port + PORT_IDS, address)
    store(port + PORT_IDS_MAX, capacity)
    return OK


@kernel
def port_set_origins(port: int, address: int, most: int) -> int:
    store(port + PORT_ORIGINS, address)
    store(port + PORT_ORIGINS_MAX, most)
    return OK


@exported
def port_open(port: int, ring: int, ring_size: int, arena: int, arena_size: int, owner: int) -> int:
    """Check both segments and fill in the port of one thread of participant `owner`, 1 to 4095."""
    if owner < 1 or owner > OWNER_MASK:
        return INVALID
    code = ring_check(ring, ring_size)
    if code != OK:
        return code
    code = arena_check(arena, arena_size)
    if code != OK:
        return code
    if load(ring + RING_ARENA_AT) != load(arena + ARENA_IDENTITY_AT):
        return WRONG_ARENA
    slots = load(ring + RING_SLOTS_AT)
    ids = load(ring + RING_IDS_AT)
    blocks = load(arena + ARENA_BLOCKS_AT)
    # once more, from the values that are used: the checks' own reads may have been of others
    origins = load(ring + RING_ORIGINS_AT)
    needed = ring_bytes_all(slots, ids, origins)
    if needed < 0 or needed > ring_size:
        return TRUNCATED
    if blocks <= 0 or blocks > ARENA_BYTES_MAX // BLOCK_BYTES:
        return NOT_A_SEGMENT
    if arena_bytes(blocks * BLOCK_BYTES) > arena_size:
        return TRUNCATED
    port_set(port, ring, arena, slots, blocks, BLOCK_BYTES, owner)
    port_set_origins(port, ring + ring_origins_at(slots, ids), origins)
    return port_set_ids(port, ring + ring_bytes(slots), ids)


@exported
def port_number(port: int, identity: int) -> int:
    """Number what this port publishes, as the producer with this identity.

    The last number that was published under it, 0 at first: publish again what came after.
    """
    if identity <= 0:
        return INVALID
    if true_tail(port) < 0:  # tail helped to the truth: now the table is the truth
        return INVALID
    producer = producer_find(port, identity)
    if producer == 0:
        return NO_PRODUCER
    store(port + PORT_PRODUCER, producer)
    # SYNC POINT: sequence (acquire): tail was seen past the last message, so its number is there
    last = load_acquire(number_at(port, producer)) & SEQUENCE_MASK
    store(port + PORT_SEQUENCE, last)
    return last


@exported_cold
def producer_last(port: int, producer: int) -> int:
    """The last number that this producer has published, 0 if none; INVALID or DAMAGED."""
    if number_at(port, producer) == 0:
        return INVALID
    if true_tail(port) < 0:
        return DAMAGED
    return load_acquire(number_at(port, producer)) & SEQUENCE_MASK


@exported
def port_close(port: int) -> int:
    """Return all blocks of the port.  Chunks that are still on loan are lost with it."""
    head_load(port)
    while load(port + PORT_RUN_COUNT) > 0:
        run_release(port, 0)
        run_forget(port, 0)
    fill(port, 0, PORT_BYTES)
    return OK


@exported_cold
def port_stop(port: int) -> int:
    """Another thread may be using it: it is to publish no more.

    Who publishes may use up the run of blocks that it is looking for at this moment.
    """
    store_release(port + PORT_STOP, STOPPED_FOR_GOOD)
    store(port + PORT_LIMIT, 0)
    return OK


@exported_cold
def port_shut(port: int, ring: int, arena: int) -> int:
    """After port_close: lead into this empty memory, as long as the smallest ring, for good.

    Who goes on with the port publishes nothing, finds nothing, and is answered CLOSED.
    """
    store(port + PORT_HEADER, ring)
    store(port + PORT_SLOTS, ring + RING_SLOTS_START)
    store(port + PORT_SLOT_MASK, SLOTS_MIN - 1)
    store(port + PORT_LAP_SHIFT, log2(SLOTS_MIN))
    store(port + PORT_ARENA, arena)
    store(port + PORT_DATA, arena)
    store(port + PORT_DATA_BYTES, ARENA_BYTES_MAX)
    store(port + PORT_BLOCK_SHIFT, log2(BLOCK_BYTES))
    store(port + PORT_PENDING, -1)
    store(port + PORT_STOP, STOPPED_FOR_GOOD)
    return OK
