"""Blocks: the arena's memory is handed out in blocks, each with a word that says whose it is.

    FREE --take--> OWNED(owner, queue) --seal--> SEALED(queue, last position) --free--> FREE

Every edge is one CAS from the exact word; each taking has a new generation.  A sealed block is
free when its queue's head has passed the last position published from it: no counts that a death
could leave wrong.  The position stands in the note beside the word, with the generation, and is
moved by CAS too: somebody who seals for the dead and comes too late changes nothing that matters.
Of a replica an owned block has a note as well: up to where others may place what is in it.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, load, load_acquire, store, store_release
from shmbroker.core.chunk import committed_blocks
from shmbroker.core.codes import ARENA_FULL, NEEDS_COMMIT
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.layout import (
    ARENA_TABLE_AT,
    BLOCK_ENTRY_SHIFT,
    BLOCK_FREE,
    BLOCK_NOTE_AT,
    BLOCK_OWNED,
    BLOCK_OWNER_SHIFT,
    BLOCK_QUEUE_SHIFT,
    BLOCK_SEALED,
    BLOCK_STATE_SHIFT,
    GENERATION_MASK,
    NOTE_GENERATION_MASK,
    NOTE_POSITION_SHIFT,
    OWNER_MASK,
    PORT_ARENA,
    PORT_BLOCKS,
    PORT_HEAD_SEEN,
    PORT_OWNER,
    PORT_QUEUE,
    PORT_SCAN,
    POSITION_MASK,
    QUEUE_MASK,
    STATE_MASK,
)


@kernel
def block_at(port: int, block: int) -> int:
    return load(port + PORT_ARENA) + ARENA_TABLE_AT + (block << BLOCK_ENTRY_SHIFT)


@kernel
def block_state(word: int) -> int:
    return (word >> BLOCK_STATE_SHIFT) & STATE_MASK


@kernel
def block_owner(word: int) -> int:
    return (word >> BLOCK_OWNER_SHIFT) & OWNER_MASK


@kernel
def block_queue(word: int) -> int:
    return (word >> BLOCK_QUEUE_SHIFT) & QUEUE_MASK


@kernel
def block_free_word(word: int) -> int:
    return (BLOCK_FREE << BLOCK_STATE_SHIFT) | (word & GENERATION_MASK)


@kernel
def block_owned_word(port: int, word: int) -> int:
    owner = load(port + PORT_OWNER) << BLOCK_OWNER_SHIFT
    queue = load(port + PORT_QUEUE) << BLOCK_QUEUE_SHIFT
    generation = ((word & GENERATION_MASK) + 1) & GENERATION_MASK
    return (BLOCK_OWNED << BLOCK_STATE_SHIFT) | owner | queue | generation


@kernel
def block_sealed_word(word: int, owner: int) -> int:
    """`owner`: whose messages are in it, 0 if that one is dead: they are nobody's share then."""
    kept = word & ((QUEUE_MASK << BLOCK_QUEUE_SHIFT) | GENERATION_MASK)
    return (BLOCK_SEALED << BLOCK_STATE_SHIFT) | (owner << BLOCK_OWNER_SHIFT) | kept


@kernel
def note_of(word: int, last: int) -> int:
    """A block with this word holds messages up to this position."""
    return ((last & POSITION_MASK) << NOTE_POSITION_SHIFT) | (word & NOTE_GENERATION_MASK)


@kernel
def block_noted(port: int, block: int, word: int) -> int:
    """Up to which position it holds messages, as its note says; -1: that is of a former life."""
    # SYNC POINT: seal (acquire): if the word said SEALED, the note is of that time or later
    note = load_acquire(block_at(port, block) + BLOCK_NOTE_AT)
    if (note & NOTE_GENERATION_MASK) != (word & NOTE_GENERATION_MASK):
        return -1
    return (note >> NOTE_POSITION_SHIFT) & POSITION_MASK


@kernel
def is_sealed_here(port: int, word: int) -> int:
    """1 if it is a sealed block of our queue."""
    return int(block_state(word) == BLOCK_SEALED and block_queue(word) == load(port + PORT_QUEUE))


@kernel
def seal_is_passed(port: int, block: int, word: int) -> int:
    """1 if this sealed block of our queue holds nothing that head has not passed."""
    if not is_sealed_here(port, word):
        return 0
    noted = block_noted(port, block, word)
    return int(noted >= 0 and noted < load(port + PORT_HEAD_SEEN))


@kernel
def block_is_takeable(port: int, block: int) -> int:
    word = load_acquire(block_at(port, block))
    if block_state(word) == BLOCK_FREE:
        return 1
    return seal_is_passed(port, block, word)


@kernel
def block_take(port: int, block: int) -> int:
    """FREE, or sealed and passed, to OWNED by us; 1 if it is ours now."""
    address = block_at(port, block)
    word = load_acquire(address)
    if block_state(word) != BLOCK_FREE and not seal_is_passed(port, block, word):
        return 0
    # SYNC POINT: block (acquire): what the former owner's readers did came before
    return int(compare_exchange(address, word, block_owned_word(port, word)) == word)


@cold
def block_free(port: int, block: int) -> int:
    """Give back a block of ours that holds nothing: never used, or passed by head."""
    address = block_at(port, block)
    word = load_acquire(address)
    if block_state(word) != BLOCK_OWNED or block_owner(word) != load(port + PORT_OWNER):
        return 0
    # SYNC POINT: block (release)
    return int(compare_exchange(address, word, block_free_word(word)) == word)


@cold
def block_seal(port: int, block: int, word: int, last: int, owner: int) -> int:
    """OWNED, exactly this word, to SEALED up to position last; 1 if we did it.

    `owner`: see block_sealed_word.
    """
    address = block_at(port, block)
    # the note is read before the word is looked at again: if the block went on to another life
    # since, either the word differs or the note will
    note = load_acquire(address + BLOCK_NOTE_AT)
    if load_acquire(address) != word:
        return 0
    compare_exchange(address + BLOCK_NOTE_AT, note, note_of(word, last))
    # SYNC POINT: seal (release): the note is written before the word says that it counts
    return int(compare_exchange(address, word, block_sealed_word(word, owner)) == word)


@kernel
def block_promise(port: int, block: int, last: int) -> int:
    """A block of ours holds messages up to this position, whoever places them (replica.py)."""
    address = block_at(port, block)
    store_release(address + BLOCK_NOTE_AT, note_of(load(address), last))
    return block


@cold
def block_lower(port: int, block: int, last: int) -> int:
    """What is above this position in a sealed block of our queue never becomes a message."""
    address = block_at(port, block)
    word = load_acquire(address)
    noted = block_noted(port, block, word)
    if is_sealed_here(port, word) and noted > last:
        compare_exchange(address + BLOCK_NOTE_AT, note_of(word, noted), note_of(word, last))
    return block


@cold
def block_drop(port: int, block: int, last: int) -> int:
    """Free a sealed block of our queue, if its note says more than this position."""
    address = block_at(port, block)
    word = load_acquire(address)
    if not is_sealed_here(port, word) or block_noted(port, block, word) <= last:
        return 0
    return int(compare_exchange(address, word, block_free_word(word)) == word)


@exported_cold
def blocks_of(port: int, holder: int) -> int:
    """How many blocks of the arena a participant holds, in all queues.

    Blocks of this queue that head has passed are nobody's any more.
    """
    count = 0
    for block in range(committed_blocks(port)):
        word = load_acquire(block_at(port, block))
        if block_state(word) != BLOCK_FREE and block_owner(word) == holder:
            count += 1 - seal_is_passed(port, block, word)
    return count


@exported_cold
def blocks_drop(port: int) -> int:
    """Free all blocks of the port's queue: it was deleted, and nobody uses it.  How many."""
    queue = load(port + PORT_QUEUE)
    dropped = 0
    for block in range(committed_blocks(port)):
        address = block_at(port, block)
        word = load_acquire(address)
        if block_state(word) != BLOCK_FREE and block_queue(word) == queue:
            dropped += int(compare_exchange(address, word, block_free_word(word)) == word)
    return dropped


@exported_cold
def blocks_drop_marked(port: int, marks: int) -> int:
    """The same of all queues whose bit is set in this map, in one look at the arena.  How many."""
    dropped = 0
    for block in range(committed_blocks(port)):
        address = block_at(port, block)
        word = load_acquire(address)
        queue = block_queue(word)
        if block_state(word) != BLOCK_FREE and load(marks + (queue >> 6 << 3)) >> (queue & 63) & 1:
            dropped += int(compare_exchange(address, word, block_free_word(word)) == word)
    return dropped


@exported_cold
def blocks_return(port: int, heads: int) -> int:
    """Free sealed blocks of any queue that its head has passed: how many.

    `heads`: a word for each queue with its head; 0: that is not known, and becomes -1 if the queue
    has a sealed block.
    """
    returned = 0
    for block in range(committed_blocks(port)):
        address = block_at(port, block)
        word = load_acquire(address)
        if block_state(word) != BLOCK_SEALED:
            continue
        head = heads + (block_queue(word) << 3)
        if load(head) == 0:
            store(head, -1)
        noted = block_noted(port, block, word)
        if noted >= 0 and noted < load(head):
            # SYNC POINT: block (release): what was read before the head went on comes before
            returned += int(compare_exchange(address, word, block_free_word(word)) == word)
    return returned


@exported_cold
def blocks_left(port: int) -> int:
    """How many blocks are free, or have no memory yet."""
    committed = committed_blocks(port)
    left = load(port + PORT_BLOCKS) - committed
    for block in range(committed):
        left += int(block_state(load(block_at(port, block))) == BLOCK_FREE)
    return left


@kernel
def run_claim(port: int, first: int, blocks: int) -> int:
    """Own these neighbours; 1 if all are ours, else none is."""
    for index in range(blocks):
        if not block_take(port, first + index):
            for undone in range(index):
                block_free(port, first + undone)
            return 0
    return 1


@cold
def run_search(port: int, blocks: int) -> int:
    """Find and own so many neighbouring blocks; the first, or NEEDS_COMMIT or ARENA_FULL."""
    committed = committed_blocks(port)
    block = load(port + PORT_SCAN)
    found = 0
    for _ in range(committed + blocks):
        if block >= committed:
            block = 0
            found = 0
        if block < committed and block_is_takeable(port, block):
            found += 1
        else:
            found = 0
        block += 1
        if found == blocks:
            first = block - blocks
            if run_claim(port, first, blocks):
                store(port + PORT_SCAN, block)
                return first
            found = 0
    if committed < load(port + PORT_BLOCKS):
        return NEEDS_COMMIT
    return ARENA_FULL
