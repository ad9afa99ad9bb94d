"""What programs call on a port: the kernels of core, with memory committed when it is needed.

Each tells those who sleep on the ring what has become possible (waiting.py).  Waiting here is
spinning: *_wait looks so many times and then says EMPTY or FULL, so that the caller can yield,
sleep or give up.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, copy, load, load_acquire, pause, store
from shmbroker.core.batch import (
    PLAIN_MARK,
    ack_many_once,
    publish_many_once,
    publish_once,
    receive_taken,
    take_within,
)
from shmbroker.core.carry import carried_mark, carry_on, carry_take
from shmbroker.core.chunk import body_offset, chunk_bytes
from shmbroker.core.codes import (
    CLOSED,
    DAMAGED,
    EMPTY,
    FULL,
    GONE,
    INVALID,
    NEEDS_COMMIT,
    OK,
    REVOKED,
    TOO_LARGE,
    TOO_SMALL,
    UNDECIDED,
)
from shmbroker.core.cursor import cursor_copy, cursor_next
from shmbroker.core.head import head_load
from shmbroker.core.kernel import cold, exported, exported_cold, kernel
from shmbroker.core.latest import keeps_latest, latest_note
from shmbroker.core.layout import (
    ARENA_COMMITTED_AT,
    BODY_BYTES_MAX,
    CHUNK_EXTENDED,
    CHUNK_EXTENSION_BYTES,
    CHUNK_HEADER_BYTES,
    CHUNK_MARK_AT,
    CHUNK_ONCE,
    CHUNK_ONCE_BYTES,
    CHUNK_SHAPE_AT,
    COPIED_BYTES,
    KEY_BYTES_MAX,
    MARK_FLAGS_SHIFT,
    MARK_PRIORITY_MASK,
    MARK_PRIORITY_SHIFT,
    MESSAGE_BODY,
    MESSAGE_BYTES,
    MESSAGE_LENGTH,
    MESSAGE_POSITION,
    MESSAGE_SHAPE,
    MESSAGE_SHIFT,
    MESSAGE_WORD,
    OUTGOING_BODY,
    OUTGOING_KEY,
    OUTGOING_KEY_LENGTH,
    OUTGOING_LENGTH,
    OUTGOING_PRIORITY,
    OUTGOING_PROPERTIES,
    OUTGOING_PROPERTIES_LENGTH,
    PORT_ARENA,
    PORT_BLOCK_SHIFT,
    PORT_BLOCKS,
    PORT_DATA,
    PORT_DATA_BYTES,
    PORT_FILE,
    PORT_HEAD_SEEN,
    PORT_MESSAGE,
    PORT_ROOM,
    PORT_ROOM_BYTES,
    PORT_RUN_BYTES,
    PORT_SPECIAL,
    PORT_STOP,
    POSITION_MASK,
    PROPERTIES_BYTES_MAX,
    SHAPE_BODY_SHIFT,
    SHAPE_KEY_SHIFT,
    STOPPED_FOR_GOOD,
)
from shmbroker.core.publish import publish_chunk_checked_once, publish_chunk_once
from shmbroker.core.run import reserve, run_of, unreserve
from shmbroker.core.take import (
    ack_once,
    finish,
    give_back_once,
    is_special,
    put_back,
    receive_once,
    take_admitted,
    take_once,
)
from shmbroker.core.transaction import place_once
from shmbroker.core.word import word_ready
from shmbroker.ipc.base.system import system_allocate, system_decide, system_revoked
from shmbroker.ipc.ring.recording import is_recorded, note_acked, note_taken
from shmbroker.ipc.ring.waiting import tell_consumers, tell_producers

ROOM_PAUSES = 32

COMMIT_BYTES_MIN = 1 << 20
"""The arena grows by at least this, and doubles, so that growing is rare."""


@kernel
def commit_blocks(port: int, committed: int, blocks: int) -> int:
    """Put memory behind so many more blocks: OK or a code."""
    shift = load(port + PORT_BLOCK_SHIFT)
    data_at = load(port + PORT_DATA) - load(port + PORT_ARENA)
    start = data_at + (committed << shift)
    code = system_allocate(load(port + PORT_FILE), start, blocks << shift)
    if code == OK:
        # if somebody else has grown the arena meanwhile, what we allocated is there for the next
        address = load(port + PORT_ARENA) + ARENA_COMMITTED_AT
        compare_exchange(address, committed, committed + blocks)
    return code


@cold
def commit(port: int, length: int) -> int:
    """Grow the arena for a chunk of this length: OK (search again), NO_MEMORY or DAMAGED."""
    shift = load(port + PORT_BLOCK_SHIFT)
    committed = load_acquire(load(port + PORT_ARENA) + ARENA_COMMITTED_AT)
    left = load(port + PORT_BLOCKS) - committed
    if committed < 0:
        return DAMAGED
    if left <= 0:  # somebody else has grown it to the end since we searched
        return OK
    needed = (length + 2 * (1 << shift) - 1) >> shift  # a line of header at most, rounded up
    wanted = max(needed, committed, COMMIT_BYTES_MIN >> shift)
    code = commit_blocks(port, committed, min(left, wanted))
    if code != OK:
        store(port + PORT_RUN_BYTES, 1 << shift)
        code = commit_blocks(port, committed, min(left, needed))
    return code


@cold
def reserve_growing(port: int, shape: int, mark: int) -> int:
    chunk = NEEDS_COMMIT
    while chunk == NEEDS_COMMIT:
        code = commit(port, chunk_bytes(shape, mark))
        if code != OK:
            return code
        chunk = reserve(port, shape, mark)
    return chunk


@kernel
def reserve_any(port: int, shape: int, mark: int) -> int:
    """A chunk of this shape, growing the arena if need be."""
    chunk = reserve(port, shape, mark)
    if chunk != NEEDS_COMMIT:
        return chunk
    return reserve_growing(port, shape, mark)


@exported
def loan(port: int, length: int) -> int:
    """A chunk to fill in place: its offset, for loan_body and publish_chunk, or a code."""
    if length < 0 or length > BODY_BYTES_MAX:
        return INVALID
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
    if chunk < 0:
        put_back(port, load(message + MESSAGE_POSITION), load(message + MESSAGE_WORD))
        return chunk
    code = carry_on(port, message, chunk)
    tell_consumers(port)
    return code


@exported
def ack(port: int, message: int) -> int:
    """The message is dealt with: OK, or REVOKED if it was no longer ours."""
    note_acked(port, message, 1)
    code = ack_once(port, message)
    if code == REVOKED:
        return system_revoked(port)
    tell_producers(port)
    return code


@exported
def ack_many(port: int, messages: int, count: int) -> int:
    """Acknowledge these messages; how many were still ours."""
    if count > 0:
        note_acked(port, messages, count)
    acked = ack_many_once(port, messages, count)
    if acked < count:
        system_revoked(port)
    tell_producers(port)
    return acked


@exported
def give_back(port: int, message: int) -> int:
    """Let somebody else have the message: OK, or REVOKED if it was no longer ours."""
    code = give_back_once(port, message)
    if code == REVOKED:
        return system_revoked(port)
    tell_consumers(port)
    return code


@exported_cold
def transaction_place(port: int, chunk: int, origin: int) -> int:
    """Publish this chunk of a transaction that is committed, unless it was before: OK, or FULL."""
    code = place_once(port, chunk, origin)
    if code == OK:
        tell_consumers(port)
    return code


@exported_cold
def take_selected(port: int, message: int) -> int:
    """Take just the message that look has found, for a consumer: see take_admitted."""
    code = take_admitted(port, message)
    if code == OK and is_recorded(port):
        note_taken(port, message, 1)
    return code


@exported_cold
def transaction_finish(port: int, position: int, leased: int) -> int:
    """Acknowledge this message of a transaction that is committed: 1, or 0 if it was before."""
    done = finish(port, position, leased)
    tell_producers(port)
    return done


@kernel
def found_none(port: int, code: int) -> int:
    """The code of a take; CLOSED if there will never be anything, because the port is closed."""
    if code == EMPTY and load(port + PORT_STOP) == STOPPED_FOR_GOOD:
        return CLOSED
    return code


@exported
def take(port: int, message: int) -> int:
    """Take the oldest message that nobody has: OK, EMPTY, or DAMAGED (that message is dropped)."""
    while True:
        code = take_once(port, message)
        if code != OK:
            return found_none(port, code)
        if is_special(message):
            code = system_decide(port, message)
        if code == OK and is_recorded(port):
            note_taken(port, message, 1)
        if code != GONE:
            return code


@cold
def decide_all(port: int, messages: int, taken: int) -> int:
    """Of messages that were taken, keep what may be delivered: how many, or GONE or EMPTY."""
    kept = 0
    code = GONE
    for index in range(taken):
        message = messages + (index << MESSAGE_SHIFT)
        told = OK
        if is_special(message):
            told = system_decide(port, message)
        if told != OK:
            code = told
            continue
        if kept < index:
            copy(messages + (kept << MESSAGE_SHIFT), message, MESSAGE_BYTES)
            store(message + MESSAGE_WORD, 0)  # nobody is to give it back twice
        kept += 1
    return kept if kept > 0 else code


@kernel
def take_fitting(port: int, messages: int, count: int, capacity: int) -> int:
    """take_many as far as the bodies fit, but for the first."""
    if count <= 0:
        return INVALID
    while True:
        taken = take_within(port, messages, count, capacity)
        if taken > 0 and load(port + PORT_SPECIAL):
            taken = decide_all(port, messages, taken)
        if taken > 0 and is_recorded(port):
            note_taken(port, messages, taken)
        if taken != GONE:
            return found_none(port, taken)


@exported
def take_many(port: int, messages: int, count: int) -> int:
    """Take up to count messages that follow each other; how many, or EMPTY or DAMAGED."""
    return take_fitting(port, messages, count, POSITION_MASK)


@cold
def receive_special(port: int, message: int, buffer: int, capacity: int) -> int:
    """What is UNDECIDED: its length if it may be received, GONE if not, or a code."""
    code = system_decide(port, message)
    if code != OK:
        return code
    length = load(message + MESSAGE_LENGTH)
    if length > capacity:
        return TOO_SMALL
    copy(buffer, load(message + MESSAGE_BODY), length)
    if ack_once(port, message) != OK:
        return GONE  # revoked meanwhile: somebody else has it
    return length


@kernel
def receive_one(port: int, message: int, buffer: int, capacity: int) -> int:
    """receive, and GONE if there is another message to try."""
    length = receive_once(port, message, buffer, capacity)
    if length == UNDECIDED:
        length = receive_special(port, message, buffer, capacity)
    return length


@cold
def receive_recorded(port: int, message: int, buffer: int, capacity: int) -> int:
    """The same, with times noted in between."""
    code = take(port, message)
    if code != OK:
        return code
    length = load(message + MESSAGE_LENGTH)
    if length > capacity:
        return TOO_SMALL
    copy(buffer, load(message + MESSAGE_BODY), length)
    note_acked(port, message, 1)
    if ack_once(port, message) != OK:
        return GONE  # revoked meanwhile: somebody else has it
    return length


@exported
def receive(port: int, message: int, buffer: int, capacity: int) -> int:
    """Take, copy the body, acknowledge: its length, or a code.

    With TOO_SMALL the message is taken and not acknowledged: its length is in `message`.
    """
    length = GONE
    while length == GONE:
        if is_recorded(port):
            length = receive_recorded(port, message, buffer, capacity)
        else:
            length = receive_one(port, message, buffer, capacity)
    if length >= 0:
        tell_producers(port)
        return length
    return found_none(port, length)


@exported
def receive_many(
    port: int, messages: int, count: int, buffer: int, capacity: int, ends: int
) -> int:
    """Take up to count messages, copy their bodies end to end, acknowledge; how many, or a code.

    ends[i] is where body i ends, and ends[count] the length that all bodies have, or -1.  A message
    that no longer fits is not taken, unless it is the first: with TOO_SMALL it is in `messages`,
    taken and not acknowledged.
    """
    taken = take_fitting(port, messages, count, capacity)
    if taken <= 0:
        return taken
    if load(messages + MESSAGE_LENGTH) <= capacity:
        note_acked(port, messages, taken)
    received = receive_taken(port, messages, taken, count, buffer, capacity, ends)
    if received > 0:
        tell_producers(port)
    return received


@exported_cold
def room_wait(port: int) -> int:
    """Give the consumers a while to move head, without a look at the slot that they work on."""
    head = load(port + PORT_HEAD_SEEN)
    for _ in range(ROOM_PAUSES):
        pause()
        if head_load(port) != head:
            return 1
    return 0


@exported
def publish_wait(port: int, body: int, length: int, spins: int) -> int:
    """publish, trying again while the ring is full."""
    while True:
        code = publish(port, body, length)
        if code != FULL or spins <= 0:
            return code
        room_wait(port)
        spins -= ROOM_PAUSES


@exported
def publish_chunk_wait(port: int, chunk: int, spins: int) -> int:
    """publish_chunk, trying again while the ring is full."""
    while True:
        code = publish_chunk(port, chunk)
        if code != FULL or spins <= 0:
            return code
        room_wait(port)
        spins -= ROOM_PAUSES


@exported
def take_wait(port: int, message: int, spins: int) -> int:
    """take, looking again while there is nothing."""
    while True:
        code = take(port, message)
        if code != EMPTY or spins <= 0:
            return code
        pause()
        spins -= 1


@exported
def receive_wait(port: int, message: int, buffer: int, capacity: int, spins: int) -> int:
    """receive, looking again while there is nothing."""
    while True:
        code = receive(port, message, buffer, capacity)
        if code != EMPTY or spins <= 0:
            return code
        pause()
        spins -= 1


@exported
def receive_many_wait(
    port: int, messages: int, count: int, buffer: int, capacity: int, ends: int, spins: int
) -> int:
    """receive_many, looking again while there is nothing."""
    while True:
        code = receive_many(port, messages, count, buffer, capacity, ends)
        if code != EMPTY or spins <= 0:
            return code
        pause()
        spins -= 1


@exported
def cursor_next_wait(cursor: int, message: int, spins: int) -> int:
    """cursor_next, looking again while there is nothing."""
    while True:
        code = cursor_next(cursor, message)
        if code != EMPTY or spins <= 0:
            return code
        pause()
        spins -= 1


@exported
def cursor_copy_wait(cursor: int, message: int, buffer: int, capacity: int, spins: int) -> int:
    """cursor_copy, looking again while there is nothing."""
    while True:
        code = cursor_copy(cursor, message, buffer, capacity)
        if code != EMPTY or spins <= 0:
            return code
        pause()
        spins -= 1


@exported
def port_room(port: int, buffer: int, capacity: int) -> int:
    """Name the buffer that receive_next copies into."""
    if capacity < 0:
        return INVALID
    store(port + PORT_ROOM, buffer)
    store(port + PORT_ROOM_BYTES, capacity)
    return OK


@exported
def receive_next(port: int, spins: int) -> int:
    """receive_wait into the buffer of port_room: two arguments are passed faster than five."""
    message = port + PORT_MESSAGE
    room = load(port + PORT_ROOM)
    return receive_wait(port, message, room, load(port + PORT_ROOM_BYTES), spins)


@exported
def take_next(port: int, message: int, spins: int) -> int:
    """take_wait, and the body's length; up to COPIED_BYTES are copied into port_room's buffer."""
    code = take_wait(port, message, spins)
    if code != OK:
        return code
    length = load(message + MESSAGE_LENGTH)
    if length <= min(COPIED_BYTES, load(port + PORT_ROOM_BYTES)):
        copy(load(port + PORT_ROOM), load(message + MESSAGE_BODY), length)
    return length


@exported
def received(port: int) -> int:
    """The address of the message that receive_next has left taken (TOO_SMALL)."""
    return port + PORT_MESSAGE


@exported
def arena_data(port: int) -> int:
    """The address of the arena's data, in which a message's body lies at its offset."""
    return load(port + PORT_DATA)


@exported
def arena_data_bytes(port: int) -> int:
    return load(port + PORT_DATA_BYTES)
