"""Restoring: a ring is filled from a journal, at the positions that its messages had.

It is done in private memory, before the ring has a name, so plain stores are enough.  Positions are
kept, because the journal goes on with them; what was retired in between becomes DONE without a
chunk.  The journal's gate stands at the position below which all is retired, so that reclaiming
cannot pass a position that a message may still come for.

What drops second copies is restored too: the ids that the ring remembers, under the serials that
they had, and of each producer its place in the table and its number.
"""

from __future__ import annotations

from shmbroker.core.atomics import load, store
from shmbroker.core.codes import DUPLICATE, FULL, INVALID, OK
from shmbroker.core.gate import gate_at
from shmbroker.core.head import head_load
from shmbroker.core.ids import id_bucket_at, id_entry_at, id_search, id_word, lap_of_serial
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    CHUNK_FIELD,
    DONE,
    IDS_BEFORE_AT,
    IDS_COUNT_AT,
    LEVELS,
    PAIR_BYTES,
    PORT_BARRIER,
    PORT_HEADER,
    PORT_IDS,
    PORT_SLOT_MASK,
    POSITION_MASK,
    PRODUCER_IDENTITY_AT,
    PRODUCER_SEQUENCE_AT,
    PRODUCERS,
    RING_HEAD_AT,
    RING_JOURNAL_GATE_AT,
    RING_LEVELS_AT,
    RING_TAIL_AT,
    RING_TAKE_AT,
    SEQUENCE_MASK,
    STATE_SHIFT,
)
from shmbroker.core.once import verdict_at
from shmbroker.core.producer import producer_at
from shmbroker.core.reclaim import reclaim
from shmbroker.core.run import run_published
from shmbroker.core.word import (
    lap_of,
    slot_at,
    word_done,
    word_ready,
    word_state,
)


@kernel
def restored_tail(port: int) -> int:
    return load(load(port + PORT_HEADER) + RING_TAIL_AT)


@kernel
def restore_hole(port: int, position: int) -> int:
    """Nothing is here, and it is the tail's turn."""
    store(slot_at(port, position), (DONE << STATE_SHIFT) | lap_of(port, position))
    store(load(port + PORT_HEADER) + RING_TAIL_AT, position + 1)
    return OK


@kernel
def restore_holes(port: int, position: int) -> int:
    """Nothing is between the tail and here; FULL if the ring cannot hold what is below."""
    tail = restored_tail(port)
    while tail < position:
        if tail - head_load(port) > load(port + PORT_SLOT_MASK) and reclaim(port) == 0:
            return FULL
        restore_hole(port, tail)
        tail += 1
    return OK


@kernel
def barrier_move(port: int, position: int) -> int:
    """The journal's gate and the barrier, while nobody else uses the ring."""
    gate = gate_at(port, load(load(port + PORT_HEADER) + RING_JOURNAL_GATE_AT) - 1)
    store(gate, load(gate) & ~POSITION_MASK | position)
    store(load(port + PORT_BARRIER), position)
    return position


@exported_cold
def restore_begin(port: int, position: int) -> int:
    """The ring, which is new, begins at this position: so far all is retired."""
    if position < 0 or position >= POSITION_MASK:
        return INVALID
    header = load(port + PORT_HEADER)
    store(header + RING_TAIL_AT, position)
    store(header + RING_TAKE_AT, position)
    store(header + RING_HEAD_AT, position)
    for level in range(LEVELS):
        store(header + RING_LEVELS_AT + level * PAIR_BYTES, position)
    for each in range(position, position + load(port + PORT_SLOT_MASK) + 1):
        store(slot_at(port, each), lap_of(port, each))
    barrier_move(port, position)
    head_load(port)
    return OK


@exported_cold
def restore_message(port: int, position: int, chunk: int) -> int:
    """A chunk that is reserved and filled is the message at this position.

    DUPLICATE if it is there, or was retired; FULL if the ring has no slot for it.
    """
    if position < head_load(port):
        return DUPLICATE
    if position > head_load(port) + 2 * (load(port + PORT_SLOT_MASK) + 1):
        return FULL
    if restore_holes(port, position) != OK:
        return FULL
    slot = slot_at(port, position)
    if position == restored_tail(port):
        if position - head_load(port) > load(port + PORT_SLOT_MASK) and reclaim(port) == 0:
            return FULL
        restore_hole(port, position)
    elif load(slot) != (DONE << STATE_SHIFT) | lap_of(port, position):
        return DUPLICATE
    store(slot, word_ready(chunk, lap_of(port, position)))
    run_published(port, chunk, restored_tail(port) - 1)
    return OK


@exported_cold
def restore_retired(port: int, position: int) -> int:
    """The message at this position, if it is there, is retired."""
    if position < head_load(port):
        return OK
    if position > head_load(port) + 2 * (load(port + PORT_SLOT_MASK) + 1):
        return FULL
    if restore_holes(port, position + 1) != OK:
        return FULL
    slot = slot_at(port, position)
    store(slot, word_done(load(slot)))
    return OK


@exported_cold
def restore_head(port: int, position: int) -> int:
    """All below this position is retired."""
    if position >= POSITION_MASK:
        return INVALID
    head = head_load(port)
    if position <= head:
        return OK
    slots = load(port + PORT_SLOT_MASK) + 1
    # the segments between may be gone, with all that was retired in them: as if it began here
    is_far = position - restored_tail(port) > slots
    if not is_far and restore_holes(port, min(position, head + slots)) != OK:
        return FULL
    for each in range(head, min(position, restored_tail(port))):
        slot = slot_at(port, each)
        if word_state(load(slot)) != DONE:
            store(slot, word_done(load(slot)))
    barrier_move(port, position)
    while reclaim(port) > 0:
        pass
    return restore_begin(port, position) if is_far else restore_holes(port, position)


@kernel
def is_hole(port: int, position: int) -> int:
    word = load(slot_at(port, position))
    return int(word_state(word) == DONE and word & CHUNK_FIELD == 0)


@exported_cold
def restore_has_holes(port: int, below: int) -> int:
    """1 if no message ever came for a position, below this one, that readers may look at."""
    for position in range(head_load(port), min(restored_tail(port), below)):
        if is_hole(port, position):
            return 1
    return 0


@exported_cold
def restore_duplicates(port: int, chunk: int) -> int:
    """What was there was a second copy: let all such positions say so, with this chunk of one."""
    for position in range(head_load(port), restored_tail(port)):
        if is_hole(port, position):
            store(slot_at(port, position), word_done(word_ready(chunk, lap_of(port, position))))
            store(verdict_at(port, position), (position + 1) << 1 | 1)
    return run_published(port, chunk, restored_tail(port) - 1)


@exported_cold
def restore_end(port: int) -> int:
    """All of the journal was read: what is here is in it, and may be taken."""
    barrier_move(port, restored_tail(port))
    while reclaim(port) > 0:
        pass
    return OK


@exported_cold
def restore_count(port: int) -> int:
    """How many messages are there."""
    there = 0
    for position in range(head_load(port), restored_tail(port)):
        if word_state(load(slot_at(port, position))) != DONE:
            there += 1
    return there


@exported_cold
def restore_id(port: int, high: int, low: int, serial: int) -> int:
    """This id has this serial, above all before it; OK also if it is in the log already."""
    if serial <= load(load(port + PORT_IDS) + IDS_COUNT_AT):
        return INVALID
    bucket = id_bucket_at(port, low)
    last = load(bucket)
    if id_search(port, high, low, last) > 0:
        return OK
    entry = id_entry_at(port, serial)
    lap = lap_of_serial(port, serial)
    for index in range(3):
        store(entry + index * 8, id_word(high, low, index, lap))
    store(entry + IDS_BEFORE_AT, last)
    store(bucket, serial)
    store(load(port + PORT_IDS) + IDS_COUNT_AT, serial)
    return OK


@exported_cold
def restore_number(port: int, producer: int, sequence: int) -> int:
    """This producer has published this number."""
    if producer <= 0 or producer >= PRODUCERS:
        return INVALID
    entry = producer_at(port, producer)
    if load(entry + PRODUCER_IDENTITY_AT) > 0 and load(entry + PRODUCER_SEQUENCE_AT) < sequence:
        store(entry + PRODUCER_SEQUENCE_AT, sequence & SEQUENCE_MASK)
    return OK


@exported_cold
def restore_producer(port: int, producer: int, identity: int, sequence: int) -> int:
    """The entry of this index is that of the producer with this identity."""
    if producer <= 0 or producer >= PRODUCERS or identity <= 0:
        return INVALID
    store(producer_at(port, producer) + PRODUCER_IDENTITY_AT, identity)
    return restore_number(port, producer, sequence)
