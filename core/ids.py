"""The deduplication log: the last N message ids of a queue, found by a hash of 126 bits.

    buckets   the serial number of the last id in each
    entries   serial s in entry s % N: the hash, and the serial before it in the same bucket

So a bucket is a chain from the newest to the oldest that needs no repair: it ends where the next
serial is no longer among the last N, or its entry is another's by now.

Only who helps tail past a message notes its id, and only while tail stands there (once.py).
Several may do so at once, and one may have been stopped for long: each word is changed by CAS from
what was there while tail stood there, and says by the lap of its serial whose it is.  So all who
are in time write the same, and who is late changes nothing.  The entry is written before the bucket
names it, then the count is moved; who dies in between has left a step that the next one finds done.

A stopped process could mistake a lap for another after exactly 2^21 * N ids.  Two different ids
have the same hash once in 10^33 publishes to a queue that remembers 20,000: at a million a second,
in more time than the universe has had (with 64 bits it would be once in 10^15).  The hash has a key
that is the queue's own and random, so nobody who chooses ids can aim for it.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, fence_acquire, load, load_acquire, store
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    IDS_BEFORE_AT,
    IDS_BUCKET_BYTES,
    IDS_BUCKETS_AT,
    IDS_COUNT_AT,
    IDS_ENTRY_BYTES,
    IDS_LAP_BITS,
    IDS_LAP_MASK,
    IDS_PART_BITS,
    IDS_PART_MASK,
    PORT_HEADER,
    PORT_IDS,
    PORT_IDS_MAX,
    RING_IDS_MADE_AT,
    RING_TAIL_AT,
)


@kernel
def has_ids(port: int) -> int:
    """1 if there is a memory of ids with memory behind it."""
    if load(port + PORT_IDS_MAX) == 0:
        return 0
    return int(load_acquire(load(port + PORT_HEADER) + RING_IDS_MADE_AT) == 1)


@kernel
def ids_bytes(capacity: int) -> int:
    return IDS_BUCKETS_AT + capacity * (IDS_BUCKET_BYTES + IDS_ENTRY_BYTES)


@kernel
def id_bucket_at(port: int, low: int) -> int:
    bucket = low % load(port + PORT_IDS_MAX)
    return load(port + PORT_IDS) + IDS_BUCKETS_AT + bucket * IDS_BUCKET_BYTES


@kernel
def id_entry_at(port: int, serial: int) -> int:
    capacity = load(port + PORT_IDS_MAX)
    entries = load(port + PORT_IDS) + IDS_BUCKETS_AT + capacity * IDS_BUCKET_BYTES
    return entries + (serial % capacity) * IDS_ENTRY_BYTES


@kernel
def lap_of_serial(port: int, serial: int) -> int:
    return (serial // load(port + PORT_IDS_MAX) + 1) & IDS_LAP_MASK


@kernel
def id_word(high: int, low: int, index: int, lap: int) -> int:
    """One of the three words of an entry's hash."""
    if index == 0:
        part = high >> IDS_LAP_BITS
    elif index == 1:
        part = (high & IDS_LAP_MASK) << IDS_LAP_BITS | low >> IDS_PART_BITS
    else:
        part = low & IDS_PART_MASK
    return part << IDS_LAP_BITS | lap


@kernel
def id_search(port: int, high: int, low: int, last: int) -> int:
    """The serial of this id in the chain that begins with `last`, 0 if it is not in the log."""
    serial = last
    for _ in range(load(port + PORT_IDS_MAX)):
        if serial <= 0:
            return 0
        lap = lap_of_serial(port, serial)
        entry = id_entry_at(port, serial)
        # SYNC POINT: id (acquire)
        first = load_acquire(entry)
        if first & IDS_LAP_MASK != lap:  # another's by now: what is older is forgotten too
            return 0
        if first == id_word(high, low, 0, lap):
            second = load_acquire(entry + 8)
            third = load_acquire(entry + 16)
            if second == id_word(high, low, 1, lap) and third == id_word(high, low, 2, lap):
                return serial
        serial = load_acquire(entry + IDS_BEFORE_AT)
    return 0


@exported_cold
def id_find(port: int, high: int, low: int) -> int:
    """The serial number of this id, 0 if it is not in the log."""
    if not has_ids(port):
        return 0
    return id_search(port, high, low, load_acquire(id_bucket_at(port, low)))


@exported_cold
def id_read(port: int, serial: int, into: int) -> int:
    """1, and the two halves of the hash of the id with this serial; 0 if it is forgotten."""
    if not has_ids(port) or serial <= 0:
        return 0
    lap = lap_of_serial(port, serial)
    entry = id_entry_at(port, serial)
    # the first word is written first: if it is of this lap after the others were read, so are they
    second = load_acquire(entry + 8)
    third = load_acquire(entry + 16)
    fence_acquire()
    first = load_acquire(entry)
    if first & IDS_LAP_MASK != lap or second & IDS_LAP_MASK != lap or third & IDS_LAP_MASK != lap:
        return 0
    middle = second >> IDS_LAP_BITS
    store(into, first >> IDS_LAP_BITS << IDS_LAP_BITS | middle >> IDS_LAP_BITS)
    store(into + 8, (middle & IDS_LAP_MASK) << IDS_PART_BITS | third >> IDS_LAP_BITS)
    return 1


@exported_cold
def ids_read(port: int, serial: int, last: int, halves: int, room: int) -> int:
    """id_read of those from this serial to the last one, at most as many as there is room for: how
    many; the serial behind them is in the two halves that follow."""
    count = 0
    while serial <= last and count < room:
        count += id_read(port, serial, halves + 16 * count)
        serial += 1
    store(halves + 16 * count, serial)
    return count


@exported_cold
def id_count(port: int) -> int:
    """How many ids were ever noted: the serial of the last one that is sure to be there."""
    if not has_ids(port):
        return 0
    return load_acquire(load(port + PORT_IDS) + IDS_COUNT_AT)


@kernel
def word_put(address: int, seen: int, wanted: int) -> int:
    """1 if the word is what is wanted, by us or by another; 0 if it has gone on since."""
    if seen == wanted:
        return 1
    found = compare_exchange(address, seen, wanted)
    return int(found in (seen, wanted))


@kernel
def id_note(port: int, high: int, low: int, tail: int) -> int:
    """Remember the id of the message at tail, which counts; 0 if tail has moved."""
    counter = load(port + PORT_IDS) + IDS_COUNT_AT
    bucket = id_bucket_at(port, low)
    count = load_acquire(counter)  # first: whoever moves it has let the bucket name the id before
    last = load_acquire(bucket)
    found = id_search(port, high, low, last)
    if found > count:  # by somebody who has not moved the count yet
        compare_exchange(counter, count, found)
    if found:
        return 1
    serial = count + 1
    lap = lap_of_serial(port, serial)
    entry = id_entry_at(port, serial)
    first = load_acquire(entry)
    second = load_acquire(entry + 8)
    third = load_acquire(entry + 16)
    before = load_acquire(entry + IDS_BEFORE_AT)
    # all of this is of the time when tail stood here, or the next look says that it does not
    fence_acquire()
    if load_acquire(load(port + PORT_HEADER) + RING_TAIL_AT) != tail:
        return 0
    if not word_put(entry, first, id_word(high, low, 0, lap)):
        return 0
    if not word_put(entry + 8, second, id_word(high, low, 1, lap)):
        return 0
    if not word_put(entry + 16, third, id_word(high, low, 2, lap)):
        return 0
    if not word_put(entry + IDS_BEFORE_AT, before, last):
        return 0
    # SYNC POINT: id (release): the entry is complete before the bucket leads to it
    if not word_put(bucket, last, serial):
        return 0
    compare_exchange(counter, count, serial)
    return 1
