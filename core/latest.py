"""The newest of each key: a last-value ring drops older messages that no consumer holds.

Messages whose keys have the same hash hang in one chain, the newest first, so that a publisher
finds those of its key without a search of the ring.  A chain starts in the slot that the hash names
(SLOT_CHAIN_AT) and goes on in the slots of its messages (SLOT_OLDER_AT): there is room for all of
them by nature, and nothing to allocate.

    insert   our link to what is older, then a CAS of the link before us
    remove   a message that is done with: its own link is marked OUT by CAS, so that nobody puts
             anything behind it; then the link before it goes on to the one behind it.  Every
             reader of the chain does this
    recycle  a link has the lap of its message.  One of another lap: head has passed the message,
             and with it all that is older

Publishing is: the message, then its place in the chain, then a look at the whole chain.  So of two
publishers of a key at least one sees the other's message, and the older one is dropped, READY to
DONE, unless a consumer holds it.  If a publisher dies in between, its message is in no chain; the
repair examines all messages again (latest_repair).  Until then, or until a stopped publisher
continues, both are in the ring, in the order of their positions, and the newest of the key is not
found, though it may be taken.  No publisher has been told by then that it is published: of a
transaction, which others may help to publish, the owner gives its place to what it finds there
(latest_note_chunk).

The age of a message is its position, unless it was carried (carry.py).  What had left the queue and
is returned, a dead letter that is retried, may be older than all that came meanwhile, and nobody
knows how old: it is older than all others, so it replaces only what was returned before it.  Of
those that were returned the ages count among themselves, also when they are carried.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    compare_exchange,
    fence_acquire,
    fetch_add,
    load,
    load_acquire,
    store,
)
from shmbroker.core.chunk import chunk_address, chunk_fits, key_offset, mark_flags, shape_key
from shmbroker.core.codes import DAMAGED, EMPTY, INVALID
from shmbroker.core.head import head_load
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.layout import (
    CHUNK_CARRIED,
    CHUNK_MARK_AT,
    CHUNK_RETURNED,
    CHUNK_SHAPE_AT,
    COUNTER_REPLACED_AT,
    LAP_MASK,
    LEASED,
    LINK_LAP_MASK,
    LINK_LAP_SHIFT,
    LINK_OUT,
    MARK_AGE_MASK,
    MARK_AGE_SHIFT,
    PORT_FOUND_LINK,
    PORT_FOUND_PLACE,
    PORT_HEADER,
    PORT_SLOT_MASK,
    POSITION_MASK,
    READY,
    RING_REPLACING_AT,
    SETTING_LAST_VALUE_AT,
    SLOT_CHAIN_AT,
    SLOT_OLDER_AT,
)
from shmbroker.core.reclaim import reclaim
from shmbroker.core.span import HASH_START, span_equals, span_hash
from shmbroker.core.tail import true_tail
from shmbroker.core.word import lap_of, slot_at, word_chunk, word_done, word_state

ALL = POSITION_MASK + 1
"""By so much what was returned is older."""

ABSENT = -2 * ALL
"""In place of an age: it is not there."""

TRIES = 4096
"""A lost race means that somebody else changed the chain, so this is never reached."""


@kernel
def keeps_latest(port: int) -> int:
    """Not 0 if the ring keeps the newest of each key only: a setting, which never changes."""
    return load(load(port + PORT_HEADER) + SETTING_LAST_VALUE_AT)


# --- links ----------------------------------------------------------------------------------------


@kernel
def link_position(link: int) -> int:
    """The position that a link leads to, -1 if it is the last."""
    return (link & POSITION_MASK) - 1


@kernel
def link_lap(port: int, position: int) -> int:
    """The upper half of the links of a message."""
    return (lap_of(port, position) & LINK_LAP_MASK) << LINK_LAP_SHIFT


@kernel
def link_to(link: int, position: int) -> int:
    """The same link, to another position."""
    return (link & ~POSITION_MASK) | (position + 1)


@kernel
def older_at(port: int, position: int) -> int:
    return slot_at(port, position) + SLOT_OLDER_AT


@kernel
def chain_at(port: int, key: int, length: int) -> int:
    """The address of the chain of a key."""
    return slot_at(port, span_hash(HASH_START, key, length)) + SLOT_CHAIN_AT


# --- messages -------------------------------------------------------------------------------------


@kernel
def word_there(port: int, position: int) -> int:
    """The word of a message that is READY or LEASED, 0 if it is done with."""
    word = load_acquire(slot_at(port, position))
    if (word & LAP_MASK) != lap_of(port, position):
        return 0
    if word_state(word) != READY and word_state(word) != LEASED:
        return 0
    return word


@kernel
def age_of(port: int, position: int, word: int) -> int:
    """When its value was published, as a position, or below all of them; only certain if the word
    stays."""
    address = chunk_address(port, word_chunk(word))
    if address == 0:
        return position
    mark = load(address + CHUNK_MARK_AT)
    age = position
    if mark_flags(mark) & CHUNK_CARRIED:
        age -= (position - (mark >> MARK_AGE_SHIFT)) & MARK_AGE_MASK
    if mark_flags(mark) & CHUNK_RETURNED:
        age -= ALL
    return age


@kernel
def has_key(port: int, word: int, key: int, length: int) -> int:
    """1 if the message that a word names has this key; only certain if the word stays."""
    chunk = word_chunk(word)
    address = chunk_address(port, chunk)
    if address == 0:
        return 0
    shape = load(address + CHUNK_SHAPE_AT)
    mark = load(address + CHUNK_MARK_AT)
    if shape_key(shape) != length or not chunk_fits(port, chunk, shape, mark):
        return 0
    return span_equals(address + key_offset(mark), key, length)


@cold
def age_with_key(port: int, position: int, key: int, length: int) -> int:
    """The age of the message at this position if it is there and has this key, else ABSENT."""
    word = word_there(port, position)
    if word == 0 or not has_key(port, word, key, length):
        return ABSENT
    age = age_of(port, position, word)
    fence_acquire()
    # what was read is of this message if it is still there: its memory was not used again
    return age if word_there(port, position) != 0 else ABSENT


@cold
def replaced(port: int, position: int) -> int:
    """There is a newer one: drop this message if nobody has it; 1 if we did."""
    word = word_there(port, position)
    if word == 0 or word_state(word) != READY:
        return 0
    header = load(port + PORT_HEADER)
    # before, and never back: whoever looks for a key meanwhile looks again
    fetch_add(header + RING_REPLACING_AT, 1)
    if compare_exchange(slot_at(port, position), word, word_done(word)) != word:
        return 0
    fetch_add(header + COUNTER_REPLACED_AT, 1)
    return 1


# --- chains ---------------------------------------------------------------------------------------


@cold
def chain_find(port: int, chain: int, highest: int) -> int:
    """The newest message of a chain at this position or below, -1 if there is none; or DAMAGED.

    Where it hangs, or one at `highest` would, is left in the port.  What is met on the way and is
    done with is removed.
    """
    place = chain
    before = -1  # the message that has this place; the chain itself has none
    for _ in range(TRIES + 4 * load(port + PORT_SLOT_MASK)):
        link = load_acquire(place)
        if before >= 0 and (link >> LINK_LAP_SHIFT) << LINK_LAP_SHIFT != link_lap(port, before):
            place = chain  # it is out, or recycled: what is behind it is found another way
            before = -1
            continue
        position = link_position(link)
        if position < 0 or head_load(port) > position:
            position = -1
        else:
            following = load_acquire(older_at(port, position))
            if following & ~(POSITION_MASK | LINK_OUT) != link_lap(port, position):
                continue  # recycled while we looked: head has passed it
            if word_there(port, position) == 0:
                out = following | LINK_OUT
                address = older_at(port, position)
                if compare_exchange(address, following, out) == following:
                    further = link_to(link, link_position(following))
                    compare_exchange(place, link, further)
                continue
        if position <= highest:
            store(port + PORT_FOUND_PLACE, place)
            store(port + PORT_FOUND_LINK, link)
            return position
        place = older_at(port, position)
        before = position
    return DAMAGED


@cold
def chain_insert(port: int, chain: int, position: int) -> int:
    """Give the message of this position its place in the chain: 1 if it has it, else 0."""
    address = older_at(port, position)
    for _ in range(TRIES):
        # read before we look whether it is there: if somebody else inserts it, our CAS fails
        former = load_acquire(address)
        found = chain_find(port, chain, position)
        if found == position:
            return 1
        if found == DAMAGED or word_there(port, position) == 0:
            return 0
        link = link_to(link_lap(port, position), found)
        if former != link and compare_exchange(address, former, link) != former:
            continue
        place = load(port + PORT_FOUND_PLACE)
        seen = load(port + PORT_FOUND_LINK)
        if compare_exchange(place, seen, link_to(seen, position)) == seen:
            return 1
    return 0


# --- what is newest -------------------------------------------------------------------------------


@cold
def latest_settle(port: int, position: int, age: int, key: int, length: int, is_stable: int) -> int:
    """Of all messages of this key and the one of this position: drop the older; how many."""
    chain = chain_at(port, key, length)
    dropped = 0
    highest = POSITION_MASK
    while True:
        found = chain_find(port, chain, highest)
        if found < 0:
            return dropped
        other = ABSENT
        if found != position:
            other = age_with_key(port, found, key, length)
        if not is_stable and head_load(port) > position:
            return dropped  # the key that we compared with may be another message's by now
        if other != ABSENT:
            if other > age or (other == age and found > position):
                dropped += replaced(port, position)
            else:
                dropped += replaced(port, found)
        highest = found - 1


@cold
def latest_note(port: int, position: int, word: int, is_stable: int) -> int:
    """The message that this word names is at this position: how many are dropped.

    `is_stable`: its chunk is the caller's, and is not used again before we return.
    """
    chunk = word_chunk(word)
    address = chunk_address(port, chunk)
    if address == 0:
        return 0
    shape = load(address + CHUNK_SHAPE_AT)
    mark = load(address + CHUNK_MARK_AT)
    length = shape_key(shape)
    if length == 0 or not chunk_fits(port, chunk, shape, mark):
        return 0
    key = address + key_offset(mark)
    age = age_of(port, position, word)
    chain_insert(port, chain_at(port, key, length), position)
    dropped = latest_settle(port, position, age, key, length, is_stable)
    if dropped > 0:
        reclaim(port)
    return dropped


@cold
def latest_note_chunk(port: int, chunk: int) -> int:
    """Somebody else has published this chunk, and may stand still before latest_note: do it.

    If head has passed its message, so that another may be in this chunk by now, no harm is done:
    that one is published too.  One that is done with ends the search: what is older is not in it.
    """
    position = true_tail(port) - 1
    while position >= head_load(port):
        word = load_acquire(slot_at(port, position))
        if word_chunk(word) == chunk and (word & LAP_MASK) == lap_of(port, position):
            return latest_note(port, position, word, 0) if word_there(port, position) else 0
        position -= 1
    return 0


@exported_cold
def latest_repair(port: int) -> int:
    """Look at all messages again: somebody may have died before it did.  How many are dropped."""
    tail = true_tail(port)
    if tail < 0:
        return tail
    dropped = 0
    for position in range(head_load(port), tail):
        word = word_there(port, position)
        if word != 0 and word_state(word) == READY:
            dropped += latest_note(port, position, word, 0)
    return dropped


@cold
def latest_look(port: int, chain: int, key: int, length: int) -> int:
    """The position of the newest message of a key that hangs in its chain, or EMPTY; or DAMAGED."""
    best = EMPTY
    age = ABSENT
    highest = POSITION_MASK
    while highest >= 0:
        found = chain_find(port, chain, highest)
        if found == DAMAGED:
            return DAMAGED
        if found >= 0:
            other = age_with_key(port, found, key, length)
            if other > age:
                best = found
                age = other
        highest = found - 1
    return best


@exported_cold
def latest_find(port: int, key: int, key_length: int) -> int:
    """The position of the newest message of this key, in somebody's hand or not; or EMPTY.

    What is done with while we look was replaced or carried, and hangs in the chain by its new place
    before: so when there was none, and anything of that went on meanwhile, we look again.
    """
    if key_length <= 0:
        return INVALID
    chain = chain_at(port, key, key_length)
    replacing = load(port + PORT_HEADER) + RING_REPLACING_AT
    found = latest_look(port, chain, key, key_length)
    for _ in range(TRIES):
        if found != EMPTY:
            return found
        before = load_acquire(replacing)
        found = latest_look(port, chain, key, key_length)
        if load_acquire(replacing) == before:
            return found
    return found
