"""Batches: the same edges, one CAS a word, with the hints moved once for all.

A publisher's batch may be interleaved with others' messages; a consumer's batch is cut short where
the next message is not READY.  Whoever dies in the middle has published, taken or acknowledged
just those messages whose words say so.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    compare_exchange,
    copy,
    load,
    load_acquire,
    prefetch_write,
    store,
)
from shmbroker.core.chunk import chunk_address, chunk_bytes, shape_body
from shmbroker.core.codes import DAMAGED, GONE, INVALID, OK, TOO_LARGE, TOO_SMALL
from shmbroker.core.kernel import cold, kernel
from shmbroker.core.layout import (
    BODY_BYTES_MAX,
    CHUNK_HEADER_BYTES,
    CHUNK_SHAPE_AT,
    LINE_BYTES,
    MARK_MAGIC,
    MARK_MAGIC_SHIFT,
    MESSAGE_BODY,
    MESSAGE_LENGTH,
    MESSAGE_POSITION,
    MESSAGE_SHIFT,
    MESSAGE_WORD,
    PORT_DATA,
    PORT_FOUND_TAKE,
    PORT_FOUND_WORD,
    PORT_HEADER,
    PORT_SLOT_MASK,
    PORT_SPECIAL,
    POSITION_MASK,
    RING_TAIL_AT,
    RING_TAKE_AT,
    SHAPE_BODY_SHIFT,
)
from shmbroker.core.level import ring_mode
from shmbroker.core.publish import next_origin, numbered, place
from shmbroker.core.reclaim import reclaim
from shmbroker.core.run import cut, cut_published, header_write
from shmbroker.core.tail import tail_load, tail_pass
from shmbroker.core.take import (
    any_claim,
    any_find,
    chunk_prefetch,
    claim,
    discard,
    finish,
    is_next,
    is_special,
    message_read,
    take_find,
)
from shmbroker.core.word import slot_at, word_chunk

PLAIN_MARK = MARK_MAGIC << MARK_MAGIC_SHIFT

AHEAD_BYTES = 1024
"""How far ahead a producer fetches the lines that it will fill: its consumer had them last.  Far
enough for several transfers to be under way at once, which doubles the rate between far cores."""


@kernel
def publish_body(port: int, body: int, length: int, tail: int) -> int:
    """Publish one plain message without moving tail: its position, or a code and no trace."""
    shape = length << SHAPE_BODY_SHIFT
    taken = chunk_bytes(shape, PLAIN_MARK)
    chunk = cut(port, taken)
    if chunk < 0:
        return chunk
    ahead = load(port + PORT_DATA) + chunk + AHEAD_BYTES
    prefetch_write(ahead)
    prefetch_write(ahead + LINE_BYTES)
    origin = next_origin(port)
    copy(header_write(port, chunk, shape, PLAIN_MARK, origin) + CHUNK_HEADER_BYTES, body, length)
    position = place(port, chunk, tail)
    if position < 0:
        return position
    numbered(port, origin)
    return cut_published(port, chunk + taken, position)


@kernel
def publish_once(port: int, body: int, length: int) -> int:
    """Publish one plain message: its position, or a code; NEEDS_COMMIT is the caller's to serve."""
    if length < 0 or length > BODY_BYTES_MAX:
        return INVALID if length < 0 else TOO_LARGE
    position = publish_body(port, body, length, tail_load(port))
    if position >= 0:
        tail = load(port + PORT_HEADER) + RING_TAIL_AT
        compare_exchange(tail, position, (position + 1) & POSITION_MASK)
    return position


@kernel
def publish_many_once(port: int, bodies: int, lengths: int, count: int) -> int:
    """Publish up to count plain messages, laid end to end at `bodies`, lengths[i] bytes each.

    How many were published: fewer when the ring became full; a code if none was.
    """
    tail = tail_load(port)
    first = tail
    together = 1  # nobody else's message is among ours
    position = tail - 1
    done = 0
    code = OK
    for index in range(min(count, load(port + PORT_SLOT_MASK) + 1)):
        length = load(lengths + index * 8)
        if length < 0 or length > BODY_BYTES_MAX:
            code = INVALID if length < 0 else TOO_LARGE
            break
        code = publish_body(port, bodies, length, position + 1)
        if code < 0:
            break
        if code != first + done:
            together = 0
        position = code
        bodies += length
        done += 1
    if done == 0:
        return code
    address = load(port + PORT_HEADER) + RING_TAIL_AT
    if not together or compare_exchange(address, first, position + 1) != first:
        if tail_pass(port, position) < 0:
            return DAMAGED
    return done


@kernel
def length_ahead(port: int, word: int) -> int:
    """The body's length before the message is ours: only believed if the claim then succeeds."""
    address = chunk_address(port, word_chunk(word))
    if address == 0:
        return 0
    return shape_body(load(address + CHUNK_SHAPE_AT))


@cold
def take_each(port: int, messages: int, count: int, capacity: int) -> int:
    """take_within for a ring that is not plain: what goes next is looked for each time."""
    taken = 0
    special = 0
    position = 0
    while taken < count:
        position = any_find(port)
        if position < 0:
            break
        word = load(port + PORT_FOUND_WORD)
        length = length_ahead(port, word)
        if taken > 0 and length > capacity:
            break
        leased = any_claim(port, position, word)
        if leased == 0:
            continue
        message = messages + (taken << MESSAGE_SHIFT)
        if message_read(port, message, position, leased) == OK:
            taken += 1
            capacity -= length
            special += is_special(message)
        elif discard(port, position, leased) and taken == 0:
            return DAMAGED
    store(port + PORT_SPECIAL, special)
    return taken if taken > 0 else position


@kernel
def take_within(port: int, messages: int, count: int, capacity: int) -> int:
    """Take messages that follow each other, the first and then while the bodies fit.

    PORT_SPECIAL says how many of them are special.
    """
    if ring_mode(port):
        return take_each(port, messages, count, capacity)
    taken = 0
    damaged = 0
    special = 0
    while taken == 0:
        position = take_find(port)
        if position < 0:
            return position
        word = load(port + PORT_FOUND_WORD)
        seen = load(port + PORT_FOUND_TAKE)
        passed = 0
        left = capacity - length_ahead(port, word)
        while passed < count:
            leased = claim(port, position, word)
            if leased == 0:
                break
            message = messages + (taken << MESSAGE_SHIFT)
            if message_read(port, message, position, leased) == OK:
                taken += 1
                special += is_special(message)
            else:
                damaged += discard(port, position, leased)
            position += 1
            passed += 1
            word = load_acquire(slot_at(port, position))
            if not is_next(port, position, word):
                break
            chunk_prefetch(port, word)
            left -= length_ahead(port, word)
            if left < 0:
                break
        if passed > 0:
            compare_exchange(load(port + PORT_HEADER) + RING_TAKE_AT, seen, seen + passed)
            if taken == 0 and damaged > 0:
                return DAMAGED
    store(port + PORT_SPECIAL, special)
    return taken


@kernel
def ack_many_once(port: int, messages: int, count: int) -> int:
    """Acknowledge these messages; how many were still ours."""
    acked = 0
    for index in range(count):
        message = messages + (index << MESSAGE_SHIFT)
        acked += finish(port, load(message + MESSAGE_POSITION), load(message + MESSAGE_WORD))
    reclaim(port)
    return acked


@kernel
def receive_taken(
    port: int, messages: int, taken: int, count: int, buffer: int, capacity: int, ends: int
) -> int:
    """Copy the bodies of messages that were taken, end to end, and acknowledge: how many.

    One that is no longer ours is left out, because somebody else has it: GONE if that is all of
    them.  With TOO_SMALL the first does not fit, and nothing was done; those that no longer fit are
    not among what take_within takes.
    """
    if load(messages + MESSAGE_LENGTH) > capacity:
        return TOO_SMALL
    filled = 0
    received = 0
    same = -1
    for index in range(taken):
        message = messages + (index << MESSAGE_SHIFT)
        length = load(message + MESSAGE_LENGTH)
        copy(buffer + filled, load(message + MESSAGE_BODY), length)
        if not finish(port, load(message + MESSAGE_POSITION), load(message + MESSAGE_WORD)):
            continue
        if received == 0:
            same = length
        elif length != same:
            same = -1
        filled += length
        store(ends + received * 8, filled)
        received += 1
    store(ends + count * 8, same)
    reclaim(port)
    return received if received > 0 else GONE
