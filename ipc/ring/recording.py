"""How long messages wait and are held: noted when taken, counted when acknowledged.

Taking only writes a count of cycles into the message's slot, because a consumer waits for the
message.  The rest is done when it is acknowledged.  So each message is counted once, however often
it was delivered.  A consumer that is killed counts at most one that another counts again.

Reading the cycle counter is most of the cost, so one message in 2, 4, 8 ... may stand for all.  Its
position decides, mixed, so that no pattern of the program's (each batch's first) is preferred.

The word that says whether times are recorded is in the line of take, which whoever takes has looked
at just now; whoever acknowledges looks at the slot, whose word it is about to change.
"""

from __future__ import annotations

from shmbroker.core.atomics import cycles, load, load_acquire, store
from shmbroker.core.codes import OK
from shmbroker.core.histogram import record
from shmbroker.core.kernel import cold, exported, kernel
from shmbroker.core.layout import (
    CHUNK_PUBLISHED_AT,
    CLOCK_BASE,
    CLOCK_CYCLES,
    CLOCK_FACTOR,
    CLOCK_WINDOW,
    MESSAGE_CHUNK,
    MESSAGE_POSITION,
    MESSAGE_SHIFT,
    MESSAGE_WORD,
    PORT_HEADER,
    PORT_RECORDING,
    PUBLISH_TAKE,
    RECORDING_NUMBER,
    RING_RECORDING_AT,
    RING_SAMPLE_AT,
    SLOT_TAKEN_AT,
    TAKE_ACK,
)
from shmbroker.core.word import slot_at
from shmbroker.ipc.base.system import system_recorder

CLOCK_ERROR_NS = 10_000
"""The clocks of two ports may differ by this, at most: a time is not below 0 because of it."""

LOW_BITS = 20

SPREAD = 0x9E3779B1
"""Multiples of it, from the shift on, are as even as random bits: Fibonacci hashing."""

SPREAD_SHIFT = 16


@kernel
def is_recorded(port: int) -> int:
    return load(load(port + PORT_HEADER) + RING_RECORDING_AT)


@exported
def is_in_sample(position: int, sample: int) -> int:
    """Of a ring whose RING_SAMPLE_AT is this: 1 if the times of this message are recorded."""
    mixed = position * SPREAD >> SPREAD_SHIFT
    return int(mixed & sample == 0)


@kernel
def is_sampled(port: int, position: int) -> int:
    return is_in_sample(position, load(load(port + PORT_HEADER) + RING_SAMPLE_AT))


@kernel
def note_taken(port: int, messages: int, count: int) -> int:
    """These were taken just now.

    A stop in here, and the end of the lease meanwhile, may give the next holder a wrong time.
    """
    now = 0
    for index in range(count):
        position = load(messages + (index << MESSAGE_SHIFT) + MESSAGE_POSITION)
        taken = 0  # whoever had the slot before may not have acknowledged
        if is_sampled(port, position):
            if now == 0:
                now = cycles()
            taken = now
        store(slot_at(port, position) + SLOT_TAKEN_AT, taken)
    return now


@kernel
def nanoseconds(recording: int, passed: int) -> int:
    """How long so many cycles take, up to days of them; below 0 if they are."""
    factor = load(recording + CLOCK_FACTOR)
    low = (passed & (1 << LOW_BITS) - 1) * factor >> 32
    return ((passed >> LOW_BITS) * factor >> 32 - LOW_BITS) + low


@exported
def count_time(recording: int, kind: int, time: int) -> int:
    if time < 0 and time > -CLOCK_ERROR_NS:
        time = 0
    return record(recording, kind, time)


@cold
def count_acked(port: int, messages: int, count: int) -> int:
    """Of those that are still ours: an acknowledgement that comes too late is none."""
    recording = load(port + PORT_RECORDING)
    number = is_recorded(port)
    now = cycles()
    if number != 0 and recording != 0:
        since = now - load(recording + CLOCK_CYCLES)
        is_known = since >= 0 and since < load(recording + CLOCK_WINDOW)
        if not is_known or load(recording + RECORDING_NUMBER) != number:
            if system_recorder(recording) != OK:
                recording = 0
            now = cycles()
    else:
        recording = 0
    for index in range(count):
        message = messages + (index << MESSAGE_SHIFT)
        slot = slot_at(port, load(message + MESSAGE_POSITION))
        taken = load(slot + SLOT_TAKEN_AT)
        if taken == 0 or load_acquire(slot) != load(message + MESSAGE_WORD):
            continue
        store(slot + SLOT_TAKEN_AT, 0)
        if recording == 0:
            continue
        count_time(recording, TAKE_ACK, nanoseconds(recording, now - taken))
        published = load(load(message + MESSAGE_CHUNK) + CHUNK_PUBLISHED_AT)
        if published != 0:
            since = nanoseconds(recording, taken - load(recording + CLOCK_CYCLES))
            count_time(recording, PUBLISH_TAKE, load(recording + CLOCK_BASE) + since - published)
    return count


@kernel
def note_acked(port: int, messages: int, count: int) -> int:
    """These are about to be acknowledged; of a single one the slot says whether it is recorded."""
    if count == 1:
        if load(slot_at(port, load(messages + MESSAGE_POSITION)) + SLOT_TAKEN_AT):
            count_acked(port, messages, 1)
    elif is_recorded(port):
        count_acked(port, messages, count)
    return count
