"""The commit record, and the counter by which the journaler finds a moment between commits.

A participant's record says what its commit does.  One store decides: the state of the participant's
transaction becomes COMMITTED.  From then on all of it happens, by whose hand ever, and nothing
happens twice (transaction.py).

    committer                              journaler
    1. write the record, prepare           1. load begun
    2. state: COMMITTED                    2. is somebody inside?  wait, or help
    3. add 1 to begun                      3. see how far each ring is
    4. acknowledge, publish                4. load begun: the same, so this was a moment
    5. state: NONE

Inside is who is COMMITTED.  Who is not counted in step 1 has done nothing before step 4, or step 4
finds another number.  So all that the journaler sees of a transaction at a moment is whole.

A committer may stand still between any two steps, so the journaler helps: it copies the record and
does all of it itself.  The owner may wake up meanwhile, find all done, and write its next record.
So a copy counts only if the record's serial is the same before and after, and that changes before
anything else of the record.  What is done by an old copy changes nothing: it was done before.

A moment of queues that follow others (moment.py) is one, too, without a record:
its word says that it is being shown, it is counted, and it happens.  Nobody can help there, so the
journaler waits.

How far one has come who lets it happen is in its steps.  The caller finds each queue and does what
commit_next says, and says if there was no room.

If a queue has no room, nobody can finish it, and perhaps nobody makes room before the journaler has
written what is there.  Then all of it is written that has happened, and with it the messages that
are still to be published (transaction_unplaced, ipc/broker/unplaced.c).  They are looked at before
the rings are: so what is published in between is seen twice, and never not at all.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    fence_acquire,
    fetch_add,
    load,
    load_acquire,
    store,
    store_release,
)
from shmbroker.core.codes import OK
from shmbroker.core.kernel import exported, exported_cold, kernel
from shmbroker.core.layout import (
    CHUNK_PUBLISHED_AT,
    OPERATION_ACKS,
    OPERATION_BYTES,
    OPERATION_QUEUE_AT,
    OPERATION_WHERE_AT,
    OPERATION_WORD_AT,
    ORIGIN_PRODUCER_SHIFT,
    PORT_DATA,
    PRODUCERS,
    STEP_ACKNOWLEDGE,
    STEP_PUBLISH,
    STEP_RETURN,
    STEPS_BLOCKED,
    STEPS_BLOCKED_AT,
    STEPS_BLOCKED_MAX,
    STEPS_INDEX,
    STEPS_QUEUE,
    STEPS_STEP,
    STEPS_WHERE,
    STEPS_WORD,
    TRANSACTION_COMMITTED,
    TRANSACTION_COUNT_AT,
    TRANSACTION_DURABLE_AT,
    TRANSACTION_OPERATIONS,
    TRANSACTION_OPERATIONS_AT,
    TRANSACTION_SERIAL_AT,
    TRANSACTIONS_BEGUN_AT,
    TRANSACTIONS_PLAIN_AT,
    TRANSACTIONS_SHOWING_AT,
)
from shmbroker.core.transaction import (
    chunk_number,
    is_listed,
    lease_pledge,
    lease_restore,
    series_drop,
    series_last,
    series_take,
)


@kernel
def operation_at(record: int, index: int) -> int:
    return record + TRANSACTION_OPERATIONS_AT + index * OPERATION_BYTES


@kernel
def operations_in(record: int) -> int:
    """How many there are; none if that is no possible number."""
    count = load_acquire(record + TRANSACTION_COUNT_AT)
    return count if 0 <= count <= TRANSACTION_OPERATIONS else 0


@exported
def commit_begin(record: int, is_durable: int) -> int:
    """Begin to write it: its serial."""
    serial = load(record + TRANSACTION_SERIAL_AT) + 1
    # SYNC POINT: commit-record (release): before anything of it; pairs with commit_copy
    store_release(record + TRANSACTION_SERIAL_AT, serial)
    store_release(record + TRANSACTION_DURABLE_AT, is_durable)
    store_release(record + TRANSACTION_COUNT_AT, 0)
    return serial


@exported
def commit_add(record: int, reference: int, where: int, word: int) -> int:
    """One more operation: its index."""
    index = load(record + TRANSACTION_COUNT_AT)
    address = operation_at(record, index)
    store_release(address + OPERATION_QUEUE_AT, reference)
    store_release(address + OPERATION_WHERE_AT, where)
    store_release(address + OPERATION_WORD_AT, word)
    store_release(record + TRANSACTION_COUNT_AT, index + 1)
    return index


@exported
def commit_count(transactions: int) -> int:
    """Something is about to be seen that belongs together: its number."""
    return fetch_add(transactions + TRANSACTIONS_BEGUN_AT, 1) + 1


@exported
def commit_count_plain(transactions: int) -> int:
    """One on no durable queue is decided, and about to happen: the number of those."""
    return fetch_add(transactions + TRANSACTIONS_PLAIN_AT, 1) + 1


@exported
def commit_counted(transactions: int) -> int:
    """How many were ever decided."""
    begun = load_acquire(transactions + TRANSACTIONS_BEGUN_AT)
    return begun + load_acquire(transactions + TRANSACTIONS_PLAIN_AT)


@exported
def commit_decide(transactions: int, record: int, committed: int) -> int:
    """From here on it happens: its number among those on durable queues, 0: it is on none."""
    # SYNC POINT: commit (release): the record is written; pairs with commit_is_inside
    store_release(committed, TRANSACTION_COMMITTED)
    if load(record + TRANSACTION_DURABLE_AT) == 0:
        return 0
    return commit_count(transactions)


@exported
def commit_show(transactions: int) -> int:
    """A moment of replicas is about to be shown: its number."""
    # SYNC POINT: commit (release): pairs with commit_is_showing
    store_release(transactions + TRANSACTIONS_SHOWING_AT, 1)
    return commit_count(transactions)


@exported
def commit_shown(transactions: int) -> int:
    """All of it is there."""
    # SYNC POINT: commit (release): pairs with commit_is_showing
    return store_release(transactions + TRANSACTIONS_SHOWING_AT, 0)


@exported
def commit_is_showing(transactions: int) -> int:
    """1 if a moment of replicas may be half way."""
    # SYNC POINT: commit (acquire)
    return load_acquire(transactions + TRANSACTIONS_SHOWING_AT)


@exported
def commit_begun(transactions: int) -> int:
    """How many were ever counted."""
    return load_acquire(transactions + TRANSACTIONS_BEGUN_AT)


@exported
def commit_is_inside(record: int, committed: int, helped: int) -> int:
    """1 if it may be half way, and is not the one with this serial."""
    # SYNC POINT: commit (acquire)
    if load_acquire(committed) != TRANSACTION_COMMITTED:
        return 0
    if load_acquire(record + TRANSACTION_DURABLE_AT) == 0:
        return 0
    return int(load_acquire(record + TRANSACTION_SERIAL_AT) != helped)


@exported_cold
def commit_copy(record: int, committed: int, copy: int) -> int:
    """Copy what is committed: its serial, or 0 if it is another's, or over."""
    # SYNC POINT: commit-record (acquire)
    serial = load_acquire(record + TRANSACTION_SERIAL_AT)
    if load_acquire(committed) != TRANSACTION_COMMITTED:
        return 0
    count = operations_in(record)
    store(copy + TRANSACTION_COUNT_AT, count)
    for index in range(count):
        source = operation_at(record, index)
        target = operation_at(copy, index)
        for at in range(0, OPERATION_WORD_AT + 8, 8):
            store(target + at, load_acquire(source + at))
    fence_acquire()
    return serial if load_acquire(record + TRANSACTION_SERIAL_AT) == serial else 0


# --- its order ------------------------------------------------------------------------------------


@exported_cold
def commit_pledge(port: int, record: int, reference: int, leases: int, places: int) -> int:
    """Pledge what is acknowledged in this queue: how many, and where; or REVOKED.

    `leases` has a word for each operation of the record, by which commit_take_back restores it.
    """
    pledged = 0
    for index in range(operations_in(record)):
        address = operation_at(record, index)
        if load(address + OPERATION_QUEUE_AT) != reference | OPERATION_ACKS:
            continue
        position = load(address + OPERATION_WHERE_AT)
        lease = lease_pledge(port, position, load(address + OPERATION_WORD_AT))
        if lease < 0:
            return lease
        store(leases + index * 8, lease)
        store(places + pledged * 8, position)
        pledged += 1
    return pledged


@kernel
def commit_is_numbered(port: int, record: int, reference: int) -> int:
    """1 if what is published in this queue has numbers of streams; its chunks get them."""
    numbered = 0
    for index in range(operations_in(record)):
        address = operation_at(record, index)
        origin = load(address + OPERATION_WORD_AT)
        if load(address + OPERATION_QUEUE_AT) != reference:
            continue
        if origin >> ORIGIN_PRODUCER_SHIFT < PRODUCERS:
            continue
        chunk = load(address + OPERATION_WHERE_AT)
        published = load(load(port + PORT_DATA) + chunk + CHUNK_PUBLISHED_AT)
        numbered = int(chunk_number(port, chunk, origin, published) == OK)
    return numbered


@exported_cold
def commit_number(port: int, record: int, reference: int, holder: int, now_ns: int) -> int:
    """Number what is published in this queue: the series that it is of, or a code.

    0: it comes from elsewhere, and has the numbers and times that it had there.
    """
    if commit_is_numbered(port, record, reference):
        return 0
    series = series_take(port, holder)
    if series < 0:
        return series
    number = series_last(port, series)
    for index in range(operations_in(record)):
        address = operation_at(record, index)
        if load(address + OPERATION_QUEUE_AT) != reference:
            continue
        number += 1
        origin = series << ORIGIN_PRODUCER_SHIFT | number
        store_release(address + OPERATION_WORD_AT, origin)
        code = chunk_number(port, load(address + OPERATION_WHERE_AT), origin, now_ns)
        if code < 0:
            series_drop(port, series, holder)
            return code
    return series


@exported_cold
def commit_take_back(port: int, record: int, reference: int, leases: int) -> int:
    """It is not committed: what was pledged in this queue is as before; how many.

    `leases`: below 0 where nothing was pledged.
    """
    restored = 0
    for index in range(operations_in(record)):
        address = operation_at(record, index)
        lease = load(leases + index * 8)
        if lease >= 0 and load(address + OPERATION_QUEUE_AT) == reference | OPERATION_ACKS:
            position = load(address + OPERATION_WHERE_AT)
            word = load(address + OPERATION_WORD_AT)
            restored += lease_restore(port, position, word, lease)
    return restored


@kernel
def is_blocked(steps: int, reference: int) -> int:
    count = load(steps + STEPS_BLOCKED)
    if count >= STEPS_BLOCKED_MAX:
        return 1
    return is_listed(steps + STEPS_BLOCKED_AT, count, reference)


@kernel
def is_of_step(steps: int, step: int, reference: int) -> int:
    """1 if an operation on this queue, as the record has it, is one for this step."""
    if step == STEP_ACKNOWLEDGE:
        return int(reference & OPERATION_ACKS != 0)
    if reference & OPERATION_ACKS != 0:
        return 0
    if step == STEP_PUBLISH:
        return 1 - is_blocked(steps, reference)
    return int(reference != load(steps + STEPS_QUEUE))


@exported
def commit_walk(steps: int, step: int) -> int:
    """Begin at this step."""
    store(steps + STEPS_STEP, step)
    store(steps + STEPS_INDEX, 0)
    store(steps + STEPS_QUEUE, 0)
    return store(steps + STEPS_BLOCKED, 0)


@exported_cold
def commit_next(record: int, steps: int) -> int:
    """What is to be done next: STEP_*; 0 if all is done, or the rest waits for room.

    Acknowledging comes first: it never waits, and the room that it makes was counted on.
    """
    count = operations_in(record)
    step = load(steps + STEPS_STEP)
    index = load(steps + STEPS_INDEX)
    while step <= STEP_RETURN:
        while index < count:
            address = operation_at(record, index)
            index += 1
            reference = load_acquire(address + OPERATION_QUEUE_AT)
            if is_of_step(steps, step, reference):
                store(steps + STEPS_STEP, step)
                store(steps + STEPS_INDEX, index)
                store(steps + STEPS_QUEUE, reference & ~OPERATION_ACKS)
                store(steps + STEPS_WHERE, load_acquire(address + OPERATION_WHERE_AT))
                store(steps + STEPS_WORD, load_acquire(address + OPERATION_WORD_AT))
                return step
        if load(steps + STEPS_BLOCKED) != 0:
            return 0
        store(steps + STEPS_QUEUE, 0)
        step += 1
        index = 0
    return 0


@exported
def commit_block(steps: int) -> int:
    """The present one found no room: what comes after it in that queue waits as well."""
    count = load(steps + STEPS_BLOCKED)
    store(steps + STEPS_BLOCKED_AT + count * 8, load(steps + STEPS_QUEUE))
    return store(steps + STEPS_BLOCKED, count + 1)


@exported
def commit_is_blocked(steps: int) -> int:
    """How many queues had no room."""
    return load(steps + STEPS_BLOCKED)
