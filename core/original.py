"""Reading originals without gates: what came, and what is done with, as they stood at one moment.

A reader without a gate may be too late: what it has not copied when head passes is gone.  Then it
is done with, which the next moment tells.  Only a transaction could be seen in half by that, if one
was committed between the moment and the copy: so such a moment is not whole, and the reader shows
nothing before one is.

What is done with is looked for in all of a queue at each moment, as far as it may be above head:
whoever reads a long queue does so less often.
"""

from __future__ import annotations

from shmbroker.core.atomics import copy, fill, load, load_acquire, store
from shmbroker.core.codes import EMPTY, GONE, OK, TOO_SMALL
from shmbroker.core.commit import commit_counted
from shmbroker.core.cursor import cursor_copy_whole
from shmbroker.core.head import head_load
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    CURSOR_PORT,
    CURSOR_POSITION,
    MESSAGE_BODY,
    MESSAGE_CHUNK,
    MESSAGE_LENGTH,
    MESSAGE_POSITION,
    ORIGINAL_BITS,
    ORIGINAL_CURSOR,
    ORIGINAL_END,
    ORIGINAL_HEAD,
    ORIGINAL_LENGTH,
    ORIGINAL_NUMBER,
    ORIGINAL_TOLD_BITS,
    ORIGINAL_TOLD_END,
    ORIGINAL_TOLD_HEAD,
    ORIGINAL_TOLD_LENGTH,
    ORIGINALS_AT,
    ORIGINALS_COMMITTED,
    ORIGINALS_COUNT,
    ORIGINALS_TRANSACTIONS,
    PORT_BARRIER,
    PORT_SLOT_MASK,
    POSITION_MASK,
    READING_AT,
    READING_DAMAGED,
    READING_LATE,
    READING_LEFT,
    READING_MESSAGE,
    READING_MESSAGES,
    READING_NEEDED,
    READING_POSITION,
    READING_RECORDS,
    RECORD_HEAD_BYTES,
    RECORD_IS_MESSAGE,
    RECORD_KIND_SHIFT,
    RECORD_LENGTH_AT,
    RECORD_QUEUE_AT,
    RECORD_STANDS,
    RECORD_WHERE_AT,
)
from shmbroker.core.reclaim import reclaim
from shmbroker.core.record import record_bytes
from shmbroker.core.retired import is_retired, retired_are_same, retired_look
from shmbroker.core.tail import true_tail

LEAST_ROOM = 4096
"""Of a batch: less is not begun."""


# --- the moment -----------------------------------------------------------------------------------


@exported_cold
def original_end(port: int) -> int:
    """Up to where others may have it: of a durable queue what is confirmed."""
    barrier = load(port + PORT_BARRIER)
    return load_acquire(barrier) & POSITION_MASK if barrier else true_tail(port)


@kernel
def original_look(original: int, end: int) -> int:
    """See what is done with."""
    port = load(original + ORIGINAL_CURSOR + CURSOR_PORT)
    while reclaim(port) > 0:
        pass
    head = head_load(port)
    store(original + ORIGINAL_HEAD, head)
    if end - head > load(port + PORT_SLOT_MASK) + 1:
        end = head
    length = retired_look(port, head, end, load(original + ORIGINAL_BITS))
    return store(original + ORIGINAL_LENGTH, length)


@exported_cold
def originals_see(originals: int) -> int:
    """While no transaction is half way: how all of them stand.

    What is done with, then the end: what has replaced a message, or was made of it, is below it.
    """
    counted = commit_counted(load(originals + ORIGINALS_TRANSACTIONS))
    store(originals + ORIGINALS_COMMITTED, counted)
    for index in range(load(originals + ORIGINALS_COUNT)):
        original = load(originals + ORIGINALS_AT + 8 * index)
        end = original_end(load(original + ORIGINAL_CURSOR + CURSOR_PORT))
        if end < 0:
            return end
        original_look(original, end)
    for index in range(load(originals + ORIGINALS_COUNT)):
        original = load(originals + ORIGINALS_AT + 8 * index)
        end = original_end(load(original + ORIGINAL_CURSOR + CURSOR_PORT))
        if end < 0:
            return end
        store(original + ORIGINAL_END, end)
    return OK


# --- records --------------------------------------------------------------------------------------


@kernel
def record_write(reading: int, original: int, kind: int, position: int, length: int) -> int:
    """The head of a record whose body is there; go on behind it."""
    at, taken = load(reading + READING_AT), record_bytes(length)
    store(at, 0)
    store(at + RECORD_LENGTH_AT, length)
    store(at + RECORD_QUEUE_AT, load(original + ORIGINAL_NUMBER))
    store(at + RECORD_WHERE_AT, position | kind << RECORD_KIND_SHIFT)
    fill(at + RECORD_HEAD_BYTES + length, 0, taken - RECORD_HEAD_BYTES - length)
    store(reading + READING_AT, at + taken)
    store(reading + READING_LEFT, load(reading + READING_LEFT) - taken)
    return store(reading + READING_RECORDS, load(reading + READING_RECORDS) + 1)


@kernel
def no_room(reading: int, length: int) -> int:
    store(reading + READING_NEEDED, record_bytes(length))
    return TOO_SMALL


@kernel
def message_write(reading: int, original: int) -> int:
    """The message at the cursor, if it is there still; EMPTY behind the moment, DAMAGED."""
    cursor, message = original + ORIGINAL_CURSOR, reading + READING_MESSAGE
    position = load(cursor + CURSOR_POSITION)
    room = load(reading + READING_LEFT) - RECORD_HEAD_BYTES
    body = load(reading + READING_AT) + RECORD_HEAD_BYTES
    length = cursor_copy_whole(cursor, message, body, room)
    if length == TOO_SMALL:
        end = load(message + MESSAGE_BODY) + load(message + MESSAGE_LENGTH)
        return no_room(reading, end - load(message + MESSAGE_CHUNK))
    if length == GONE:
        store(reading + READING_LATE, 1)
        return OK
    if length < 0:
        store(reading + READING_DAMAGED, load(original + ORIGINAL_NUMBER))
        store(reading + READING_POSITION, position)
        return length
    position = load(message + MESSAGE_POSITION)
    if position >= load(original + ORIGINAL_END):  # others were passed over
        store(cursor + CURSOR_POSITION, load(original + ORIGINAL_END))
        return EMPTY
    record_write(reading, original, RECORD_IS_MESSAGE, position, length)
    store(reading + READING_MESSAGES, load(reading + READING_MESSAGES) + 1)
    return OK


@kernel
def messages_write(reading: int, original: int) -> int:
    """All that came and is not done with; each call goes on where the last one has ended."""
    at = original + ORIGINAL_CURSOR + CURSOR_POSITION
    head, end = load(original + ORIGINAL_HEAD), load(original + ORIGINAL_END)
    bits, length = load(original + ORIGINAL_BITS), load(original + ORIGINAL_LENGTH)
    store(at, max(load(at), head))
    code = OK
    while code == OK and load(at) < end:
        if is_retired(load(at), head, bits, length):
            store(at, load(at) + 1)
        elif load(reading + READING_LEFT) < LEAST_ROOM and load(reading + READING_RECORDS) > 0:
            code = no_room(reading, LEAST_ROOM)
        else:
            code = message_write(reading, original)
    return OK if code == EMPTY else code


@kernel
def is_told(original: int) -> int:
    """1 if the reader knows how it stands."""
    length = load(original + ORIGINAL_LENGTH)
    if load(original + ORIGINAL_TOLD_END) != load(original + ORIGINAL_END):
        return 0
    if load(original + ORIGINAL_TOLD_HEAD) != load(original + ORIGINAL_HEAD):
        return 0
    if load(original + ORIGINAL_TOLD_LENGTH) != length:
        return 0
    told = load(original + ORIGINAL_TOLD_BITS)
    return retired_are_same(load(original + ORIGINAL_BITS), told, length)


@kernel
def stands_write(reading: int, original: int) -> int:
    """The reader is told each change, and once how it stands at all."""
    if is_told(original):
        return OK
    bits, length = load(original + ORIGINAL_BITS), load(original + ORIGINAL_LENGTH)
    head, end = load(original + ORIGINAL_HEAD), load(original + ORIGINAL_END)
    if record_bytes(8 + length) > load(reading + READING_LEFT):
        return no_room(reading, 8 + length)
    body = load(reading + READING_AT) + RECORD_HEAD_BYTES
    store(body, end)
    copy(body + 8, bits, length)
    copy(load(original + ORIGINAL_TOLD_BITS), bits, length)
    store(original + ORIGINAL_TOLD_LENGTH, length)
    store(original + ORIGINAL_TOLD_HEAD, head)
    store(original + ORIGINAL_TOLD_END, end)
    record_write(reading, original, RECORD_STANDS, head, 8 + length)
    return OK


@exported_cold
def originals_write(originals: int, reading: int) -> int:
    """The rest of the moment, as records: OK, all of it; TOO_SMALL: there is no room for more.

    DAMAGED: it goes on behind that message when it is called again.
    """
    code = OK
    for index in range(load(originals + ORIGINALS_COUNT)):
        if code == OK:
            code = messages_write(reading, load(originals + ORIGINALS_AT + 8 * index))
    for index in range(load(originals + ORIGINALS_COUNT)):
        if code == OK:
            code = stands_write(reading, load(originals + ORIGINALS_AT + 8 * index))
    return code
