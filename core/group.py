"""Message groups: which consumer may take which messages, one consumer for each group.

A group belongs to a bucket, and a bucket to one participant at a time.  The slots' words alone
decide who takes a message; a bucket only says who may.  Nothing is counted, so no death leaves a
wrong count.

    bind     a bucket that is FREE, or whose owner has a lower rank, becomes ours: BOUND
    settle   no slot of the bucket is LEASED by others: SETTLED, from now on we may take
    take     READY -> LEASED, and only then: is the bucket still SETTLED for us?  If not, the
             message goes back as it was, and nobody has seen it
    free     by the owner; by anyone, all buckets (rebalancing); by the repair, those of the dead

So a bucket may be taken away from an owner who still holds messages of it.  The former owner gets
no more, and the new one none until those are done.  Taker and settler each write first and look
then, both by locked operations: one of them sees the other.

    taker                                    settler
    1. CAS of the slot's word to LEASED      1. CAS of the bucket's word to BOUND
    2. load the bucket's word                2. load the slots' words

The order within a group is that of positions: takers look from the lowest on.  A port notes how far
it has looked (PORT_LOOKED): nothing below is for us while RING_CHANGES is unchanged.  RING_CHANGES
moves after a message came back and after a bucket became free.  Whoever has settled a bucket looks
from head again, because messages of it may have been skipped before.  A taker that comes too late
hides a message for a moment, so a message that another participant holds blocks those of its bucket
behind it, for the owner.

With MODE_SINGLE all messages are in bucket 0: a single active consumer.  Messages without a group
are in no bucket, and anyone's.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, fetch_add, load, load_acquire, store
from shmbroker.core.chunk import chunk_address, mark_flags
from shmbroker.core.codes import EMPTY, IN_USE, INVALID, OK, READ_ONLY
from shmbroker.core.head import head_load
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.layout import (
    AGAIN,
    BUCKET_BOUND,
    BUCKET_FREE,
    BUCKET_OWNER_SHIFT,
    BUCKET_RANK_MASK,
    BUCKET_RANK_SHIFT,
    BUCKET_SERIAL_MASK,
    BUCKET_SETTLED,
    BUCKET_SHIFT,
    BUCKET_STATE_SHIFT,
    BUCKETS,
    CHUNK_EXTENDED,
    CHUNK_GROUP_AT,
    CHUNK_MARK_AT,
    FREE,
    GROUP_BYTES_MAX,
    LEASED,
    MODE_BUCKETS_MASK,
    MODE_BUCKETS_SHIFT,
    MODE_PAUSED,
    MODE_REPLICA,
    MODE_SINGLE,
    NOT_OURS,
    OURS,
    OWNER_MASK,
    PENDING,
    PORT_BLOCKED,
    PORT_CHANGES,
    PORT_FOUND_WORD,
    PORT_HEADER,
    PORT_LOOKED,
    PORT_OWNER,
    PORT_PENDING,
    PORT_RANK,
    PORT_SLOT_MASK,
    READY,
    RING_BUCKETS_AT,
    RING_CHANGES_AT,
    ROW_HASH_BITS,
    ROW_HASH_MASK,
    STATE_MASK,
)
from shmbroker.core.level import ring_mode
from shmbroker.core.span import HASH_START, span_hash
from shmbroker.core.visible import is_deliverable
from shmbroker.core.word import (
    is_aside,
    lap_of,
    laps_ahead,
    slot_at,
    word_chunk,
    word_owner,
    word_state,
)

LOOKS = 4096
"""As for hints: others free and bind buckets too, never without end."""

BLOCKED_MASK = 31


@kernel
def mode_buckets(mode: int) -> int:
    """How many buckets of groups the ring has, 0 if it has none."""
    return min(mode >> MODE_BUCKETS_SHIFT & MODE_BUCKETS_MASK, BUCKETS)


@exported_cold
def group_hash(name: int, length: int) -> int:
    """What a chunk says of its group, never 0: of a text of 1 to 255 bytes."""
    if length < 1 or length > GROUP_BYTES_MAX:
        return INVALID
    return 1 << ROW_HASH_BITS | span_hash(HASH_START, name, length)


@kernel
def group_bucket(group: int, buckets: int) -> int:
    return (group & ROW_HASH_MASK) % buckets


@kernel
def bucket_of(port: int, word: int, mode: int) -> int:
    """The bucket of the message that a word names, -1: none; only certain if the word stays."""
    if mode & MODE_SINGLE:
        return 0
    address = chunk_address(port, word_chunk(word))
    if address == 0:
        return -1  # a damaged word is anyone's, so that somebody finds it
    if mark_flags(load(address + CHUNK_MARK_AT)) & CHUNK_EXTENDED == 0:
        return -1
    group = load(address + CHUNK_GROUP_AT)
    return group_bucket(group, mode_buckets(mode)) if group != 0 else -1


@kernel
def bucket_at(port: int, bucket: int) -> int:
    return load(port + PORT_HEADER) + RING_BUCKETS_AT + (bucket << BUCKET_SHIFT)


@kernel
def bucket_state(word: int) -> int:
    return word >> BUCKET_STATE_SHIFT & STATE_MASK


@kernel
def bucket_owner(word: int) -> int:
    return word >> BUCKET_OWNER_SHIFT & OWNER_MASK


@kernel
def bucket_rank(word: int) -> int:
    return word >> BUCKET_RANK_SHIFT & BUCKET_RANK_MASK


@kernel
def bucket_bound(port: int, word: int) -> int:
    """The bucket is ours, in its next serial: who was about to settle the former one fails."""
    rank = load(port + PORT_RANK) & BUCKET_RANK_MASK
    serial = (word + 1) & BUCKET_SERIAL_MASK
    owner = load(port + PORT_OWNER) << BUCKET_OWNER_SHIFT
    return BUCKET_BOUND << BUCKET_STATE_SHIFT | owner | rank << BUCKET_RANK_SHIFT | serial


@kernel
def bucket_settled(word: int) -> int:
    return word + ((BUCKET_SETTLED - BUCKET_BOUND) << BUCKET_STATE_SHIFT)


@kernel
def groups_changed(port: int) -> int:
    """Something that others have passed over may be taken now: they look from head again."""
    return fetch_add(load(port + PORT_HEADER) + RING_CHANGES_AT, 1)


@kernel
def is_held_by_others(port: int, bucket: int, mode: int) -> int:
    """1 if somebody else has a message of this bucket in hand; those published by now count."""
    head = head_load(port)
    for position in range(head, head + load(port + PORT_SLOT_MASK) + 1):
        # SYNC POINT: group (after a locked operation): pairs with the CAS of claim
        word = load_acquire(slot_at(port, position))
        ahead = laps_ahead(word, lap_of(port, position))
        state = word_state(word)
        if ahead < 0 or (ahead == 0 and state == FREE):
            return 0
        if state == LEASED and word_owner(word) != load(port + PORT_OWNER):
            if bucket_of(port, word, mode) == bucket:
                return 1
    return 0


@kernel
def bucket_admits(port: int, bucket: int, mode: int) -> int:
    """Whether we may take from this bucket; it becomes ours if nobody of our rank has it."""
    address = bucket_at(port, bucket)
    word = load_acquire(address)
    if bucket_state(word) == BUCKET_FREE and load(port + PORT_PENDING) >= 0:
        # we wait for one already: another is left to others, unless we can have it now
        if is_held_by_others(port, bucket, mode):
            return PENDING
    if bucket_state(word) == BUCKET_FREE or bucket_rank(word) < load(port + PORT_RANK):
        bound = bucket_bound(port, word)
        # SYNC POINT: group (a locked operation): comes before the look at who holds messages of it
        if compare_exchange(address, word, bound) != word:
            return AGAIN
        word = bound
    elif bucket_owner(word) != load(port + PORT_OWNER):
        return NOT_OURS
    if bucket_state(word) == BUCKET_SETTLED:
        return OURS
    if is_held_by_others(port, bucket, mode):
        return PENDING
    if compare_exchange(address, word, bucket_settled(word)) == word:
        groups_changed(port)  # our other threads have passed over messages of it
    return AGAIN


@kernel
def is_admitted(port: int, leased: int) -> int:
    """1 if a message that we have just claimed is ours to keep."""
    bucket = bucket_of(port, leased, ring_mode(port))
    if bucket < 0:
        return 1
    # SYNC POINT: group (after a locked operation): pairs with the CAS of bucket_admits
    word = load_acquire(bucket_at(port, bucket))
    return int(
        bucket_state(word) == BUCKET_SETTLED and bucket_owner(word) == load(port + PORT_OWNER)
    )


@exported_cold
def group_begin(port: int) -> int:
    """Begin to look: the first position to look at."""
    store(port + PORT_BLOCKED, 0)
    store(port + PORT_PENDING, -1)
    return head_load(port)


@kernel
def group_pending(port: int, position: int) -> int:
    """Look from here again the next time: PENDING."""
    if load(port + PORT_PENDING) < 0:
        store(port + PORT_PENDING, position)
    return PENDING


@kernel
def group_look(port: int, position: int, word: int, mode: int) -> int:
    """Whether we may take what a word names, after a look at all before it since group_begin.

    Where one of a bucket of ours is in somebody else's hand, who will put it back, those behind it
    have to wait.  Buckets share a bit in the mask of those: that delays some, and not for long.
    """
    bucket = bucket_of(port, word, mode)
    if word_state(word) == READY:
        if is_aside(word):
            return NOT_OURS
        if bucket < 0:
            return OURS
        admits = bucket_admits(port, bucket, mode)
        if admits == OURS and load(port + PORT_BLOCKED) >> (bucket & BLOCKED_MASK) & 1:
            admits = PENDING
        return group_pending(port, position) if admits == PENDING else admits
    if bucket < 0 or word_owner(word) == load(port + PORT_OWNER):
        return NOT_OURS
    if bucket_owner(load_acquire(bucket_at(port, bucket))) != load(port + PORT_OWNER):
        return NOT_OURS
    store(port + PORT_BLOCKED, load(port + PORT_BLOCKED) | 1 << (bucket & BLOCKED_MASK))
    return group_pending(port, position)


@kernel
def state_there(port: int, position: int, word: int) -> int:
    """READY or LEASED, if this word is of this position; 0 if it is done; EMPTY before that."""
    ahead = laps_ahead(word, lap_of(port, position))
    state = word_state(word)
    if ahead < 0 or (ahead == 0 and state == FREE):
        return EMPTY
    return state if ahead == 0 and state <= LEASED else 0


@cold
def group_find(port: int) -> int:
    """The oldest READY position that we may take, its word left in the port; EMPTY or DAMAGED."""
    mode = ring_mode(port)
    if mode & (MODE_PAUSED | MODE_REPLICA):
        return READ_ONLY if mode & MODE_REPLICA else EMPTY
    changes = load_acquire(load(port + PORT_HEADER) + RING_CHANGES_AT)
    position = group_begin(port)
    if changes == load(port + PORT_CHANGES):
        position = max(position, load(port + PORT_LOOKED))
    store(port + PORT_CHANGES, changes)
    found = EMPTY
    for _ in range(LOOKS + 4 * load(port + PORT_SLOT_MASK)):
        # SYNC POINT: publish (acquire): pairs with the CAS of place
        word = load_acquire(slot_at(port, position))
        state = state_there(port, position, word)
        if state == EMPTY or not is_deliverable(port, position):
            break
        admits = group_look(port, position, word, mode) if state else NOT_OURS
        if admits == OURS:
            store(port + PORT_FOUND_WORD, word)
            found = position
            break
        position = group_begin(port) if admits == AGAIN else position + 1
    pending = load(port + PORT_PENDING)
    store(port + PORT_LOOKED, pending if pending >= 0 else position)
    return found


@exported_cold
def may_take(port: int, position: int) -> int:
    """For who looks by itself, from group_begin on, and would take what is at this position.

    0: no.  1: yes.  2: begin again, those before may be ours as well.  3: not yet, because
    somebody else has messages of the group in hand.
    """
    word = load_acquire(slot_at(port, position))
    if state_there(port, position, word) <= 0:
        return NOT_OURS
    return group_look(port, position, word, ring_mode(port))


@kernel
def bucket_free(port: int, bucket: int, word: int) -> int:
    """1 if the bucket was exactly so, and is nobody's now."""
    return int(compare_exchange(bucket_at(port, bucket), word, word & BUCKET_SERIAL_MASK) == word)


@exported_cold
def groups_free(port: int, bucket: int, owner: int) -> int:
    """Free this bucket, or all with -1, if it is that owner's, or anybody's with 0: how many."""
    buckets = mode_buckets(ring_mode(port))
    freed = 0
    for each in range(buckets):
        if bucket < 0 or each == bucket:
            word = load_acquire(bucket_at(port, each))
            if bucket_state(word) != BUCKET_FREE and (owner == 0 or bucket_owner(word) == owner):
                freed += bucket_free(port, each, word)
    if freed:
        groups_changed(port)
    return freed


@exported_cold
def groups_touch(port: int) -> int:
    """Somebody may have died after giving a message back and before saying so."""
    return groups_changed(port)


@exported_cold
def group_enter(port: int) -> int:
    """Become the single active consumer, if nobody else is: OK or IN_USE."""
    address = bucket_at(port, 0)
    word = load_acquire(address)
    if bucket_state(word) != BUCKET_FREE and bucket_owner(word) != load(port + PORT_OWNER):
        return IN_USE
    return OK if compare_exchange(address, word, bucket_bound(port, word)) == word else IN_USE
