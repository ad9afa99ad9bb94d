"""What programs call on a port where they may wait: publishing.py and taking.py, tried again.

Waiting here is spinning: *_wait looks so many times and then says EMPTY or FULL, so that the caller
can yield, sleep or give up.
"""

from __future__ import annotations

from shmbroker.core.atomics import copy, load, pause, store
from shmbroker.core.codes import (
    EMPTY,
    FULL,
    INVALID,
    OK,
)
from shmbroker.core.cursor import cursor_copy, cursor_next
from shmbroker.core.head import head_load
from shmbroker.core.kernel import exported, exported_cold
from shmbroker.core.layout import (
    COPIED_BYTES,
    MESSAGE_BODY,
    MESSAGE_LENGTH,
    PORT_DATA,
    PORT_DATA_BYTES,
    PORT_HEAD_SEEN,
    PORT_MESSAGE,
    PORT_ROOM,
    PORT_ROOM_BYTES,
)
from shmbroker.ipc.ring.publishing import publish, publish_chunk
from shmbroker.ipc.ring.taking import receive, receive_many, take

ROOM_PAUSES = 32


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
