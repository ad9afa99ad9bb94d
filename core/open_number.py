"""Open numbers: what a remote producer has left out below its highest number, and may still retry.

A producer on another host may not know what became of a message, go on with later ones and retry
it then.  So a number never counts as seen because a later one was: beside the highest number each
number below that was not published has an entry in the table of origins.

    made      by the owner, before the message that leaves the gap is published
    closed    by CAS, when it is published or given up: by its owner before tail passes the message,
              or by whoever helps tail past it, as the highest number is noted (producer.py)
    freed     by the owner, or by the next one

Numbers above the highest are not open, whatever has an entry: its owner died before the message
that would have left the gap.  A number is opened once at most while its origin has its entry, and a
helper reads the generation before it looks whose entry that is.  So who was stopped for long closes
no number of another.

With an origin its open numbers are forgotten.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    compare_exchange,
    fetch_add,
    load,
    load_acquire,
    store,
    store_release,
)
from shmbroker.core.codes import INVALID, OK
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.layout import (
    ORIGIN_FREE,
    ORIGIN_KEPT_AT,
    ORIGIN_MISSED_AT,
    ORIGIN_NUMBER_AT,
    ORIGIN_OF_AT,
    ORIGIN_OPEN,
    ORIGIN_OWNER_AT,
    ORIGIN_STATE_AT,
    ORIGIN_USED_AT,
    PORT_HEADER,
    PRODUCERS,
    RING_ORIGINS_OPEN_AT,
    RING_ORIGINS_PASSED_AT,
    SEQUENCE_MASK,
)
from shmbroker.core.origin import (
    entry_of_origin,
    is_origin,
    number_begins,
    origin_number_at,
    origin_owner,
    origins_end,
)


@kernel
def is_open_entry(entry: int) -> int:
    return int(load_acquire(entry + ORIGIN_STATE_AT) == ORIGIN_OPEN)


@kernel
def origin_word(port: int, origin: int) -> int:
    """What entries of its open numbers say of whom they are, 0 if there is no such origin."""
    address = origin_number_at(port, origin)
    return load_acquire(address) & ~SEQUENCE_MASK | origin if address else 0


@cold
def number_close(port: int, of: int, number: int) -> int:
    """It is published, or given up: 1 if it was open."""
    if load_acquire(load(port + PORT_HEADER) + RING_ORIGINS_OPEN_AT) == 0:
        return 0
    for each in range(PRODUCERS, origins_end(port)):
        entry = entry_of_origin(port, each)
        # before we look whose it is: that one has it no more if the generation changes
        seen = load_acquire(entry + ORIGIN_NUMBER_AT)
        if is_open_entry(entry) and load(entry + ORIGIN_OF_AT) == of:
            if load(entry + ORIGIN_MISSED_AT) == number:
                if seen & SEQUENCE_MASK:
                    return 0
                return int(compare_exchange(entry + ORIGIN_NUMBER_AT, seen, seen | number) == seen)
    return 0


@exported_cold
def number_open(port: int, index: int, origin: int, number: int) -> int:
    """This entry, which is nobody's, is from now on that of an open number; for its owner."""
    of = origin_word(port, origin)
    if of == 0 or index < PRODUCERS or index >= origins_end(port):
        return INVALID
    entry = entry_of_origin(port, index)
    fetch_add(load(port + PORT_HEADER) + RING_ORIGINS_OPEN_AT, 1)
    store_release(entry + ORIGIN_NUMBER_AT, number_begins(entry, 0))
    store(entry + ORIGIN_OF_AT, of)
    store(entry + ORIGIN_MISSED_AT, number)
    store(entry + ORIGIN_OWNER_AT, 0)
    store_release(entry + ORIGIN_STATE_AT, ORIGIN_OPEN)
    return OK


@kernel
def entry_free(port: int, entry: int) -> int:
    store_release(entry + ORIGIN_STATE_AT, ORIGIN_FREE)
    fetch_add(load(port + PORT_HEADER) + RING_ORIGINS_OPEN_AT, -1)
    return 1


@exported_cold
def numbers_settle(port: int, origin: int) -> int:
    """Free what is closed or above the highest number: how many are open.

    For the owner; at first with tail at the truth."""
    of = origin_word(port, origin)
    if of == 0:
        return INVALID
    last = load_acquire(origin_number_at(port, origin)) & SEQUENCE_MASK
    left = 0
    for each in range(PRODUCERS, origins_end(port)):
        entry = entry_of_origin(port, each)
        if is_open_entry(entry) and load(entry + ORIGIN_OF_AT) == of:
            closed = load_acquire(entry + ORIGIN_NUMBER_AT) & SEQUENCE_MASK
            if closed or load(entry + ORIGIN_MISSED_AT) > last:
                entry_free(port, entry)
            else:
                left += 1
    return left


@exported_cold
def number_open_above(port: int, origin: int, above: int) -> int:
    """The least open number of an origin above this one, 0 if there is none."""
    of = origin_word(port, origin)
    if of == 0:
        return 0
    least = load_acquire(origin_number_at(port, origin)) & SEQUENCE_MASK
    found = 0
    for each in range(PRODUCERS, origins_end(port)):
        entry = entry_of_origin(port, each)
        if is_open_entry(entry) and load(entry + ORIGIN_OF_AT) == of:
            number = load(entry + ORIGIN_MISSED_AT)
            if above < number < least and load(entry + ORIGIN_NUMBER_AT) & SEQUENCE_MASK == 0:
                least = number
                found = number
    return found


@exported_cold
def number_give_up(port: int, origin: int, number: int) -> int:
    """It will not come: 1, or 0 if it was not open; for the owner."""
    of = origin_word(port, origin)
    if of == 0 or number_close(port, of, number) == 0:
        return 0
    # the journaler is to look: no message tells it
    fetch_add(load(port + PORT_HEADER) + RING_ORIGINS_PASSED_AT, 1)
    return 1


# --- forgetting -----------------------------------------------------------------------------------


@cold
def orphans_free(port: int) -> int:
    """Open numbers whose origin is forgotten."""
    if load_acquire(load(port + PORT_HEADER) + RING_ORIGINS_OPEN_AT) == 0:
        return 0
    freed = 0
    for each in range(PRODUCERS, origins_end(port)):
        entry = entry_of_origin(port, each)
        if is_open_entry(entry):
            of = load(entry + ORIGIN_OF_AT)
            origin = of & SEQUENCE_MASK
            if origin_word(port, origin) != of or not is_origin(entry_of_origin(port, origin)):
                freed += entry_free(port, entry)
    return freed


@kernel
def entry_forget(entry: int) -> int:
    store_release(entry + ORIGIN_STATE_AT, ORIGIN_FREE)
    return 1


@exported_cold
def origin_forget(port: int, origin: int) -> int:
    """Forget an origin that nobody owns, with tail at the truth: 1 if it was forgotten."""
    if origin_owner(port, origin) != 0:
        return 0
    entry_forget(entry_of_origin(port, origin))
    orphans_free(port)
    return 1


@exported_cold
def origins_forget(port: int, now_ns: int) -> int:
    """Forget those that nobody owns or has used for as long as they are kept, with tail at the
    truth: how many entries are free."""
    forgotten = 0
    for origin in range(PRODUCERS, origins_end(port)):
        entry = entry_of_origin(port, origin)
        kept = load(entry + ORIGIN_KEPT_AT)
        if not is_origin(entry) or load_acquire(entry + ORIGIN_OWNER_AT) != 0 or kept < 0:
            continue
        if load(entry + ORIGIN_USED_AT) < now_ns - kept:
            forgotten += entry_forget(entry)
    return forgotten + orphans_free(port)
