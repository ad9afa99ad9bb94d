"""What programs call on a port to publish: a message, many, or a chunk that they fill in place.

Each tells those who sleep on the ring what has become possible (waiting.py).
"""

from __future__ import annotations

from shmbroker.core.atomics import copy, load
from shmbroker.core.batch import (
    PLAIN_MARK,
    publish_many_once,
    publish_once,
)
from shmbroker.core.carry import carried_mark, carry_on, carry_take
from shmbroker.core.chunk import body_offset, is_chunk
from shmbroker.core.codes import (
    INVALID,
    JOURNAL_DAMAGED,
    NEEDS_COMMIT,
    OK,
    TOO_LARGE,
)
from shmbroker.core.kernel import cold, exported, exported_cold, kernel
from shmbroker.core.latest import keeps_latest, latest_note
from shmbroker.core.layout import (
    BODY_BYTES_MAX,
    CHUNK_EXTENDED,
    CHUNK_EXTENSION_BYTES,
    CHUNK_HEADER_BYTES,
    CHUNK_MARK_AT,
    CHUNK_ONCE,
    CHUNK_ONCE_BYTES,
    CHUNK_SHAPE_AT,
    KEY_BYTES_MAX,
    MARK_DELIVERIES_MASK,
    MARK_FLAGS_SHIFT,
    MARK_PRIORITY_MASK,
    MARK_PRIORITY_SHIFT,
    MESSAGE_SHAPE,
    OUTGOING_BODY,
    OUTGOING_DELIVERIES,
    OUTGOING_KEY,
    OUTGOING_KEY_LENGTH,
    OUTGOING_LENGTH,
    OUTGOING_PRIORITY,
    OUTGOING_PROPERTIES,
    OUTGOING_PROPERTIES_LENGTH,
    PORT_DATA,
    PROPERTIES_BYTES_MAX,
    RETURNED,
    SHAPE_BODY_SHIFT,
    SHAPE_KEY_SHIFT,
)
from shmbroker.core.publish import publish_chunk_checked_once, publish_chunk_once
from shmbroker.core.run import run_of, unreserve
from shmbroker.core.take import untake_once
from shmbroker.core.transaction import place_once
from shmbroker.core.word import word_ready
from shmbroker.ipc.ring.growth import commit, reserve_any
from shmbroker.ipc.ring.waiting import tell_consumers


@exported
def loan(port: int, length: int) -> int:
    """A chunk to fill in place: its offset, for loan_body and publish_chunk, or a code."""
    if length < 0 or length > BODY_BYTES_MAX:
        return INVALID if length < 0 else TOO_LARGE
    shape = length << SHAPE_BODY_SHIFT
    return reserve_any(port, shape, PLAIN_MARK)


@exported
def loan_body(port: int, chunk: int) -> int:
    """The address of the body of a chunk on loan, 0 if it is not ours."""
    if run_of(port, chunk) < 0:
        return 0
    address = load(port + PORT_DATA) + chunk
    return address + body_offset(load(address + CHUNK_SHAPE_AT), load(address + CHUNK_MARK_AT))


@cold
def publish_growing(port: int, body: int, length: int) -> int:
    position = NEEDS_COMMIT
    while position == NEEDS_COMMIT:
        code = commit(port, length)
        if code != OK:
            return code
        position = publish_once(port, body, length)
    return position


@exported
def publish(port: int, body: int, length: int) -> int:
    """Publish one message: its position, or a code (FULL: nothing was published)."""
    position = publish_once(port, body, length)
    if position == NEEDS_COMMIT:
        position = publish_growing(port, body, length)
    if position >= 0:
        tell_consumers(port)
    return position


@cold
def publish_many_growing(port: int, bodies: int, lengths: int, count: int) -> int:
    done = NEEDS_COMMIT
    while done == NEEDS_COMMIT:
        code = commit(port, load(lengths))
        if code != OK:
            return code
        done = publish_many_once(port, bodies, lengths, count)
    return done


@exported
def publish_many(port: int, bodies: int, lengths: int, count: int) -> int:
    """Publish messages that lie end to end: how many of them, or a code if none was."""
    done = publish_many_once(port, bodies, lengths, count)
    if done == NEEDS_COMMIT:
        done = publish_many_growing(port, bodies, lengths, count)
    if done > 0:
        tell_consumers(port)
    return done


@kernel
def shape_of(length: int, key_length: int, properties_length: int) -> int:
    """The word for a chunk's lengths, INVALID or TOO_LARGE if one is out of range."""
    if length < 0 or key_length < 0 or properties_length < 0:
        return INVALID
    if key_length > KEY_BYTES_MAX or properties_length > PROPERTIES_BYTES_MAX:
        return TOO_LARGE
    if length > BODY_BYTES_MAX:
        return TOO_LARGE
    return length << SHAPE_BODY_SHIFT | key_length << SHAPE_KEY_SHIFT | properties_length


@kernel
def loan_any(port: int, outgoing: int, extension: int, once: int) -> int:
    key_length = load(outgoing + OUTGOING_KEY_LENGTH)
    properties_length = load(outgoing + OUTGOING_PROPERTIES_LENGTH)
    shape = shape_of(load(outgoing + OUTGOING_LENGTH), key_length, properties_length)
    if shape < 0:
        return shape
    mark = PLAIN_MARK | (load(outgoing + OUTGOING_PRIORITY) & MARK_PRIORITY_MASK) << (
        MARK_PRIORITY_SHIFT
    )
    mark |= load(outgoing + OUTGOING_DELIVERIES) & (MARK_DELIVERIES_MASK | RETURNED)
    if extension != 0:
        mark |= CHUNK_EXTENDED << MARK_FLAGS_SHIFT
    if once != 0:
        mark |= CHUNK_ONCE << MARK_FLAGS_SHIFT
    chunk = reserve_any(port, shape, mark)
    if chunk < 0:
        return chunk
    at = load(port + PORT_DATA) + chunk + CHUNK_HEADER_BYTES
    if extension != 0:
        copy(at, extension, CHUNK_EXTENSION_BYTES)
        at += CHUNK_EXTENSION_BYTES
    if once != 0:
        copy(at, once, CHUNK_ONCE_BYTES)
        at += CHUNK_ONCE_BYTES
    copy(at, load(outgoing + OUTGOING_KEY), key_length)
    copy(at + key_length, load(outgoing + OUTGOING_PROPERTIES), properties_length)
    return chunk


@exported
def loan_with(port: int, outgoing: int, extension: int) -> int:
    """loan for a message with a key, properties, a priority, or an extension of 32 bytes."""
    return loan_any(port, outgoing, extension, 0)


@exported_cold
def loan_copied(port: int, image: int, length: int) -> int:
    """A chunk on loan that is a copy of one in a file or a frame; JOURNAL_DAMAGED: that is none."""
    if not is_chunk(image, length):
        return JOURNAL_DAMAGED
    shape = shape_of(length - CHUNK_HEADER_BYTES, 0, 0)  # the header is copied over with the rest
    chunk = shape if shape < 0 else reserve_any(port, shape, PLAIN_MARK)
    if chunk >= 0:
        copy(load(port + PORT_DATA) + chunk, image, length)
    return chunk


@exported_cold
def loan_once(port: int, outgoing: int, extension: int, once: int) -> int:
    """loan_with for a message of which one counts: `once` is the hash of its id, or two zeros."""
    return loan_any(port, outgoing, extension, once)


@exported
def publish_with(port: int, outgoing: int, extension: int) -> int:
    """publish for a message that has more than a body: see loan_with."""
    chunk = loan_with(port, outgoing, extension)
    if chunk < 0:
        return chunk
    body = loan_body(port, chunk)
    copy(body, load(outgoing + OUTGOING_BODY), load(outgoing + OUTGOING_LENGTH))
    position = publish_chunk_once(port, chunk)
    if position < 0:
        unreserve(port, chunk)
        return position
    if keeps_latest(port):
        latest_note(port, position, word_ready(chunk, 0), 1)
    tell_consumers(port)
    return position


@exported
def publish_chunk(port: int, chunk: int) -> int:
    """Publish a reserved and filled chunk: its position, or FULL; then it is still reserved."""
    position = publish_chunk_once(port, chunk)
    if position >= 0:
        if keeps_latest(port):
            latest_note(port, position, word_ready(chunk, 0), 1)
        tell_consumers(port)
    return position


@exported_cold
def publish_chunk_checked(port: int, chunk: int, origin: int) -> int:
    """publish_chunk for a chunk of loan_once: DUPLICATE as well, and then it is not on loan."""
    position = publish_chunk_checked_once(port, chunk, origin)
    if position >= 0:
        tell_consumers(port)
    return position


@exported_cold
def carry(port: int, message: int) -> int:
    """Publish the oldest message once more, as old as it is, and drop it here; see carry.py."""
    code = carry_take(port, message)
    if code != OK:
        return code
    chunk = reserve_any(port, load(message + MESSAGE_SHAPE), carried_mark(message))
    if chunk >= 0:
        code = carry_on(port, message, chunk)
    else:
        code = chunk
        untake_once(port, message)
    tell_consumers(port)
    return code


@exported_cold
def transaction_place(port: int, chunk: int, origin: int, looks: int) -> int:
    """Publish this chunk of a transaction that is committed, unless it was before: OK, or FULL."""
    code = place_once(port, chunk, origin, looks)
    if code == OK:
        tell_consumers(port)
    return code
