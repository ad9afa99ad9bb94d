"""The repair of a ring after deaths and expired leases.  Any participant may run it at any time.

    LEASED by the dead, or past its lease     given back
    READY below take, or its level's hint     the hint is lowered, unless it is set aside
    buckets of groups of the dead             freed, after their messages were given back
    DONE at head                              reclaimed
    blocks owned by the dead                  freed, or sealed up to the true tail
    sealed blocks that head has passed        freed
    gates of the dead                         dropped, unless they wait for another owner
    the barrier behind its gates              moved
    origins of the dead                       nobody's, for whoever goes on with them

The caller passes a bitmap of live owners, taken before the repair starts.  Proving a death is the
caller's task; a lease that runs out only revokes.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, load, load_acquire, store
from shmbroker.core.barrier import barrier_raise
from shmbroker.core.block import (
    block_at,
    block_free_word,
    block_noted,
    block_owner,
    block_queue,
    block_seal,
    block_sealed_word,
    block_state,
    seal_is_passed,
)
from shmbroker.core.chunk import committed_blocks
from shmbroker.core.closed import is_closed
from shmbroker.core.gate import (
    gate_at,
    gate_is_active,
    gate_life,
    gate_owner,
    gate_without_owner,
    gates_high,
)
from shmbroker.core.group import (
    bucket_at,
    bucket_free,
    bucket_owner,
    bucket_state,
    groups_changed,
    mode_buckets,
)
from shmbroker.core.head import head_load
from shmbroker.core.kernel import exported, exported_cold, kernel
from shmbroker.core.layout import (
    BLOCK_OWNED,
    BLOCK_SEALED,
    BUCKET_FREE,
    COUNTER_DROPPED_AT,
    COUNTER_REVOKED_AT,
    GATE_FLEETING,
    LAP_MASK,
    LEASE_DEADLINE_SHIFT,
    LEASE_OVER,
    LEASE_TAG_MASK,
    LEASED,
    PORT_HEAD_SEEN,
    PORT_HEADER,
    PORT_LOOKED,
    PORT_QUEUE,
    PORT_SLOT_MASK,
    POSITION_MASK,
    READY,
    RING_HEAD_AT,
    RING_TAKE_AT,
    SLOT_LEASE_AT,
    SLOT_TOLD_AT,
)
from shmbroker.core.level import level_hint, level_of, mode_levels, ring_mode
from shmbroker.core.origin import origins_repair
from shmbroker.core.reclaim import reclaim
from shmbroker.core.tail import true_tail
from shmbroker.core.take import count, lower_hints, put_back
from shmbroker.core.word import (
    is_aside,
    lap_of,
    slot_at,
    word_done,
    word_lease_tag,
    word_owner,
    word_state,
)


@kernel
def is_alive(alive: int, owner: int) -> int:
    return (load(alive + (owner >> 6) * 8) >> (owner & 63)) & 1


@kernel
def lease_is_over(slot: int, word: int, now_ms: int, grace_ms: int) -> int:
    """1 if the holder is past its deadline.  One that wrote none has grace from now on."""
    address = slot + SLOT_LEASE_AT
    lease = load_acquire(address)
    tag = word_lease_tag(word)
    if lease & LEASE_TAG_MASK != tag:
        compare_exchange(address, lease, ((now_ms + grace_ms) << LEASE_DEADLINE_SHIFT) | tag)
        return 0
    deadline = lease >> LEASE_DEADLINE_SHIFT
    if deadline == LEASE_OVER:  # another repair wrote that, and may have died since
        return 1
    if deadline == 0 or deadline >= now_ms:
        return 0
    # a transaction that pledges the message writes the lease too (transaction.py): one of us wins
    marked = (LEASE_OVER << LEASE_DEADLINE_SHIFT) | tag
    return int(compare_exchange(address, lease, marked) == lease)


@kernel
def is_passed_over(port: int, position: int, word: int) -> int:
    """1 if nobody will look at this READY message: who gave it back died before lowering a hint."""
    hint = load(port + PORT_HEADER) + RING_TAKE_AT
    if position < load_acquire(hint) & POSITION_MASK:
        return 1
    levels = mode_levels(ring_mode(port))
    if levels == 0:
        return 0
    hint = level_hint(port, level_of(port, word, levels))
    return int(position < load_acquire(hint) & POSITION_MASK)


@kernel
def slot_repair(port: int, position: int, alive: int, now_ms: int, grace_ms: int) -> int:
    slot = slot_at(port, position)
    word = load_acquire(slot)
    if (word & LAP_MASK) != lap_of(port, position):
        return 0
    if word_state(word) == READY:
        if not is_passed_over(port, position, word) or is_aside(word):
            return 0
        return lower_hints(port, position, word)
    if word_state(word) != LEASED:
        return 0
    over = not is_alive(alive, word_owner(word))
    if not over and grace_ms > 0:
        over = lease_is_over(slot, word, now_ms, grace_ms) == 1
    if over and put_back(port, position, word):
        count(port, COUNTER_REVOKED_AT)
        return 1
    return 0


@kernel
def slots_repair(port: int, tail: int, alive: int, now_ms: int, grace_ms: int) -> int:
    repaired = 0
    for position in range(head_load(port), tail):
        repaired += slot_repair(port, position, alive, now_ms, grace_ms)
    return repaired


@kernel
def gates_repair(port: int, alive: int) -> int:
    repaired = 0
    for gate in range(gates_high(port)):
        address = gate_at(port, gate)
        word = load_acquire(address)
        owner = gate_owner(word)
        if gate_is_active(word) and owner != 0 and not is_alive(alive, owner):
            # its id may soon be another one's, who is not to be taken for the owner
            after = 0 if gate_life(word) == GATE_FLEETING else gate_without_owner(word)
            repaired += int(compare_exchange(address, word, after) == word)
    return repaired


@kernel
def block_repair(port: int, block: int, tail: int, alive: int) -> int:
    address = block_at(port, block)
    word = load_acquire(address)
    passed = seal_is_passed(port, block, word)
    if block_state(word) == BLOCK_OWNED and block_queue(word) == load(port + PORT_QUEUE):
        if is_alive(alive, block_owner(word)):
            return 0
        # all that the dead one published is below the true tail, which was found after its death
        last = tail - 1
        if is_closed(port):  # others place what an applier has written down (replica.py)
            last = max(last, block_noted(port, block, word))
        if last >= load(port + PORT_HEAD_SEEN):
            return block_seal(port, block, word, last, 0)
        passed = 1
    if passed:
        return int(compare_exchange(address, word, block_free_word(word)) == word)
    if block_state(word) == BLOCK_SEALED and block_queue(word) == load(port + PORT_QUEUE):
        owner = block_owner(word)
        if owner != 0 and not is_alive(alive, owner):  # whoever gets its id has no part in it
            return int(compare_exchange(address, word, block_sealed_word(word, 0)) == word)
    return 0


@kernel
def blocks_repair(port: int, tail: int, alive: int) -> int:
    repaired = 0
    for block in range(committed_blocks(port)):
        repaired += block_repair(port, block, tail, alive)
    return repaired


@kernel
def groups_repair(port: int, alive: int) -> int:
    """Free the buckets of the dead.  What they held was given back, so it comes first again."""
    freed = 0
    for bucket in range(mode_buckets(ring_mode(port))):
        word = load_acquire(bucket_at(port, bucket))
        if bucket_state(word) != BUCKET_FREE and not is_alive(alive, bucket_owner(word)):
            freed += bucket_free(port, bucket, word)
    if freed:
        groups_changed(port)
    store(port + PORT_LOOKED, 0)  # who dies between giving back and saying so is made up for
    return freed


@kernel
def ring_repair(port: int, tail: int, alive: int, now_ms: int, grace_ms: int) -> int:
    repaired = gates_repair(port, alive)
    repaired += barrier_raise(port)
    repaired += slots_repair(port, tail, alive, now_ms, grace_ms)
    repaired += groups_repair(port, alive)
    for _ in range(load(port + PORT_SLOT_MASK) + 1):  # bounded: others may go on acknowledging
        if reclaim(port) == 0:
            break
    return repaired


@exported_cold
def repair_messages(port: int, alive: int) -> int:
    """Repair the ring alone: the dead have chunks that are still to be published."""
    tail = true_tail(port)
    return tail if tail < 0 else ring_repair(port, tail, alive, 0, 0)


@exported
def repair(port: int, alive: int, now_ms: int, grace_ms: int) -> int:
    """Repair the ring and the arena's blocks of its queue; how many repairs, or DAMAGED.

    `alive` is the address of a bitmap of 4096 owners; grace_ms is what a lease lasts whose holder
    wrote no deadline, 0 if leases do not run out.
    """
    tail = true_tail(port)
    if tail < 0:
        return tail
    repaired = ring_repair(port, tail, alive, now_ms, grace_ms)
    # what the dead have committed is in the ring by now: their numbers are final
    repaired += origins_repair(port, alive)
    head_load(port)
    return repaired + blocks_repair(port, tail, alive)


@exported_cold
def word_of(port: int, position: int) -> int:
    """The word of the message at this position, 0 if it is of another lap."""
    word = load_acquire(slot_at(port, position))
    return word if (word & LAP_MASK) == lap_of(port, position) else 0


@exported_cold
def told_of(port: int, position: int, word: int) -> int:
    """Note that it was told of this delivery: 1 the first time."""
    address = slot_at(port, position) + SLOT_TOLD_AT
    seen = load_acquire(address)
    if seen == word or word_of(port, position) != word:
        return 0
    return int(compare_exchange(address, seen, word) == seen)


@exported_cold
def revoke(port: int, position: int, word: int) -> int:
    """Take a message out of the hand that this LEASED word names; 1 if it was there.

    As a lease that ran out: what a transaction has pledged stays (transaction.py).
    """
    address = slot_at(port, position) + SLOT_LEASE_AT
    lease = load_acquire(address)
    tag = word_lease_tag(word)
    if lease == tag:  # pledged, or held without end
        return 0
    marked = (LEASE_OVER << LEASE_DEADLINE_SHIFT) | tag
    if compare_exchange(address, lease, marked) != lease or not put_back(port, position, word):
        return 0
    count(port, COUNTER_REVOKED_AT)
    return 1


@exported
def drop_oldest(port: int) -> int:
    """Make room by dropping the oldest message if nobody has it; how many slots became free."""
    position = load_acquire(load(port + PORT_HEADER) + RING_HEAD_AT) & POSITION_MASK
    slot = slot_at(port, position)
    word = load_acquire(slot)
    if (word & LAP_MASK) == lap_of(port, position) and word_state(word) == READY:
        if compare_exchange(slot, word, word_done(word)) == word:
            count(port, COUNTER_DROPPED_AT)
    return reclaim(port)
