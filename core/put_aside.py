"""Setting aside: a message that must not be delivered while its dead-letter queue is full.

The same holds for an expiry queue.  If the message were given back, it would be taken next, and the
messages behind it would wait.  So it becomes READY again with a mark, an owner that is nobody, and
is skipped:

    take, a level's hint   are moved beyond it while we hold it, and not lowered to it
    the repair             lowers no hint to a message with the mark
    groups, selectors      look at each message from head on, and check the mark

A consumer that takes it nevertheless sees that it must not be delivered, and sets it aside again.
So correctness does not depend on the mark; it only saves work.  The search for messages that must
leave the ring (expiry.c) finds it, because it is READY.

A death before the CAS leaves it LEASED: the repair gives it back like any other.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, load, load_acquire
from shmbroker.core.codes import OK, REVOKED
from shmbroker.core.group import groups_changed, mode_buckets
from shmbroker.core.head import head_load
from shmbroker.core.kernel import cold, exported_cold
from shmbroker.core.latest import keeps_latest, latest_note
from shmbroker.core.layout import (
    LAP_MASK,
    MESSAGE_POSITION,
    MESSAGE_WORD,
    PORT_HEADER,
    PORT_SLOT_MASK,
    POSITION_MASK,
    READY,
    RING_TAKE_AT,
)
from shmbroker.core.level import level_hint, level_of, mode_levels, ring_mode
from shmbroker.core.tail import true_tail
from shmbroker.core.word import (
    is_aside,
    lap_of,
    slot_at,
    word_aside,
    word_given_back,
    word_state,
    word_unclaimed,
)

TRIES = 4096
"""Others move the hint too, never without end."""


@cold
def hint_pass(port: int, address: int, position: int, level: int) -> int:
    """Move a hint beyond a message in our hand: 1 if it is there, 0 if others have to go first.

    `level`: of which level the hint is, -1 of all.  What is READY and lower is taken before;
    whoever comes by then finds our message as well, and sets it aside again.
    """
    for _ in range(TRIES + load(port + PORT_SLOT_MASK)):
        hint = load_acquire(address)
        at = hint & POSITION_MASK
        if at > position:
            return 1
        word = load_acquire(slot_at(port, at))
        if (word & LAP_MASK) == lap_of(port, at) and word_state(word) == READY:
            if level < 0 or level_of(port, word, mode_levels(ring_mode(port))) == level:
                return 0
        compare_exchange(address, hint, hint + 1)
    return 0


@exported_cold
def put_aside(port: int, message: int, was_delivered: int) -> int:
    """A message of ours is not to be delivered, and stays for now: OK, or REVOKED."""
    position = load(message + MESSAGE_POSITION)
    leased = load(message + MESSAGE_WORD)
    ready = word_aside(word_given_back(leased) if was_delivered else word_unclaimed(leased))
    mode = ring_mode(port)
    levels = mode_levels(mode)
    if levels:
        level = level_of(port, leased, levels)
        hint_pass(port, level_hint(port, level), position, level)
    else:
        hint_pass(port, load(port + PORT_HEADER) + RING_TAKE_AT, position, -1)
    if compare_exchange(slot_at(port, position), leased, ready) != leased:
        return REVOKED
    if mode_buckets(mode):
        groups_changed(port)  # others of its group may have waited for it
    if keeps_latest(port):
        latest_note(port, position, ready, 0)  # there may be a newer one of its key
    return OK


@exported_cold
def asides_in(port: int) -> int:
    """How many messages are set aside, or DAMAGED."""
    tail = true_tail(port)
    if tail < 0:
        return tail
    count = 0
    for position in range(head_load(port), tail):
        word = load_acquire(slot_at(port, position))
        if (word & LAP_MASK) == lap_of(port, position) and word_state(word) == READY:
            count += is_aside(word)
    return count
