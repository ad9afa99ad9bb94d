"""The programs of the scenarios: what processes do with a ring."""

from __future__ import annotations

from typing import Final

from shmbroker.core import layout as at
from shmbroker.core.atomics import compare_exchange, load, load_acquire, store
from shmbroker.core.barrier import barrier_raise
from shmbroker.core.batch import (
    PLAIN_MARK,
    ack_many_once,
    publish_body,
    publish_many_once,
    publish_once,
    take_within,
)
from shmbroker.core.bell import bell_arm, bell_ring
from shmbroker.core.codes import FULL, OK
from shmbroker.core.cursor import (
    cursor_close,
    cursor_copy,
    cursor_next,
    cursor_open,
    cursor_open_lossy,
    cursor_release,
)
from shmbroker.core.gate import gate_adopt, gate_join_named, gate_position, gate_put_down
from shmbroker.core.group import groups_free
from shmbroker.core.head import head_load
from shmbroker.core.port import port_close, port_number
from shmbroker.core.publish import publish_chunk_once
from shmbroker.core.repair import drop_oldest, repair
from shmbroker.core.run import reserve
from shmbroker.core.tail import tail_load
from shmbroker.core.take import ack_once, give_back_once, take_once
from tests.explore.operation import ask, tell
from tests.explore.ring import ALIVE, BODY, BODY_BYTES, CURSOR, MESSAGE, PORT, RING
from tests.explore.translation import program

# questions
WHO_IS_ALIVE: Final = 1
IS_THERE_ROOM: Final = 2
IS_THERE_WORK: Final = 3
WHAT_TIME: Final = 4
MAY_I_SLEEP: Final = 5
IS_IT_MY_TURN: Final = 6
IS_THERE_A_VALUE: Final = 7
IS_IT_COMMITTED: Final = 8

# answers
GO_ON: Final = 0
END: Final = 1
REPAIR: Final = 2

# events
TAKEN: Final = 1
ACKED: Final = 2
GAVE_BACK: Final = 3
REFUSED: Final = 4
JOINED: Final = 5
SAW: Final = 6
LEFT: Final = 7
MISSED: Final = 8
RANG: Final = 9
ADOPTED: Final = 10
SETTLED: Final = 14
FOUND: Final = 15
ENDED: Final = 16
KEPT: Final = 17

PRODUCER_SHIFT: Final = 8
NO_LEASES: Final = 0


@program
def forget() -> int:
    """Clear what the next call will write before it reads, so that it is no part of the state."""
    store(PORT + at.PORT_FOUND_TAKE, 0)
    store(PORT + at.PORT_FOUND_WORD, 0)
    store(PORT + at.PORT_SPECIAL, 0)
    store(PORT + at.PORT_FOUND_PLACE, 0)
    store(PORT + at.PORT_FOUND_LINK, 0)
    for each in range(7):
        store(MESSAGE + 8 * each, 0)
        store(MESSAGE + at.MESSAGE_BYTES + 8 * each, 0)
    return 0


@program
def repair_all() -> int:
    """Repair, knowing who is dead now."""
    store(ALIVE, ask(WHO_IS_ALIVE))
    code = repair(PORT, ALIVE, 0, NO_LEASES)
    if code < 0:
        tell(REFUSED, code)
    store(ALIVE, 0)
    return code


@program
def producing(who: int, first: int, last: int) -> int:
    """Publish the numbers from first to last, one at a time."""
    number = first
    while number <= last:
        store(BODY, (who << PRODUCER_SHIFT) | number)
        code = publish_once(PORT, BODY, BODY_BYTES)
        store(BODY, 0)
        if code >= 0:
            number += 1
        else:
            tell(REFUSED, code)
            what = ask(IS_THERE_ROOM, code)
            if what == END:
                return 0
            if what == REPAIR:
                repair_all()
    return 0


@program
def leaving(who: int, last: int) -> int:
    """Publish, then return all blocks."""
    producing(who, 1, last)
    port_close(PORT)
    return 0


@program
def dropping(who: int, last: int) -> int:
    """Publish; if the ring is full, drop the oldest message that nobody has."""
    number = 1
    while number <= last:
        store(BODY, (who << PRODUCER_SHIFT) | number)
        code = publish_once(PORT, BODY, BODY_BYTES)
        store(BODY, 0)
        if code >= 0:
            number += 1
        elif drop_oldest(PORT) == 0 and ask(IS_THERE_ROOM, code) == END:
            return 0
    return 0


@program
def lending(who: int) -> int:
    """Fill three loans and publish them in another order; the blocks in between are not reused."""
    first = reserve(PORT, BODY_BYTES << at.SHAPE_BODY_SHIFT, PLAIN_MARK)
    second = reserve(PORT, BODY_BYTES << at.SHAPE_BODY_SHIFT, PLAIN_MARK)
    lend(second, (who << PRODUCER_SHIFT) | 1)
    third = reserve(PORT, BODY_BYTES << at.SHAPE_BODY_SHIFT, PLAIN_MARK)
    if third >= 0:
        lend(third, (who << PRODUCER_SHIFT) | 2)
    lend(first, (who << PRODUCER_SHIFT) | 3)
    return 0


@program
def producing_levels(who: int, last: int, levels: int) -> int:
    """Publish numbers from 1 to last, each of the priority that four bits of `levels` say."""
    load_acquire(RING + at.RING_HEAD_AT)  # a process begins with a step
    number = 1
    while number <= last:
        priority = (levels >> 4 * (number - 1)) & 15
        mark = PLAIN_MARK | priority << at.MARK_PRIORITY_SHIFT
        chunk = reserve(PORT, BODY_BYTES << at.SHAPE_BODY_SHIFT, mark)
        body = load(PORT + at.PORT_DATA) + chunk + at.CHUNK_HEADER_BYTES
        store(body, (who << PRODUCER_SHIFT) | number)
        code = publish_chunk_once(PORT, chunk)
        while code < 0:
            tell(REFUSED, code)
            what = ask(IS_THERE_ROOM, code)
            if what == END:
                return 0
            if what == REPAIR:
                repair_all()
            code = publish_chunk_once(PORT, chunk)
        number += 1
    return 0


@program
def producing_groups(who: int, last: int, groups: int) -> int:
    """Publish numbers from 1 to last, each of the group that four bits of `groups` say."""
    load_acquire(RING + at.RING_HEAD_AT)  # a process begins with a step
    number = 1
    while number <= last:
        group = (groups >> 4 * (number - 1)) & 15
        mark = PLAIN_MARK | (at.CHUNK_EXTENDED if group else 0) << at.MARK_FLAGS_SHIFT
        chunk = reserve(PORT, BODY_BYTES << at.SHAPE_BODY_SHIFT, mark)
        body = load(PORT + at.PORT_DATA) + chunk + at.CHUNK_HEADER_BYTES
        if group:
            store(body + at.CHUNK_GROUP_AT - at.CHUNK_HEADER_BYTES, group)
            body += at.CHUNK_EXTENSION_BYTES
        store(body, (who << PRODUCER_SHIFT) | number)
        while publish_chunk_once(PORT, chunk) < 0:
            if ask(IS_THERE_ROOM, FULL) == END:
                return 0
        number += 1
    return 0


@program
def lend(chunk: int, body: int) -> int:
    """Fill and publish a loan, waiting for room."""
    store(load(PORT + at.PORT_DATA) + chunk + at.CHUNK_HEADER_BYTES, body)
    while True:
        code = publish_chunk_once(PORT, chunk)
        if code >= 0:
            return code
        tell(REFUSED, code)
        ask(IS_THERE_ROOM, code)


@program
def producing_many(who: int, last: int) -> int:
    """Publish the numbers from 1 to last, as many at once as the ring takes."""
    number = 1
    while number <= last:
        for each in range(last + 1 - number):
            store(BODY + 8 * each, (who << PRODUCER_SHIFT) | (number + each))
            store(BODY + 256 + 8 * each, BODY_BYTES)
        code = publish_many_once(PORT, BODY, BODY + 256, last + 1 - number)
        for each in range(8):
            store(BODY + 8 * each, 0)
            store(BODY + 256 + 8 * each, 0)
        if code >= 0:
            number += code
        else:
            tell(REFUSED, code)
            what = ask(IS_THERE_ROOM, code)
            if what == END:
                return 0
            if what == REPAIR:
                repair_all()
    return 0


@program
def succeeding(who: int, last: int, identity: int, former: int) -> int:
    """Go on where the former producer of this identity ended, whatever it died of."""
    ask(IS_IT_MY_TURN, former)
    number = port_number(PORT, identity) + 1
    producing(who, number, last)
    return 0


@program
def producing_numbered(who: int, last: int, identity: int) -> int:
    """A producer whose messages are numbered."""
    number = port_number(PORT, identity) + 1
    producing(who, number, last)
    return 0


@program
def consuming(gives: int) -> int:
    """Take and acknowledge until all is done; the first `gives` messages are given back."""
    while True:
        code = take_once(PORT, MESSAGE)
        if code == OK:
            position = load(MESSAGE + at.MESSAGE_POSITION)
            tell(TAKEN, position, load(load(MESSAGE + at.MESSAGE_BODY)))
            if gives > 0:
                gives -= 1
                code = give_back_once(PORT, MESSAGE)
                tell(GAVE_BACK, position, code)
            else:
                code = ack_once(PORT, MESSAGE)
                tell(ACKED, position, code)
            forget()
        else:
            forget()
            what = ask(IS_THERE_WORK, code)
            if what == END:
                return 0
            if what == REPAIR:
                repair_all()


@program
def consuming_later(gives: int) -> int:
    """A consumer that comes when the first process, a producer, has ended."""
    ask(IS_IT_MY_TURN, 0)
    return consuming(gives)


@program
def standing_down() -> int:
    """Take a message, free what is ours with it in hand, acknowledge; then consume."""
    if take_once(PORT, MESSAGE) == OK:
        position = load(MESSAGE + at.MESSAGE_POSITION)
        tell(TAKEN, position, load(load(MESSAGE + at.MESSAGE_BODY)))
        groups_free(PORT, -1, load(PORT + at.PORT_OWNER))
        tell(ACKED, position, ack_once(PORT, MESSAGE))
    forget()
    return consuming(0)


@program
def returning() -> int:
    """When the first has ended: take a message, give it back, free what is ours; take no more."""
    ask(IS_IT_MY_TURN, 0)
    if take_once(PORT, MESSAGE) == OK:
        position = load(MESSAGE + at.MESSAGE_POSITION)
        tell(TAKEN, position, load(load(MESSAGE + at.MESSAGE_BODY)))
        tell(GAVE_BACK, position, give_back_once(PORT, MESSAGE))
    forget()
    groups_free(PORT, -1, load(PORT + at.PORT_OWNER))
    return 0


@program
def taking(rank: int, former: int) -> int:
    """When another has ended: take a message if there is one for this priority; no more."""
    ask(IS_IT_MY_TURN, former)
    store(PORT + at.PORT_RANK, rank)
    if take_once(PORT, MESSAGE) == OK:
        position = load(MESSAGE + at.MESSAGE_POSITION)
        tell(TAKEN, position, load(load(MESSAGE + at.MESSAGE_BODY)))
        tell(ACKED, position, ack_once(PORT, MESSAGE))
    return 0


@program
def outranking(rank: int) -> int:
    """A consumer of a higher priority, that comes when the first process has ended."""
    ask(IS_IT_MY_TURN, 0)
    store(PORT + at.PORT_RANK, rank)
    return consuming(0)


@program
def rebalancing(times: int) -> int:
    """Free everybody's buckets, when the first process has ended."""
    ask(IS_IT_MY_TURN, 0)
    while times > 0:
        times -= 1
        groups_free(PORT, -1, 0)
    return 0


@program
def consuming_many(count: int) -> int:
    """Take and acknowledge up to count at once, until all is done."""
    while True:
        taken = take_within(PORT, MESSAGE, count, at.POSITION_MASK)
        if taken > 0:
            for index in range(taken):
                message = MESSAGE + (index << at.MESSAGE_SHIFT)
                body = load(load(message + at.MESSAGE_BODY))
                tell(TAKEN, load(message + at.MESSAGE_POSITION), body)
            acked = ack_many_once(PORT, MESSAGE, taken)
            tell(ACKED, load(MESSAGE + at.MESSAGE_POSITION), int(acked != taken))
            forget()
        else:
            forget()
            what = ask(IS_THERE_WORK, taken)
            if what == END:
                return 0
            if what == REPAIR:
                repair_all()


@program
def leasing(deadline_ms: int) -> int:
    """Take with a deadline, work for as long as it pleases the scheduler, acknowledge."""
    store(PORT + at.PORT_LEASE_DEADLINE, deadline_ms)
    return consuming(0)


@program
def repairing(times: int, late_ms: int, grace_ms: int) -> int:
    """Repair some times, whether there is anything to do or not; time may be late."""
    while times > 0:
        times -= 1
        now_ms = 1
        if late_ms > 0:
            now_ms = ask(WHAT_TIME, late_ms)
        store(ALIVE, ask(WHO_IS_ALIVE))
        code = repair(PORT, ALIVE, now_ms, grace_ms)
        if code < 0:
            tell(REFUSED, code)
        store(ALIVE, 0)
    return 0


@program
def following(kind: int, from_now: int, leaves: int) -> int:
    """A gating cursor: sees every message from where it joined, at its own pace."""
    cursor_open(CURSOR, PORT, kind, from_now)
    tell(JOINED, load(CURSOR + at.CURSOR_POSITION))
    return follow(leaves)


@program
def following_named(kind: int) -> int:
    """following, behind a lasting gate that has a kind; it stays there."""
    gate = gate_join_named(PORT, at.GATE_LASTING, kind, 0, 0, 0)
    store(CURSOR + at.CURSOR_PORT, PORT)
    store(CURSOR + at.CURSOR_GATE, gate)
    store(CURSOR + at.CURSOR_POSITION, gate_position(PORT, gate))
    tell(JOINED, load(CURSOR + at.CURSOR_POSITION))
    follow(0)
    return gate_put_down(PORT, gate)


@program
def follow(leaves: int) -> int:
    while True:
        position = load(CURSOR + at.CURSOR_POSITION)
        code = cursor_next(CURSOR, MESSAGE)
        if code == OK:
            tell(SAW, position, load(load(MESSAGE + at.MESSAGE_BODY)))
            forget()
            cursor_release(CURSOR)
            barrier_raise(PORT)  # the journal's moves it
        else:
            forget()
            if code != -1:
                tell(REFUSED, code)
                return 0
            if ask(IS_THERE_WORK, code) == END:
                break
    if leaves:
        tell(LEFT)
        cursor_close(CURSOR)
    return 0


@program
def inheriting(gate: int, former: int, former_owner: int) -> int:
    """Repair, adopt the lasting gate of a cursor that ended, and follow from where it stood."""
    ask(IS_IT_MY_TURN, former)
    repair_all()
    position = gate_adopt(PORT, gate, former_owner)
    tell(ADOPTED, position, former)
    if position < 0:
        return 0
    store(CURSOR + at.CURSOR_PORT, PORT)
    store(CURSOR + at.CURSOR_POSITION, position)
    store(CURSOR + at.CURSOR_GATE, gate)
    return follow(1)


@program
def glancing(last: int) -> int:
    """A lossy cursor: sees what it is in time for."""
    cursor_open_lossy(CURSOR, PORT, 0)
    return glance(last)


@program
def glance(last: int) -> int:
    tell(JOINED, load(CURSOR + at.CURSOR_POSITION))
    while load(CURSOR + at.CURSOR_POSITION) < last:
        position = load(CURSOR + at.CURSOR_POSITION)
        length = cursor_copy(CURSOR, MESSAGE, BODY, BODY_BYTES)
        if length >= 0:
            tell(SAW, position, load(BODY))
        elif length != -1:
            tell(MISSED, load(CURSOR + at.CURSOR_POSITION), length)
        store(BODY, 0)
        forget()
        if length == -1 and ask(IS_THERE_WORK, length) == END:
            return 0
    return 0


@program
def glancing_late(last: int, behind: int) -> int:
    """A lossy cursor that stands so many positions behind, as if it had been stopped for long."""
    cursor_open_lossy(CURSOR, PORT, 0)
    store(CURSOR + at.CURSOR_POSITION, load(CURSOR + at.CURSOR_POSITION) - behind)
    return glance(last)


@program
def peering(last: int) -> int:
    """What a gating cursor would see whose gate the barrier does not ask."""
    store(CURSOR + at.CURSOR_PORT, PORT)
    store(CURSOR + at.CURSOR_POSITION, head_load(PORT))
    store(CURSOR + at.CURSOR_GATE, at.GATES - 1)
    tell(JOINED, load(CURSOR + at.CURSOR_POSITION))
    while load(CURSOR + at.CURSOR_POSITION) < last:
        position = load(CURSOR + at.CURSOR_POSITION)
        code = cursor_next(CURSOR, MESSAGE)
        if code == OK:
            tell(SAW, position, load(load(MESSAGE + at.MESSAGE_BODY)))
        forget()
        if code != OK and ask(IS_THERE_WORK, code) == END:
            return 0
    return 0


@program
def producing_late(who: int, last: int, behind: int) -> int:
    """Publish by a hint of tail that is so many positions behind: stopped before the first CAS."""
    number = 1
    while number <= last:
        store(BODY, (who << PRODUCER_SHIFT) | number)
        position = publish_body(PORT, BODY, BODY_BYTES, tail_load(PORT) - behind)
        store(BODY, 0)
        if position < 0:
            tell(REFUSED, position)
            return 0
        compare_exchange(RING + at.RING_TAIL_AT, position, (position + 1) & at.POSITION_MASK)
        number += 1
    return 0


@program
def ringing(who: int, last: int) -> int:
    """Publish, and wake who sleeps."""
    number = 1
    while number <= last:
        store(BODY, (who << PRODUCER_SHIFT) | number)
        code = publish_once(PORT, BODY, BODY_BYTES)
        store(BODY, 0)
        if code < 0:
            return 0
        number += 1
        if bell_ring(RING + at.RING_CONSUMER_BELL_AT):
            tell(RANG)
    return 0


@program
def sleeping(count: int) -> int:
    """Take and acknowledge so many messages; sleep when there is none."""
    while count > 0:
        code = take_once(PORT, MESSAGE)
        if code != OK:
            bell_arm(RING + at.RING_CONSUMER_BELL_AT)
            code = take_once(PORT, MESSAGE)
        if code == OK:
            ack_once(PORT, MESSAGE)
            count -= 1
            forget()
        else:
            forget()
            ask(MAY_I_SLEEP)
    return 0


@program
def draining() -> int:
    """Take and acknowledge until there is nothing."""
    while take_once(PORT, MESSAGE) == OK:
        position = load(MESSAGE + at.MESSAGE_POSITION)
        tell(TAKEN, position, load(load(MESSAGE + at.MESSAGE_BODY)))
        tell(ACKED, position, ack_once(PORT, MESSAGE))
    return 0


@program
def surviving(who: int, extra: int) -> int:
    """What is done when everybody else is gone: repair, drain, use the ring once more, repair."""
    repair_all()
    draining()
    for number in range(1, extra + 1):
        store(BODY, (who << PRODUCER_SHIFT) | number)
        code = publish_once(PORT, BODY, BODY_BYTES)
        if code < 0:
            tell(REFUSED, code)
        draining()
    repair_all()
    return 0
