"""Waiting: sleeping in the kernel until there is work.  Nothing is taken or published here.

Each kernel returns OK when it is worth trying again, EMPTY (or FULL) when the deadline is over,
INTERRUPTED when a signal came, and SLEPT after SLICE_NS, however often it was woken in between: the
caller then repairs what dead participants left, and waits again.  A wait is bounded because a
wake-up may have gone to a process that was killed before using it (core/bell.py has the
handshake).  It is SLEPT at once for a port that is stopped: its queue or connection is closing.

Waking costs the waker some microseconds, and a producer that is woken for the room of one message
soon sleeps again.  So it is woken when a quarter of the ring has been taken, or all of it; in a
ring that is emptied more slowly it looks by itself, soon at first and then ever more rarely.

A bell wakes one sleeper.  That one arms the bell again before it looks, so the next message wakes
the next one; and if more than one message is there already, it wakes another at once.
Subscribers see every message, so their bell wakes them all.

Whoever follows many rings, as the journaler does, sleeps on a bell of its own in the arena, which
those tell who take its bit from the bell of a ring (core/bell.py).

Deadlines are monotonic nanoseconds (`system_clock`); 0 is over already, NEVER does not come.
"""

from __future__ import annotations

from shmbroker.core.atomics import exchange, load, load_acquire
from shmbroker.core.barrier import barrier_raise, is_confirmed
from shmbroker.core.bell import (
    ASLEEP,
    bell_arm,
    bell_follow,
    bell_ring,
    follower_tell,
    followers_in,
)
from shmbroker.core.codes import EMPTY, FULL, OK, SLEPT
from shmbroker.core.cursor import is_seen
from shmbroker.core.group import group_find, groups_changed, mode_buckets
from shmbroker.core.head import head_load
from shmbroker.core.kernel import cold, exported, exported_cold, kernel
from shmbroker.core.layout import (
    ARENA_FOLLOWERS_AT,
    COUNTER_GIVEN_BACK_AT,
    COUNTER_REVOKED_AT,
    CURSOR_GATE,
    CURSOR_PORT,
    CURSOR_POSITION,
    FOLLOWER_OWNER_AT,
    FOLLOWERS,
    PAIR_BYTES,
    PORT_ARENA,
    PORT_BARRIER,
    PORT_HEAD_SEEN,
    PORT_HEADER,
    PORT_MESSAGES_MAX,
    PORT_PENDING,
    PORT_QUEUE,
    PORT_SLOT_MASK,
    PORT_STOP,
    POSITION_MASK,
    RING_CHANGES_AT,
    RING_CONFIRM_BELL_AT,
    RING_CONSUMER_BELL_AT,
    RING_COPIED_AT,
    RING_PRODUCER_BELL_AT,
    RING_SUBSCRIBER_BELL_AT,
    RING_TAKE_AT,
)
from shmbroker.core.level import ring_mode
from shmbroker.core.reclaim import reclaim
from shmbroker.core.tail import is_published, tail_load, true_tail
from shmbroker.core.take import is_next, take_find
from shmbroker.core.visible import is_deliverable
from shmbroker.core.word import slot_at
from shmbroker.ipc.base.system import system_clock, system_wait, system_wake

SLICE_NS = 100_000_000
NAP_NS = 1_000_000
NEVER = 1 << 62
ONE = 1
ALL = 1 << 30


@cold
def wake_followers(port: int, followers: int) -> int:
    """A bit each: tell them that there is work in this ring."""
    follower = load(port + PORT_ARENA) + ARENA_FOLLOWERS_AT
    while followers > 0:
        if followers & 1 and follower_tell(follower, load(port + PORT_QUEUE)):
            system_wake(follower, ALL)
        follower += PAIR_BYTES
        followers >>= 1
    return OK


@cold
def ring(port: int, bell: int, count: int) -> int:
    """Ring a bell of the ring, and wake so many who sleep on it; 0 if nobody may."""
    rung = bell_ring(bell)
    if rung & ASLEEP:
        system_wake(bell, count)
    if followers_in(rung):
        wake_followers(port, followers_in(rung))
    return rung


@cold
def wake_subscribers(port: int) -> int:
    return ring(port, load(port + PORT_HEADER) + RING_SUBSCRIBER_BELL_AT, ALL)


@cold
def wake_consumers(port: int) -> int:
    if load(port + PORT_BARRIER) == 0:
        ring(port, load(port + PORT_HEADER) + RING_CONSUMER_BELL_AT, ONE)
    return wake_subscribers(port)


@kernel
def tell_consumers(port: int) -> int:
    """After the CAS that made a message READY: wake who may sleep."""
    bell = load(port + PORT_HEADER) + RING_CONSUMER_BELL_AT
    # SYNC POINT: bell (after a locked operation): pairs with the exchange of bell_arm
    asleep = load_acquire(bell) | load_acquire(bell + 8)
    if asleep:
        wake_consumers(port)
    return asleep


@cold
def wake_producers(port: int) -> int:
    header = load(port + PORT_HEADER)
    bell = header + RING_PRODUCER_BELL_AT
    if mode_buckets(ring_mode(port)):  # somebody may wait for what was in our hand
        groups_changed(port)
        wake_subscribers(port)
    take = load_acquire(header + RING_TAKE_AT) & POSITION_MASK
    waiting = tail_load(port) - take  # for consumers
    if waiting > 0 and waiting > (load(port + PORT_SLOT_MASK) + 1) * 3 >> 2:
        return OK
    reclaim(port)
    ring(port, bell, ONE)
    return OK


@exported
def tell_producers(port: int) -> int:
    """After the CAS that made a message DONE: somebody may wait for its room."""
    # SYNC POINT: bell (after a locked operation): pairs with the exchange of bell_arm
    asleep = load_acquire(load(port + PORT_HEADER) + RING_PRODUCER_BELL_AT)
    if asleep:
        wake_producers(port)
    return asleep


@exported_cold
def wake_takers(port: int) -> int:
    """More than before may be taken: the barrier has moved, or its broker serves again."""
    ring(port, load(port + PORT_HEADER) + RING_CONSUMER_BELL_AT, ONE)
    return wake_subscribers(port)


@exported_cold
def gate_moved(port: int) -> int:
    """After a gate that the barrier waits for was moved, or has left: what is confirmed by that.

    Who waits for a level may have waited for this gate alone, so they look also if the barrier
    stays where it is.
    """
    header = load(port + PORT_HEADER)
    # SYNC POINT: bell (after a locked operation): pairs with the exchange of bell_arm
    if barrier_raise(port):
        wake_takers(port)
    ring(port, header + RING_CONFIRM_BELL_AT, ALL)
    return tell_producers(port)


@exported_cold
def copied_below(port: int, position: int) -> int:
    """Replicas of this queue have all below this position; -1: confirms wait for none."""
    header = load(port + PORT_HEADER)
    # SYNC POINT: bell (a locked operation): pairs with the exchange of bell_arm
    exchange(header + RING_COPIED_AT, position + 1)
    ring(port, header + RING_CONFIRM_BELL_AT, ALL)
    return OK


@kernel
def rouse(bell: int) -> int:
    """Wake all who sleep on this bell, and whoever is about to."""
    exchange(bell, 0)
    return system_wake(bell, ALL)


@cold
def rouse_followers(port: int) -> int:
    """All of them, also if whoever took their bits from our bells has told them of nothing."""
    followers = 0
    for each in range(FOLLOWERS):
        at = load(port + PORT_ARENA) + ARENA_FOLLOWERS_AT + each * PAIR_BYTES
        if load_acquire(at + FOLLOWER_OWNER_AT) != 0:
            followers |= 1 << each
    return wake_followers(port, followers)


@exported_cold
def wake_all(port: int) -> int:
    """Everybody who sleeps on this ring looks again: it was repaired, resumed, or is gone."""
    header = load(port + PORT_HEADER)
    if mode_buckets(ring_mode(port)):
        groups_changed(port)
    rouse(header + RING_CONSUMER_BELL_AT)
    rouse(header + RING_SUBSCRIBER_BELL_AT)
    rouse(header + RING_PRODUCER_BELL_AT)
    rouse(header + RING_CONFIRM_BELL_AT)
    rouse_followers(port)
    return OK


@cold
def sleep(port: int, bell: int, deadline: int, slice_end: int, longest: int) -> int:
    """Sleep while the bell is armed: OK (look again), EMPTY (too late), INTERRUPTED or SLEPT."""
    now = system_clock()
    if deadline <= now:
        return EMPTY
    if slice_end <= now or load_acquire(port + PORT_STOP):
        return SLEPT
    code = system_wait(bell, ASLEEP, min(min(deadline, slice_end) - now, longest))
    return OK if code == EMPTY else code


@cold
def wait_for_grouped(port: int, deadline: int) -> int:
    """wait_for_message where it depends on who waits: a message wakes all, as subscribers are.

    Who has to wait until somebody else's messages are dealt with arms the producers' bell as well,
    before it looks, because that is the one that an ack rings.
    """
    header = load(port + PORT_HEADER)
    slice_end = system_clock() + SLICE_NS
    nap = NAP_NS
    while True:
        bell_arm(header + RING_SUBSCRIBER_BELL_AT)
        is_armed = load(port + PORT_PENDING) >= 0
        if is_armed:
            bell_arm(header + RING_PRODUCER_BELL_AT)
        position = group_find(port)
        if position >= 0:
            return OK
        if position != EMPTY:
            return position
        longest = SLICE_NS
        if load(port + PORT_PENDING) >= 0:
            if not is_armed:
                continue
            longest = nap  # nobody rings who took a message too late, and puts it back
            nap = min(nap + nap, SLICE_NS)
        code = sleep(port, header + RING_SUBSCRIBER_BELL_AT, deadline, slice_end, longest)
        if code != OK:
            return code


@exported_cold
def wait_for_message(port: int, deadline: int) -> int:
    """OK: there is something to take.  EMPTY: not until the deadline."""
    if mode_buckets(ring_mode(port)):
        return wait_for_grouped(port, deadline)
    bell = load(port + PORT_HEADER) + RING_CONSUMER_BELL_AT
    slice_end = system_clock() + SLICE_NS
    slept = 0
    while True:
        bell_arm(bell)
        position = take_find(port)
        if position >= 0:
            if slept:
                after = position + 1
                if ring_mode(port) or is_next(port, after, load_acquire(slot_at(port, after))):
                    system_wake(bell, ONE)
            return OK
        if position != EMPTY:
            return position
        code = sleep(port, bell, deadline, slice_end, SLICE_NS)
        if code != OK:
            return code
        slept = 1


@kernel
def has_room(port: int) -> int:
    """1 if a message can be published, or was done with and can now be reclaimed."""
    most = load(port + PORT_MESSAGES_MAX)
    if most == 0:
        most = load(port + PORT_SLOT_MASK) + 1
    if true_tail(port) - head_load(port) < most:
        return 1
    return int(reclaim(port) > 0)


@exported_cold
def wait_for_room(port: int, deadline: int) -> int:
    """OK: there is room in the ring.  FULL: not until the deadline."""
    bell = load(port + PORT_HEADER) + RING_PRODUCER_BELL_AT
    slice_end = system_clock() + SLICE_NS
    slept = 0
    nap = NAP_NS
    while True:
        bell_arm(bell)
        if has_room(port):
            slots = load(port + PORT_SLOT_MASK) + 1
            if slept and true_tail(port) + 1 - load(port + PORT_HEAD_SEEN) < slots:
                system_wake(bell, ONE)
            return OK
        code = sleep(port, bell, deadline, slice_end, nap)
        nap = min(nap + nap, SLICE_NS)
        if code != OK:
            return FULL if code == EMPTY else code
        slept = 1


@exported_cold
def wait_for_head(port: int, deadline: int) -> int:
    """OK: something was done with since this port last looked at head.  FULL: not in time."""
    bell = load(port + PORT_HEADER) + RING_PRODUCER_BELL_AT
    slice_end = system_clock() + SLICE_NS
    seen = load(port + PORT_HEAD_SEEN)
    nap = NAP_NS
    while True:
        bell_arm(bell)
        reclaim(port)
        if head_load(port) != seen:
            system_wake(bell, ONE)
            return OK
        code = sleep(port, bell, deadline, slice_end, nap)
        nap = min(nap + nap, SLICE_NS)
        if code != OK:
            return FULL if code == EMPTY else code


@kernel
def returned(port: int) -> int:
    """How many messages came back; whoever waits for certain ones looks at all of them again."""
    header = load(port + PORT_HEADER)
    came = load_acquire(header + COUNTER_GIVEN_BACK_AT) + load_acquire(header + COUNTER_REVOKED_AT)
    return came + load_acquire(header + RING_CHANGES_AT)


@exported_cold
def wait_for_selected(port: int, position: int, seen: int, deadline: int) -> int:
    """OK: there is a message at this position, or one came back since so many had.

    All who wait so are woken, as subscribers are: only one of them may want the message.
    """
    bell = load(port + PORT_HEADER) + RING_SUBSCRIBER_BELL_AT
    slice_end = system_clock() + SLICE_NS
    while True:
        bell_arm(bell)
        if returned(port) != seen:
            return OK
        if is_published(port, position) and is_deliverable(port, position):
            return OK
        code = sleep(port, bell, deadline, slice_end, SLICE_NS)
        if code != OK:
            return code


@exported_cold
def wait_for_confirm(port: int, position: int, level: int, deadline: int) -> int:
    """OK: the message at this position is confirmed at this level.  EMPTY: not in time."""
    bell = load(port + PORT_HEADER) + RING_CONFIRM_BELL_AT
    slice_end = system_clock() + SLICE_NS
    while True:
        bell_arm(bell)
        if is_confirmed(port, position, level):
            return OK
        code = sleep(port, bell, deadline, slice_end, SLICE_NS)
        if code != OK:
            return code


@exported_cold
def cursor_wait(cursor: int, deadline: int) -> int:
    """OK: there is a message that the cursor may see.  EMPTY: not until the deadline."""
    port = load(cursor + CURSOR_PORT)
    bell = load(port + PORT_HEADER) + RING_SUBSCRIBER_BELL_AT
    slice_end = system_clock() + SLICE_NS
    while True:
        bell_arm(bell)
        position = load(cursor + CURSOR_POSITION)
        if is_published(port, position) and is_seen(port, load(cursor + CURSOR_GATE), position):
            return OK
        code = sleep(port, bell, deadline, slice_end, SLICE_NS)
        if code != OK:
            return code


@exported_cold
def cursor_follow(cursor: int, follower: int) -> int:
    """OK: there is a message that the cursor may see.  EMPTY: not yet, and the follower is told."""
    port = load(cursor + CURSOR_PORT)
    bell_follow(load(port + PORT_HEADER) + RING_SUBSCRIBER_BELL_AT, follower)
    position = load(cursor + CURSOR_POSITION)
    if is_published(port, position) and is_seen(port, load(cursor + CURSOR_GATE), position):
        return OK
    return EMPTY
