"""Histograms of times: HDR buckets, counted by many without waiting for each other.

A bucket is as wide as the precision asks for: a power of two is divided into so many buckets that
each value is known to that many decimal digits (Gil Tene's HdrHistogram; the same bucket for the
same value).

     value | mask      highest bit, minus that of mask = how far to shift: s
     index = (s << half) + (value >> (s + unit))

Whoever counts has a stripe of counts for itself, so that counting is a plain load and store of a
line that nobody else writes.  The first stripe is for those that found none: they add atomically.
Readers sum all stripes; no count ever becomes less.

    claim      FREE -> owner    CAS
    release    owner -> FREE    CAS, after the last count: by the owner, or once it is proven dead

So a stripe has one writer at any time, and the next one goes on where the former has stopped; who
is killed loses at most the count that it was about to store.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    compare_exchange,
    fetch_add,
    highest_bit,
    load,
    load_acquire,
    store,
    store_release,
)
from shmbroker.core.codes import INVALID, NOT_A_SEGMENT, OK, OTHER_VERSION, TRUNCATED
from shmbroker.core.kernel import exported, exported_cold, kernel
from shmbroker.core.layout import (
    DIGITS_MAX,
    HIGHEST_NS_MAX,
    HISTOGRAMS_ARENA_AT,
    HISTOGRAMS_BYTES_AT,
    HISTOGRAMS_COUNTS_AT,
    HISTOGRAMS_DIGITS_AT,
    HISTOGRAMS_HIGHEST_AT,
    HISTOGRAMS_LOWEST_AT,
    HISTOGRAMS_MAGIC,
    HISTOGRAMS_MAGIC_AT,
    HISTOGRAMS_QUEUE_AT,
    HISTOGRAMS_STRIPES_AT,
    HISTOGRAMS_VERSION_AT,
    KINDS,
    KINDS_COMMITTED,
    LAYOUT_VERSION,
    PAGE_BYTES,
    PAIR_BYTES,
    RECORDING_COUNTS,
    RECORDING_HALF,
    RECORDING_LENGTH,
    RECORDING_SHARED,
    RECORDING_UNIT,
    STRIPE_COMMITTED_AT,
    STRIPE_OWNER_AT,
    STRIPES,
)

# --- buckets --------------------------------------------------------------------------------------


@kernel
def half_of(digits: int) -> int:
    """The exponent of half the buckets of a power of two: at least 10 ** digits of them."""
    steps = 1
    for _ in range(digits):
        steps *= 10
    return highest_bit(steps) + 1


@exported
def histogram_length(lowest: int, highest: int, digits: int) -> int:
    """How many buckets there are for this range and precision; INVALID if there can be none."""
    if lowest < 1 or lowest > HIGHEST_NS_MAX:
        return INVALID
    if highest < 2 * lowest or highest > HIGHEST_NS_MAX:
        return INVALID
    if digits < 1 or digits > DIGITS_MAX:
        return INVALID
    half = half_of(digits)
    beyond = 2 << (half + highest_bit(lowest))
    shifts = 1
    while beyond <= highest:
        beyond <<= 1
        shifts += 1
    return (shifts + 1) << half


@kernel
def bucket_index(recording: int, value: int) -> int:
    """Which count this value is one of; what is in no bucket comes after the last."""
    unit = load(recording + RECORDING_UNIT)
    half = load(recording + RECORDING_HALF)
    length = load(recording + RECORDING_LENGTH)
    if value < 0:
        return length
    shift = highest_bit(value | (2 << half) - 1 << unit) - (half + unit)
    return min((shift << half) + (value >> (shift + unit)), length)


@exported
def histogram_lowest(lowest: int, digits: int, index: int) -> int:
    """The lowest value of a bucket; the highest is one less than the lowest of the next.

    Of a range that there can be: see histogram_length.
    """
    half = half_of(digits)
    shift = max(0, (index >> half) - 1)
    return index - (shift << half) << (shift + highest_bit(lowest))


# --- the segment ----------------------------------------------------------------------------------


@exported
def histogram_bytes(length: int) -> int:
    """What the counts of one kind take in a stripe."""
    return (length + 1) * 8 + PAGE_BYTES - 1 & -PAGE_BYTES


@exported
def stripe_bytes(length: int) -> int:
    return KINDS * histogram_bytes(length)


@exported
def histograms_bytes(lowest: int, highest: int, digits: int) -> int:
    """How large a segment of histograms is, INVALID if there can be none."""
    length = histogram_length(lowest, highest, digits)
    if length < 0:
        return INVALID
    return HISTOGRAMS_COUNTS_AT + STRIPES * stripe_bytes(length)


@kernel
def stripe_word(histograms: int, stripe: int) -> int:
    return histograms + HISTOGRAMS_STRIPES_AT + stripe * PAIR_BYTES


@exported
def histograms_format(
    histograms: int, lowest: int, highest: int, digits: int, queue: int, identity: int
) -> int:
    """Make histograms in zeroed memory; their magic is written last."""
    size = histograms_bytes(lowest, highest, digits)
    if size < 0:
        return INVALID
    store(histograms + HISTOGRAMS_VERSION_AT, LAYOUT_VERSION)
    store(histograms + HISTOGRAMS_BYTES_AT, size)
    store(histograms + HISTOGRAMS_ARENA_AT, identity)
    store(histograms + HISTOGRAMS_QUEUE_AT, queue)
    store(histograms + HISTOGRAMS_LOWEST_AT, lowest)
    store(histograms + HISTOGRAMS_HIGHEST_AT, highest)
    store(histograms + HISTOGRAMS_DIGITS_AT, digits)
    store(stripe_word(histograms, 0) + STRIPE_COMMITTED_AT, KINDS_COMMITTED)
    store_release(histograms + HISTOGRAMS_MAGIC_AT, HISTOGRAMS_MAGIC)
    return OK


@exported
def histograms_check(histograms: int, size: int, queue: int, identity: int) -> int:
    """OK if this memory of size bytes holds the histograms of this queue."""
    if size < HISTOGRAMS_COUNTS_AT or load_acquire(histograms) != HISTOGRAMS_MAGIC:
        return NOT_A_SEGMENT
    if load(histograms + HISTOGRAMS_VERSION_AT) != LAYOUT_VERSION:
        return OTHER_VERSION
    wanted = histograms_bytes(
        load(histograms + HISTOGRAMS_LOWEST_AT),
        load(histograms + HISTOGRAMS_HIGHEST_AT),
        load(histograms + HISTOGRAMS_DIGITS_AT),
    )
    if wanted < 0 or load(histograms + HISTOGRAMS_BYTES_AT) != wanted:
        return NOT_A_SEGMENT
    if load(histograms + HISTOGRAMS_QUEUE_AT) != queue:
        return NOT_A_SEGMENT
    if load(histograms + HISTOGRAMS_ARENA_AT) != identity:
        return NOT_A_SEGMENT
    return OK if size >= wanted else TRUNCATED


# --- stripes --------------------------------------------------------------------------------------


@exported_cold
def stripe_claim(histograms: int, owner: int) -> int:
    """A stripe that is ours alone from now on; 0, which is everybody's, if all are taken."""
    for stripe in range(1, STRIPES):
        address = stripe_word(histograms, stripe) + STRIPE_OWNER_AT
        if load(address) == 0:
            # SYNC POINT: stripe (acquire): we count on from what its former owner has counted
            if compare_exchange(address, 0, owner) == 0:
                return stripe
    return 0


@exported_cold
def stripe_release(histograms: int, stripe: int, owner: int) -> int:
    """Nobody counts in it any more: others may."""
    address = stripe_word(histograms, stripe) + STRIPE_OWNER_AT
    # SYNC POINT: stripe (release): our counts come before those of the next owner
    return int(compare_exchange(address, owner, 0) == owner)


@exported_cold
def stripes_release(histograms: int, dead: int) -> int:
    """This participant does not count any more: how many stripes it had."""
    released = 0
    for stripe in range(1, STRIPES):
        if load(stripe_word(histograms, stripe) + STRIPE_OWNER_AT) == dead:
            released += stripe_release(histograms, stripe, dead)
    return released


@exported
def recording_open(
    recording: int, counts: int, is_shared: int, lowest: int, highest: int, digits: int
) -> int:
    """Count in the stripe at this address; INVALID if there can be no such histogram."""
    length = histogram_length(lowest, highest, digits)
    if length < 0:
        return INVALID
    store(recording + RECORDING_COUNTS, counts)
    store(recording + RECORDING_SHARED, is_shared)
    store(recording + RECORDING_UNIT, highest_bit(lowest))
    store(recording + RECORDING_HALF, half_of(digits))
    store(recording + RECORDING_LENGTH, length)
    return OK


@exported
def record(recording: int, kind: int, value: int) -> int:
    """Count a value: its bucket."""
    index = bucket_index(recording, value)
    at = kind * histogram_bytes(load(recording + RECORDING_LENGTH)) + index * 8
    address = load(recording + RECORDING_COUNTS) + at
    if load(recording + RECORDING_SHARED):
        fetch_add(address, 1)
    else:
        store_release(address, load(address) + 1)  # nobody else writes it; readers see whole words
    return index


# --- reading --------------------------------------------------------------------------------------


@exported
def counts_add(counts: int, length: int, sums: int) -> int:
    """Add what a stripe has counted of one kind; the count of what is in no bucket comes last."""
    for index in range(length + 1):
        store(sums + index * 8, load(sums + index * 8) + load_acquire(counts + index * 8))
    return length


@exported
def counts_since(sums: int, before: int, length: int, indexes: int, counts: int) -> int:
    """Where and by how much counts have grown: how many have.  Nothing is less than before."""
    grown = 0
    for index in range(length):
        more = load(sums + index * 8) - load(before + index * 8)
        if more != 0:
            store(indexes + grown * 8, index)
            store(counts + grown * 8, more)
            grown += 1
    return grown
