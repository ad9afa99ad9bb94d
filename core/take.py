"""Taking, acknowledging and giving back: the slot's word names the consumer of a message.

    take        READY -> LEASED(owner)     the CAS names the consumer
    ack         LEASED -> DONE             exactly our word, else the delivery was revoked
    give back   LEASED -> READY            one more delivery; take is lowered to it
    unclaim     LEASED -> READY            taken, and not to be had (group.py), or by one who only
                                           wanted to put it elsewhere: it is no delivery

`take` is a hint: the lowest position that may be READY.  It has an epoch, because a consumer that
saw LEASED at position p and is about to move take past p must fail when p was given back meanwhile.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    compare_exchange,
    copy,
    fetch_add,
    load,
    load_acquire,
    prefetch,
    store,
)
from shmbroker.core.chunk import (
    body_offset,
    chunk_address,
    chunk_bytes,
    chunk_fits,
    mark_delivered,
    shape_body,
)
from shmbroker.core.codes import (
    ASSIGNED,
    DAMAGED,
    EMPTY,
    GONE,
    OK,
    REVOKED,
    TOO_SMALL,
    UNDECIDED,
)
from shmbroker.core.duplicate import is_duplicate
from shmbroker.core.group import (
    group_find,
    groups_changed,
    is_admitted,
    mode_buckets,
)
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.latest import keeps_latest, latest_note
from shmbroker.core.layout import (
    CHUNK_EXTENDED,
    CHUNK_MARK_AT,
    CHUNK_ONCE,
    CHUNK_SHAPE_AT,
    COUNTER_DAMAGED_AT,
    COUNTER_GIVEN_BACK_AT,
    COUNTER_REJECTED_AT,
    DELIVERIES_FIELD,
    EPOCH_STEP,
    FREE,
    LAP_MASK,
    LEASE_DEADLINE_SHIFT,
    LINE_BYTES,
    MARK_FLAGS_SHIFT,
    MESSAGE_BODY,
    MESSAGE_CHUNK,
    MESSAGE_LENGTH,
    MESSAGE_MARK,
    MESSAGE_OFFSET,
    MESSAGE_POSITION,
    MESSAGE_SHAPE,
    MESSAGE_WORD,
    MODE_PAUSED,
    MODE_REPLICA,
    PORT_EXPECT,
    PORT_FOUND_TAKE,
    PORT_FOUND_WORD,
    PORT_HEADER,
    PORT_LEASE_DEADLINE,
    PORT_OWNER,
    PORT_RECLAIM_MASK,
    PORT_SLOT_MASK,
    POSITION_MASK,
    READY,
    RING_TAKE_AT,
    RUN_BYTES_MAX,
    SLOT_LEASE_AT,
    STATE_MASK,
    STATE_SHIFT,
)
from shmbroker.core.level import level_find, level_hint, level_of, mode_levels, ring_mode
from shmbroker.core.reclaim import reclaim
from shmbroker.core.visible import is_deliverable, is_doubtful
from shmbroker.core.word import (
    lap_of,
    laps_ahead,
    slot_at,
    word_chunk,
    word_done,
    word_given_back,
    word_lease_tag,
    word_leased,
    word_state,
    word_unclaimed,
)

TRIES = 4096
"""As for publishing: a lost race means that somebody else took, so this is never reached."""


@kernel
def is_next(port: int, position: int, word: int) -> int:
    """1 if the word says that the message of this position may be taken, in a plain ring."""
    lap_and_state = word & (LAP_MASK | STATE_MASK << STATE_SHIFT)
    if lap_and_state != READY << STATE_SHIFT | lap_of(port, position):
        return 0
    if ring_mode(port):
        return 0
    return is_deliverable(port, position)


@kernel
def plain_find(port: int) -> int:
    """take_find in a plain ring."""
    address = load(port + PORT_HEADER) + RING_TAKE_AT
    for _ in range(TRIES + 4 * load(port + PORT_SLOT_MASK)):
        take = load_acquire(address)
        position = take & POSITION_MASK
        # SYNC POINT: publish (acquire): pairs with the CAS of place
        word = load_acquire(slot_at(port, position))
        ahead = laps_ahead(word, lap_of(port, position))
        state = word_state(word)
        if ahead < 0 or (ahead == 0 and state == FREE):
            return EMPTY
        if ahead == 0 and state == READY:
            if not is_deliverable(port, position):
                return EMPTY
            store(port + PORT_FOUND_TAKE, take)
            store(port + PORT_FOUND_WORD, word)
            return position
        compare_exchange(address, take, take + 1)
    return DAMAGED


@cold
def ordered_find(port: int, mode: int) -> int:
    """take_find in a ring with levels or groups."""
    return ASSIGNED if mode_buckets(mode) else level_find(port, mode)


@kernel
def take_find(port: int) -> int:
    """The READY position to take, with what was seen left in the port; EMPTY or DAMAGED.

    ASSIGNED if that depends on who takes: see group_find.
    """
    mode = ring_mode(port)
    return ordered_find(port, mode) if mode else plain_find(port)


@kernel
def claim(port: int, position: int, word: int) -> int:
    """READY to LEASED by us: our word, or 0 if it is no longer exactly this one.

    Until when we want to hold the message goes into the lease word, by CAS from what was there
    before: if we are stopped in between and revoked, the next holder's lease is left alone.
    """
    slot = slot_at(port, position)
    leased = word_leased(word, load(port + PORT_OWNER))
    deadline = load(port + PORT_LEASE_DEADLINE)
    if deadline == 0:
        return leased if compare_exchange(slot, word, leased) == word else 0
    former = load_acquire(slot + SLOT_LEASE_AT)
    if compare_exchange(slot, word, leased) != word:
        return 0
    lease = (deadline << LEASE_DEADLINE_SHIFT) | word_lease_tag(leased)
    compare_exchange(slot + SLOT_LEASE_AT, former, lease)
    return leased


@kernel
def chunk_prefetch(port: int, word: int) -> int:
    """Start to fetch the chunk before the CAS, so that both transfers overlap."""
    address = chunk_address(port, word_chunk(word))
    prefetch(address)
    prefetch(address + LINE_BYTES)
    return address


@kernel
def message_read(port: int, message: int, position: int, word: int) -> int:
    """Fill in the message that a word names; DAMAGED if its chunk is none."""
    chunk = word_chunk(word)
    address = chunk_address(port, chunk)
    if address == 0:
        return DAMAGED
    shape = load(address + CHUNK_SHAPE_AT)
    mark = load(address + CHUNK_MARK_AT)
    if not chunk_fits(port, chunk, shape, mark):
        return DAMAGED
    store(message + MESSAGE_POSITION, position)
    store(message + MESSAGE_WORD, word)
    body = body_offset(shape, mark)
    store(message + MESSAGE_BODY, address + body)
    store(message + MESSAGE_OFFSET, chunk + body)
    store(message + MESSAGE_LENGTH, shape_body(shape))
    store(message + MESSAGE_CHUNK, address)
    store(message + MESSAGE_SHAPE, shape)
    store(message + MESSAGE_MARK, mark_delivered(mark) if is_doubtful(port) else mark)
    store(port + PORT_EXPECT, address + chunk_bytes(shape, mark))
    return OK


@kernel
def count(port: int, counter: int) -> int:
    return fetch_add(load(port + PORT_HEADER) + counter, 1)


@kernel
def finish(port: int, position: int, leased: int) -> int:
    """LEASED, exactly this word, to DONE; 1 if it was still ours."""
    # SYNC POINT: done (release): what we did with the message comes before its memory is reused
    return int(compare_exchange(slot_at(port, position), leased, word_done(leased)) == leased)


@cold
def discard(port: int, position: int, leased: int) -> int:
    """Take a message whose chunk is damaged out of the ring, and count it; 1 if it was ours.

    If it was not, the delivery had been revoked and the chunk was reused: nothing is damaged.
    """
    if not finish(port, position, leased):
        return 0
    count(port, COUNTER_DAMAGED_AT)
    return 1


@cold
def hint_lower(port: int, address: int, position: int, ready: int) -> int:
    """A message below a hint is READY again: lower the hint to it, in the next epoch.

    The hint is read before the word is looked at again: if the message has gone on since, somebody
    has lowered the hint before us, and our CAS fails.
    """
    for _ in range(TRIES):
        hint = load_acquire(address)
        above = (hint & POSITION_MASK) - position
        if above < 0 or load_acquire(slot_at(port, position)) != ready:
            return 0
        if compare_exchange(address, hint, hint - above + EPOCH_STEP) == hint:
            return 1
    return 0


@kernel
def lower_hints(port: int, position: int, ready: int) -> int:
    """Whoever looks for the next message finds this one, which is READY again."""
    lowered = hint_lower(port, load(port + PORT_HEADER) + RING_TAKE_AT, position, ready)
    mode = ring_mode(port)
    levels = mode_levels(mode)
    if levels:
        level = level_of(port, ready, levels)
        lowered += hint_lower(port, level_hint(port, level), position, ready)
    if mode_buckets(mode):
        groups_changed(port)
    return lowered


@kernel
def is_special(message: int) -> int:
    """1 if a message that was taken may be one that is not to be delivered: see the floor above."""
    flags = load(message + MESSAGE_MARK) & (CHUNK_EXTENDED | CHUNK_ONCE) << MARK_FLAGS_SHIFT
    return int(flags | load(message + MESSAGE_WORD) & DELIVERIES_FIELD != 0)


@cold
def any_find(port: int) -> int:
    """take_find, or group_find."""
    position = take_find(port)
    return group_find(port) if position == ASSIGNED else position


@cold
def unclaim(port: int, position: int, leased: int) -> int:
    """LEASED, exactly this word, to READY as before; 1 if it still was so."""
    ready = word_unclaimed(leased)
    if compare_exchange(slot_at(port, position), leased, ready) != leased:
        return 0
    lower_hints(port, position, ready)
    if keeps_latest(port):
        latest_note(port, position, ready, 0)  # there may be a newer one of its key
    return 1


@cold
def any_claim(port: int, position: int, word: int) -> int:
    """claim, in a ring with groups as well: our word, or 0."""
    leased = claim(port, position, word)
    if leased == 0 or mode_buckets(ring_mode(port)) == 0 or is_admitted(port, leased):
        return leased
    # the bucket went to somebody else meanwhile, who may already be waiting for us
    unclaim(port, position, leased)
    return 0


@cold
def take_assigned(port: int, message: int) -> int:
    """take_once in a ring with groups: the oldest message that we may have."""
    while True:
        position = group_find(port)
        if position < 0:
            return position
        leased = any_claim(port, position, load(port + PORT_FOUND_WORD))
        if leased != 0:
            if message_read(port, message, position, leased) == OK:
                return OK
            if discard(port, position, leased):
                return DAMAGED


@kernel
def take_once(port: int, message: int) -> int:
    """Take the oldest message that nobody has: OK, EMPTY, or DAMAGED (that message is dropped)."""
    while True:
        position = load_acquire(load(port + PORT_HEADER) + RING_TAKE_AT) & POSITION_MASK
        slot = slot_at(port, position)
        lap = lap_of(port, position)
        # the next chunk is most likely right behind the last one: whoever waits for a message
        # fetches it together with the word, instead of after it
        expect = load(port + PORT_EXPECT)
        prefetch(expect)
        prefetch(expect + LINE_BYTES)
        # SYNC POINT: publish (acquire): pairs with the CAS of place
        word = load_acquire(slot)
        if word == lap:  # FREE
            return EMPTY
        if not is_next(port, position, word):
            position = take_find(port)
            if position < 0:
                return take_assigned(port, message) if position == ASSIGNED else position
            word = load(port + PORT_FOUND_WORD)
        chunk_prefetch(port, word)
        leased = claim(port, position, word)
        if leased != 0:
            # take itself is moved on by whoever looks next: that is soon enough, and not on the
            # path between a message and its reply
            if message_read(port, message, position, leased) == OK:
                return OK
            if discard(port, position, leased):
                return DAMAGED


@kernel
def ack_once(port: int, message: int) -> int:
    """The message is dealt with: OK, or REVOKED if it was no longer ours."""
    position = load(message + MESSAGE_POSITION)
    if not finish(port, position, load(message + MESSAGE_WORD)):
        return REVOKED
    mask = load(port + PORT_RECLAIM_MASK)
    if position & mask == mask or load(message + MESSAGE_LENGTH) >= RUN_BYTES_MAX:
        reclaim(port)  # a large one at once: its producer wants the memory while it is warm
    return OK


@kernel
def put_back(port: int, position: int, leased: int) -> int:
    """LEASED, exactly this word, to READY with one more delivery; 1 if it still was so."""
    ready = word_given_back(leased)
    if compare_exchange(slot_at(port, position), leased, ready) != leased:
        return 0
    lower_hints(port, position, ready)
    if keeps_latest(port):
        latest_note(port, position, ready, 0)  # there may be a newer one of its key
    return 1


@cold
def untake_once(port: int, message: int) -> int:
    """give_back_once, and it is no delivery."""
    if not unclaim(port, load(message + MESSAGE_POSITION), load(message + MESSAGE_WORD)):
        return REVOKED
    count(port, COUNTER_GIVEN_BACK_AT)
    return OK


@kernel
def give_back_once(port: int, message: int) -> int:
    """Let somebody else have the message: OK, or REVOKED if it was no longer ours."""
    if not put_back(port, load(message + MESSAGE_POSITION), load(message + MESSAGE_WORD)):
        return REVOKED
    count(port, COUNTER_GIVEN_BACK_AT)
    return OK


@exported_cold
def is_ours(port: int, message: int) -> int:
    """1 if the delivery of this message was not revoked so far."""
    word = load_acquire(slot_at(port, load(message + MESSAGE_POSITION)))
    return int(word == load(message + MESSAGE_WORD))


@exported_cold
def reread(port: int, message: int) -> int:
    """Fill in a message of ours of which only position and word are known: OK, REVOKED, DAMAGED."""
    if not is_ours(port, message):
        return REVOKED
    return message_read(
        port, message, load(message + MESSAGE_POSITION), load(message + MESSAGE_WORD)
    )


@exported_cold
def drop_taken(port: int, message: int, counter: int) -> int:
    """A message of ours leaves the ring without being acknowledged: count it.  OK, or REVOKED."""
    if not finish(port, load(message + MESSAGE_POSITION), load(message + MESSAGE_WORD)):
        return REVOKED
    count(port, counter)
    reclaim(port)
    return OK


@exported_cold
def withdraw(port: int, message: int) -> int:
    """A duplicate that we have taken leaves the ring; it was counted before."""
    code = (
        OK
        if finish(port, load(message + MESSAGE_POSITION), load(message + MESSAGE_WORD))
        else (REVOKED)
    )
    reclaim(port)
    return code


@exported_cold
def reject(port: int, message: int) -> int:
    """The message is of no use to anybody: drop and count it.  OK, or REVOKED."""
    return drop_taken(port, message, COUNTER_REJECTED_AT)


@exported_cold
def look(port: int, position: int, message: int) -> int:
    """What is READY at a position, if anything: OK, EMPTY, GONE or DAMAGED.

    It is not ours: what is read of it is only certain once take_seen has made it so.
    """
    word = load_acquire(slot_at(port, position))
    ahead = laps_ahead(word, lap_of(port, position))
    if ahead < 0 or (ahead == 0 and word_state(word) == FREE):
        return EMPTY
    if ahead > 0 or word_state(word) != READY:
        return GONE
    if not is_deliverable(port, position):
        return EMPTY
    code = message_read(port, message, position, word)
    if code == OK and is_duplicate(port, message):
        return GONE
    return code


@kernel
def read_seen(port: int, message: int, position: int, leased: int) -> int:
    if leased == 0:
        return GONE
    if message_read(port, message, position, leased) == OK:
        return OK
    discard(port, position, leased)
    return DAMAGED


@exported_cold
def take_to_set_aside(port: int, message: int) -> int:
    """take_seen, of a paused queue as well: nobody gets the message, it is put elsewhere."""
    if ring_mode(port) & MODE_REPLICA:
        return GONE
    position = load(message + MESSAGE_POSITION)
    leased = claim(port, position, load(message + MESSAGE_WORD))
    return read_seen(port, message, position, leased)


@exported_cold
def take_seen(port: int, message: int) -> int:
    """Take just the message that look has found: OK, GONE if it is no longer there, DAMAGED.

    Whatever its group: this is not for a consumer.
    """
    if ring_mode(port) & (MODE_PAUSED | MODE_REPLICA):
        return GONE
    return take_to_set_aside(port, message)


@cold
def take_admitted(port: int, message: int) -> int:
    """take_seen for a consumer: GONE as well if the group of the message is not its own."""
    if ring_mode(port) & (MODE_PAUSED | MODE_REPLICA):
        return GONE
    position = load(message + MESSAGE_POSITION)
    leased = any_claim(port, position, load(message + MESSAGE_WORD))
    return read_seen(port, message, position, leased)


@kernel
def receive_once(port: int, message: int, buffer: int, capacity: int) -> int:
    """Take, copy the body, acknowledge: its length, or a code.

    With TOO_SMALL and UNDECIDED the message is taken and not acknowledged.
    """
    while True:
        code = take_once(port, message)
        if code != OK:
            return code
        if is_special(message):
            return UNDECIDED
        length = load(message + MESSAGE_LENGTH)
        if length > capacity:
            return TOO_SMALL
        copy(buffer, load(message + MESSAGE_BODY), length)
        if ack_once(port, message) == OK:
            return length
        # revoked meanwhile: somebody else has it, so this was not our message
