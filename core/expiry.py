"""The hint of expiry: a time before which no message of a ring is to leave it.

0: none is.  Expired messages leave at a search, also those behind others (ipc/queue/expiry.c); the
hint makes looking cost nothing while there are none.

    publish, give back           search
    1. the CAS that does it      1. expiry_begin: the exact hint that was seen, to 0
    2. expiry_note               2. look at each message
                                 3. expiry_note of the next of those that stay

A search sees a message, or the message's note comes after the hint was taken away.  Whoever dies
between its two steps, or in a search, is repaired, and then nothing is known: expiry_repair.

What could not go where it belongs is set aside (put_aside.py).  It is to be tried again, which is
noted as if it expired then; a flag of its own says that there may be such messages.  A search takes
the flag away before it looks, by a locked operation: a flag that is cleared later might be the one
of a message that the look has passed.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, exchange, load_acquire, store_release
from shmbroker.core.kernel import exported, exported_cold
from shmbroker.core.layout import RING_ASIDE_AT, RING_NEXT_EXPIRY_AT


@exported_cold
def expiry_note(ring: int, expiry: int) -> int:
    """A message that expires then was published, given back or set aside: 1 if it is the first."""
    address = ring + RING_NEXT_EXPIRY_AT
    # SYNC POINT: expiry (after a locked operation): the message was there before
    seen = load_acquire(address)
    while seen == 0 or seen > expiry:
        found = compare_exchange(address, seen, expiry)
        if found == seen:
            return 1
        seen = found
    return 0


@exported
def expiry_unknown(ring: int) -> int:
    """There may be any: the next search looks."""
    return store_release(ring + RING_NEXT_EXPIRY_AT, 1)


@exported
def expiry_repair(ring: int, asides: int) -> int:
    """Somebody has died, and may not have noted what expires, or the messages set aside."""
    if asides:
        store_release(ring + RING_ASIDE_AT, 1)
    return store_release(ring + RING_NEXT_EXPIRY_AT, 1)


@exported
def expiry_begin(ring: int, now: int) -> int:
    """1 if something may be due, and who asks is to look at each message."""
    address = ring + RING_NEXT_EXPIRY_AT
    seen = load_acquire(address)
    if seen == 0 or seen > now:
        return 0
    # SYNC POINT: expiry (sequentially consistent): who notes after this is found by the next
    if compare_exchange(address, seen, 0) != seen:
        return 0
    exchange(ring + RING_ASIDE_AT, 0)
    return 1


@exported
def aside_note(ring: int) -> int:
    """A message is set aside now."""
    return store_release(ring + RING_ASIDE_AT, 1)


@exported
def aside_is_due(ring: int, now: int) -> int:
    """1 if there may be messages that are set aside, and a search would try them again."""
    if load_acquire(ring + RING_ASIDE_AT) == 0:
        return 0
    following = load_acquire(ring + RING_NEXT_EXPIRY_AT)
    return int(following != 0 and following <= now)
