"""Numbered producers: what makes publishing again safe after a crash.

A producer that joins with an identity numbers its messages.  The table keeps the last number that
each has published.  The rule that makes it exact: *tail never passes a numbered message whose
number is not in the table.*  The producer writes its own number before it moves tail; whoever
helps tail past somebody else's message notes the number first.  So after tail has been helped to
the truth, the table is the truth, at the price of one store to a private line per publish.

An origin is the same for what comes from elsewhere (origin.py): its entry is in a table of its own.
A number below its last one is a retry, and closes an open number (open_number.py).

A named producer says its numbers itself, and two processes may have the same name: its messages are
ONCE (once.py), and its number is noted by whoever helps tail past them, itself included.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    compare_exchange,
    fence_acquire,
    load,
    load_acquire,
    store_release,
)
from shmbroker.core.chunk import chunk_address
from shmbroker.core.codes import INVALID, OK
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.layout import (
    CHUNK_ORIGIN_AT,
    ORIGIN_PRODUCER_SHIFT,
    PORT_HEADER,
    PORT_PRODUCER,
    PRODUCER_BYTES,
    PRODUCER_IDENTITY_AT,
    PRODUCER_SEQUENCE_AT,
    PRODUCERS,
    RING_PRODUCERS_AT,
    RING_TAIL_AT,
    SEQUENCE_MASK,
    SERIES_KEPT,
)
from shmbroker.core.open_number import number_close
from shmbroker.core.origin import origin_number_at
from shmbroker.core.word import word_chunk


@kernel
def producer_at(port: int, producer: int) -> int:
    return load(port + PORT_HEADER) + RING_PRODUCERS_AT + producer * PRODUCER_BYTES


@kernel
def number_at(port: int, producer: int) -> int:
    """Where the last number of a producer or an origin is, 0 if there is none such."""
    if producer >= PRODUCERS:
        return origin_number_at(port, producer)
    if producer <= 0:
        return 0
    return producer_at(port, producer) + PRODUCER_SEQUENCE_AT


@exported_cold
def producer_find(port: int, identity: int) -> int:
    """The index of the producer with this identity, taking a free entry if need be; 0 if full."""
    for producer in range(1, PRODUCERS - SERIES_KEPT):
        address = producer_at(port, producer) + PRODUCER_IDENTITY_AT
        seen = load_acquire(address)
        if seen == 0:
            seen = compare_exchange(address, 0, identity)
            if seen == 0:
                return producer
        if seen == identity:
            return producer
    return 0


@kernel
def own_sequence_note(port: int, sequence: int) -> int:
    """Called between our publish and our move of tail."""
    producer = load(port + PORT_PRODUCER)
    if producer == 0:
        return 0
    address = number_at(port, producer)
    last = load(address)
    if producer >= PRODUCERS and last & SEQUENCE_MASK >= sequence:
        number_close(port, last & ~SEQUENCE_MASK | producer, sequence)
        return producer
    # SYNC POINT: sequence (release): whoever sees tail moved on sees the number too
    store_release(address, last & ~SEQUENCE_MASK | sequence)
    return producer


@kernel
def is_noted(port: int, producer: int, sequence: int) -> int:
    """1 if this producer has published this number, or one above it."""
    if producer <= 0 or producer >= PRODUCERS:
        return 0
    last = load_acquire(producer_at(port, producer) + PRODUCER_SEQUENCE_AT)
    return int(last & SEQUENCE_MASK >= sequence)


@kernel
def sequence_raise(target: int, last: int, sequence: int) -> int:
    """Note a number where this one was noted last; it never becomes less."""
    while last & SEQUENCE_MASK < sequence:
        # SYNC POINT: sequence (release): whoever sees tail moved on sees the number too
        seen = compare_exchange(target, last, last & ~SEQUENCE_MASK | sequence)
        if seen == last:
            break
        if (seen ^ last) & ~SEQUENCE_MASK:  # the entry is another origin's: tail is far ahead
            return 0
        last = seen
    return 1


@exported_cold
def producer_raise(port: int, producer: int, sequence: int) -> int:
    """This producer has published this number elsewhere, or one above it."""
    address = number_at(port, producer)
    if address == 0:
        return INVALID
    sequence_raise(address, load_acquire(address), sequence & SEQUENCE_MASK)
    return OK


@cold
def sequence_note(port: int, word: int, tail: int) -> int:
    """Note the number of the message at tail before helping tail past it; 0 if tail has moved."""
    address = chunk_address(port, word_chunk(word))
    if address == 0:
        return 1
    origin = load(address + CHUNK_ORIGIN_AT)
    producer = origin >> ORIGIN_PRODUCER_SHIFT
    sequence = origin & SEQUENCE_MASK
    target = number_at(port, producer)
    if target == 0:
        return 1
    last = load_acquire(target)
    # the chunk is only certain to be this message while tail has not passed it: look again
    fence_acquire()
    if load_acquire(load(port + PORT_HEADER) + RING_TAIL_AT) != tail:
        return 0
    if producer >= PRODUCERS and last & SEQUENCE_MASK >= sequence:
        number_close(port, last & ~SEQUENCE_MASK | producer, sequence)
        return 1
    return sequence_raise(target, last, sequence)
