"""The applier of a queue replica: it puts messages where the original has them.

The ring begins at a position of the original, and is closed (closed.py): there is one who places
and retires, so plain stores do.  Others look, and reclaim what is done with: a browser copies, and
then looks whether head has passed what it read; the journaler moves head, so a slot may be of the
next lap at any time.  A position whose message never came, because it was done with before, is
a hole: DONE, without a chunk.

A chunk is filled before it is known that it may be placed (`replica_stage`).  Its memory is given
back when head has passed its position, whether it was placed or not.
"""

from __future__ import annotations

from shmbroker.core.atomics import load, load_acquire, store, store_release
from shmbroker.core.block import block_drop, block_lower, block_promise
from shmbroker.core.chunk import chunk_bytes, committed_blocks, has_memory
from shmbroker.core.closed import closed_word
from shmbroker.core.codes import DAMAGED, FULL, INVALID, OK
from shmbroker.core.head import head_load
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.layout import (
    CHUNK_HEADER_BYTES,
    CHUNK_MARK_AT,
    CHUNK_SHAPE_AT,
    CLOSED,
    DELETABLE,
    DONE,
    EPOCH_STEP,
    LAP_MASK,
    LEVELS,
    MODE_REPLICA,
    PAIR_BYTES,
    PORT_BLOCK_SHIFT,
    PORT_DATA,
    PORT_HEADER,
    PORT_RUN_COUNT,
    PORT_SLOT_MASK,
    POSITION_MASK,
    READY,
    RING_CLOSED_AT,
    RING_HEAD_AT,
    RING_LEVELS_AT,
    RING_MODE_AT,
    RING_TAIL_AT,
    RING_TAKE_AT,
    RUN_BYTES_AT,
    RUN_LAST_AT,
    RUN_START_AT,
    SETTING_REPLICA_AT,
    STATE_SHIFT,
)
from shmbroker.core.reclaim import reclaim
from shmbroker.core.retired import is_retired
from shmbroker.core.run import run_at, run_of, run_published
from shmbroker.core.word import (
    lap_of,
    slot_at,
    word_chunk,
    word_done,
    word_ready,
    word_state,
)


@kernel
def replica_tail(port: int) -> int:
    return load(load(port + PORT_HEADER) + RING_TAIL_AT)


@kernel
def replica_moved(address: int, position: int) -> int:
    """A word with an epoch is at this position, in the next epoch."""
    epoch = (load(address) & ~POSITION_MASK) + EPOCH_STEP
    store_release(address, epoch | position)
    return position


@kernel
def replica_close(port: int, head: int, tail: int) -> int:
    """All slots that are not in use are free and closed."""
    for each in range(tail, head + load(port + PORT_SLOT_MASK) + 1):
        store_release(slot_at(port, each), closed_word(lap_of(port, each)))
    return OK


@exported_cold
def replica_begin(port: int, position: int) -> int:
    """The ring is empty and closed, and begins at this position.

    Of a durable one the journal's gate may stand below: the journaler moves it on.  Tail is last,
    so after a death in between head is above tail or where it was: then it is begun again.
    """
    if position < 0 or position >= POSITION_MASK:
        return INVALID
    header = load(port + PORT_HEADER)
    store(header + RING_CLOSED_AT, CLOSED)
    replica_close(port, position, position)
    replica_moved(header + RING_TAKE_AT, position)
    for level in range(LEVELS):
        replica_moved(header + RING_LEVELS_AT + level * PAIR_BYTES, position)
    replica_moved(header + RING_HEAD_AT, position)
    store_release(header + RING_TAIL_AT, position)
    head_load(port)
    return OK


@exported_cold
def replica_restored(port: int) -> int:
    """The ring was filled from a journal (restore.py), before it had a name: it is closed."""
    store(load(port + PORT_HEADER) + RING_CLOSED_AT, CLOSED)
    return replica_close(port, head_load(port), replica_tail(port))


@kernel
def replica_put(port: int, word: int) -> int:
    """This word is at tail, and tail behind it; FULL if its slot is in use."""
    tail = replica_tail(port)
    head = head_load(port)
    while tail - head > load(port + PORT_SLOT_MASK):
        # others reclaim, too: then there may be room though we have found none
        if reclaim(port) == 0 and head_load(port) == head:
            return FULL
        head = head_load(port)
    store_release(slot_at(port, tail), word)
    store_release(load(port + PORT_HEADER) + RING_TAIL_AT, tail + 1)
    return OK


@kernel
def replica_holes(port: int, position: int) -> int:
    """Nothing is between tail and this position; FULL if the ring cannot hold what is below."""
    code = OK
    while code == OK and replica_tail(port) < position:
        code = replica_put(port, (DONE << STATE_SHIFT) | lap_of(port, replica_tail(port)))
    return code


@kernel
def replica_stage(port: int, chunk: int, position: int) -> int:
    """A chunk that is reserved and filled is for the message at this position."""
    return run_published(port, chunk, position)


@exported_cold
def replica_promise(port: int) -> int:
    """What is staged may be placed by others, if we die: its blocks are not free before that."""
    shift = load(port + PORT_BLOCK_SHIFT)
    for index in range(load(port + PORT_RUN_COUNT)):
        run = run_at(port, index)
        last = load(run + RUN_LAST_AT)
        if last >= replica_tail(port):
            first = load(run + RUN_START_AT) >> shift
            for block in range(first, first + (load(run + RUN_BYTES_AT) >> shift)):
                block_promise(port, block, last)
    return OK


@cold
def chunk_stays(port: int, chunk: int, last: int) -> int:
    """What it is in holds nothing above this position, and is not free before that."""
    index = run_of(port, chunk)
    if index >= 0:
        run = run_at(port, index)
        store(run + RUN_LAST_AT, min(load(run + RUN_LAST_AT), last))
        return OK
    if not has_memory(port, chunk + CHUNK_HEADER_BYTES):
        return DAMAGED
    address = load(port + PORT_DATA) + chunk
    length = chunk_bytes(load(address + CHUNK_SHAPE_AT), load(address + CHUNK_MARK_AT))
    shift = load(port + PORT_BLOCK_SHIFT)
    end = min((chunk + length - 1 >> shift) + 1, committed_blocks(port))
    for block in range(chunk >> shift, end):
        block_lower(port, block, last)
    return OK


@exported_cold
def replica_unstage(port: int) -> int:
    """What was staged and is not there will not be placed: its memory is free.

    That of a former applier is too, once what it had written down is shown (moment.py).  What
    shares a block with a message is free with that.  A message that is done with counts until head
    has passed it: somebody may be reading it.
    """
    head, last = head_load(port), replica_tail(port) - 1
    for position in range(head, last + 1):
        chunk_stays(port, word_chunk(load_acquire(slot_at(port, position))), last)
    for index in range(load(port + PORT_RUN_COUNT)):
        run = run_at(port, index)
        if load(run + RUN_LAST_AT) > last:
            store(run + RUN_LAST_AT, -1)
    for block in range(committed_blocks(port)):
        block_drop(port, block, last)
    return OK


@cold
def replica_place(port: int, chunk: int, position: int) -> int:
    """A staged chunk is the message at this position, at or behind tail.  FULL if the ring has no
    slot for it."""
    code = replica_holes(port, position)
    if code != OK or position != replica_tail(port):
        return code
    return replica_put(port, word_ready(chunk, lap_of(port, position)))


@kernel
def replica_has(port: int, position: int, word: int) -> int:
    """1 if this word of a slot is a message at this position that nobody is done with."""
    return int(word_state(word) == READY and word & LAP_MASK == lap_of(port, position))


@kernel
def replica_done(port: int, position: int) -> int:
    slot = slot_at(port, position)
    word = load_acquire(slot)
    if replica_has(port, position, word):  # else it is done with, and perhaps of the next lap
        store_release(slot, word_done(word))
    return OK


@kernel
def replica_retire(port: int, head: int) -> int:
    """All below this position is done with there: head moves here, or the ring begins anew."""
    tail = replica_tail(port)
    for position in range(head_load(port), min(head, tail)):
        replica_done(port, position)
    while reclaim(port) > 0:
        pass
    return replica_begin(port, head) if head > tail else OK


@cold
def replica_retire_above(port: int, head: int, bits: int, length: int) -> int:
    """Of what is at or above this position all is done with whose bit is set, in so many bytes."""
    tail = min(replica_tail(port), head + 8 * length)
    from_ = head_load(port)
    for word in range(0, length, 8):
        seen = load(bits + word)
        if seen == 0:
            continue
        first = head + 8 * word
        for position in range(max(first, from_), min(first + 64, tail)):
            if (seen >> (position - first)) & 1:
                replica_done(port, position)
    while reclaim(port) > 0:
        pass
    return OK


@kernel
def replica_revived(port: int, head: int, bits: int, length: int, end: int) -> int:
    """1 + a position that is done with here, and not there; 0: there is none.

    `head`, `bits` and `length` are as for `replica_retire_above`; all below `end` is known there.
    """
    ours = head_load(port)
    for position in range(head, min(end, replica_tail(port))):
        if is_retired(position, head, bits, length):
            continue
        word = load_acquire(slot_at(port, position))
        if position < ours or not replica_has(port, position, word):
            return position + 1
    return 0


@exported_cold
def replica_deletable(port: int, deletable: int) -> int:
    """Anybody may delete it, or not again; nothing changes once it is detached."""
    closed = load(port + PORT_HEADER) + RING_CLOSED_AT
    if load(closed) != 0:
        store_release(closed, DELETABLE if deletable else CLOSED)
    return OK


@exported_cold
def replica_open(port: int) -> int:
    """It follows no more: whoever wants may publish and take."""
    header = load(port + PORT_HEADER)
    store(header + SETTING_REPLICA_AT, 0)
    store(header + RING_MODE_AT, load(header + RING_MODE_AT) & ~MODE_REPLICA)
    store_release(header + RING_CLOSED_AT, 0)
    return OK
