"""Origins: exactly once what comes from elsewhere, of any number of senders.

A stream of messages that another broker or a remote program sends has an identity of 128 bits, and
its messages have numbers that rise and may have gaps.  The table of origins says of each stream the
highest number that is in the ring.  It is exact by the rule of producer.py: tail never passes a
numbered message whose number is not in the table.  One participant at a time publishes for an
origin, its owner.  Whoever becomes its owner helps tail to the truth and then asks for the number.

The table is behind the slots, without memory until the first origin comes, and grows.  Entries are
given and taken back under the catalog's lock; one store makes an entry known.

An entry is forgotten when it has no owner (open_number.py): then everything that was published for
it is below tail once that is at the truth.  The next origin in the entry gets another generation,
in the word with the number, so that the CAS of a helper that was stopped for long fails.  What
readers of a journal find of a former origin is told by its position, which is below `from`.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    compare_exchange,
    fence_acquire,
    fetch_add,
    load,
    load_acquire,
    store,
    store_release,
)
from shmbroker.core.codes import INVALID, OK
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.layout import (
    ORIGIN_BYTES,
    ORIGIN_COUNTED,
    ORIGIN_FREE,
    ORIGIN_FROM_AT,
    ORIGIN_GENERATION,
    ORIGIN_HIGH_AT,
    ORIGIN_KEPT_AT,
    ORIGIN_KNOWN,
    ORIGIN_LOW_AT,
    ORIGIN_NUMBER_AT,
    ORIGIN_NUMBER_BITS,
    ORIGIN_OWNER_AT,
    ORIGIN_STATE_AT,
    ORIGIN_USED_AT,
    OWNER_MASK,
    PORT_HEADER,
    PORT_ORIGINS,
    PORT_ORIGINS_MAX,
    PRODUCERS,
    RING_ORIGINS_MADE_AT,
    RING_ORIGINS_PASSED_AT,
    SEQUENCE_MASK,
)


@kernel
def origins_end(port: int) -> int:
    """Entries up to this one, not included, have memory behind them."""
    if load(port + PORT_ORIGINS_MAX) == 0:
        return PRODUCERS
    made = load_acquire(load(port + PORT_HEADER) + RING_ORIGINS_MADE_AT)
    return PRODUCERS + max(0, min(made, load(port + PORT_ORIGINS_MAX)))


@kernel
def entry_of_origin(port: int, origin: int) -> int:
    return load(port + PORT_ORIGINS) + (origin - PRODUCERS) * ORIGIN_BYTES


@cold
def origin_number_at(port: int, origin: int) -> int:
    """Where the number of this origin is, 0 if there is no such entry."""
    if origin < PRODUCERS or origin >= origins_end(port):
        return 0
    return entry_of_origin(port, origin) + ORIGIN_NUMBER_AT


@kernel
def is_origin(entry: int) -> int:
    return load_acquire(entry + ORIGIN_STATE_AT) & ORIGIN_KNOWN


@exported_cold
def origin_find(port: int, high: int, low: int) -> int:
    """The entry of the origin with this identity, 0 if it is not known."""
    for origin in range(PRODUCERS, origins_end(port)):
        entry = entry_of_origin(port, origin)
        if is_origin(entry):
            if load(entry + ORIGIN_LOW_AT) == low and load(entry + ORIGIN_HIGH_AT) == high:
                return origin
    return 0


@exported_cold
def origin_unused(port: int) -> int:
    """An entry that is nobody's, 0 if there is none."""
    for origin in range(PRODUCERS, origins_end(port)):
        if load_acquire(entry_of_origin(port, origin) + ORIGIN_STATE_AT) == ORIGIN_FREE:
            return origin
    return 0


@exported_cold
def origin_tell(port: int, origin: int, told: int) -> int:
    """Identity, number, owner, and when it was used: 1; 0, nobody's entry; INVALID, there is none.

    Exact if tail was at the truth."""
    if origin < PRODUCERS or origin >= origins_end(port):
        return INVALID
    entry = entry_of_origin(port, origin)
    if not is_origin(entry):
        return 0
    number = load_acquire(entry + ORIGIN_NUMBER_AT)
    store(told, load(entry + ORIGIN_HIGH_AT))
    store(told + 8, load(entry + ORIGIN_LOW_AT))
    store(told + 16, number & SEQUENCE_MASK)
    store(told + 24, load(entry + ORIGIN_OWNER_AT) & OWNER_MASK)
    store(told + 32, load(entry + ORIGIN_USED_AT))
    fence_acquire()
    generation = load_acquire(entry + ORIGIN_NUMBER_AT) & ~SEQUENCE_MASK
    return int(generation == number & ~SEQUENCE_MASK)


@kernel
def number_begins(entry: int, last: int) -> int:
    """The word with the number of an entry that another origin gets."""
    generation = (load(entry + ORIGIN_NUMBER_AT) & ~SEQUENCE_MASK) + ORIGIN_GENERATION
    return generation & ORIGIN_NUMBER_BITS | last


@exported_cold
def origin_begin(
    port: int, origin: int, high: int, low: int, tail: int, last: int, counted: int
) -> int:
    """This entry is this origin's from the position `tail` on, and its last number is `last`.

    `counted`: each number comes; one that is left out stays open."""
    if origin < PRODUCERS or origin >= origins_end(port):
        return INVALID
    entry = entry_of_origin(port, origin)
    store_release(entry + ORIGIN_NUMBER_AT, number_begins(entry, last & SEQUENCE_MASK))
    store(entry + ORIGIN_HIGH_AT, high)
    store(entry + ORIGIN_LOW_AT, low)
    store(entry + ORIGIN_FROM_AT, tail)
    store(entry + ORIGIN_OWNER_AT, 0)
    store(entry + ORIGIN_KEPT_AT, -1)
    store_release(entry + ORIGIN_STATE_AT, ORIGIN_COUNTED if counted else ORIGIN_KNOWN)
    return OK


@exported_cold
def origin_keep(port: int, origin: int, kept_ns: int) -> int:
    """How long it is remembered when nobody uses it; for its owner."""
    if origin < PRODUCERS or origin >= origins_end(port):
        return INVALID
    store(entry_of_origin(port, origin) + ORIGIN_KEPT_AT, kept_ns)
    return OK


@exported_cold
def origin_is_counted(port: int, origin: int) -> int:
    if origin < PRODUCERS or origin >= origins_end(port):
        return 0
    state = load_acquire(entry_of_origin(port, origin) + ORIGIN_STATE_AT)
    return int(state == ORIGIN_COUNTED)


@exported_cold
def origin_owner(port: int, origin: int) -> int:
    """Who publishes for it, 0 nobody; INVALID if there is no such entry."""
    if origin < PRODUCERS or origin >= origins_end(port):
        return INVALID
    return load_acquire(entry_of_origin(port, origin) + ORIGIN_OWNER_AT) & OWNER_MASK


@exported_cold
def origin_own(port: int, origin: int, former: int, owner: int, now_ns: int) -> int:
    """Its owner was the former and is now the other, 0 for nobody: 1, or 0 if it was not."""
    if origin < PRODUCERS or origin >= origins_end(port):
        return 0
    entry = entry_of_origin(port, origin)
    store(entry + ORIGIN_USED_AT, now_ns)
    return int(compare_exchange(entry + ORIGIN_OWNER_AT, former, owner) == former)


@exported_cold
def origin_pass(port: int, origin: int, sequence: int) -> int:
    """Numbers up to this one are known, whether messages had them or not; for its owner."""
    address = origin_number_at(port, origin)
    if address == 0:
        return INVALID
    last = load_acquire(address)
    while last & SEQUENCE_MASK < sequence:
        seen = compare_exchange(address, last, last & ~SEQUENCE_MASK | sequence)
        if seen == last:
            # the journaler is to look: no message tells it
            fetch_add(load(port + PORT_HEADER) + RING_ORIGINS_PASSED_AT, 1)
            return OK
        last = seen
    return OK


@cold
def origins_repair(port: int, alive: int) -> int:
    """The dead own none; how many they had."""
    repaired = 0
    for origin in range(PRODUCERS, origins_end(port)):
        address = entry_of_origin(port, origin) + ORIGIN_OWNER_AT
        owner = load_acquire(address)
        if owner == 0 or (load(alive + ((owner & OWNER_MASK) >> 6) * 8) >> (owner & 63)) & 1:
            continue
        repaired += int(compare_exchange(address, owner, 0) == owner)
    return repaired
