"""Programs that commit, and that let it happen for others, as ipc/commit/record.c does."""

from __future__ import annotations

from shmbroker.core import layout as at
from shmbroker.core.atomics import load, load_acquire, store, store_release
from shmbroker.core.batch import PLAIN_MARK
from shmbroker.core.codes import FULL, OK
from shmbroker.core.commit import (
    commit_add,
    commit_begin,
    commit_block,
    commit_copy,
    commit_decide,
    commit_is_blocked,
    commit_next,
    commit_number,
    commit_pledge,
    commit_take_back,
    commit_walk,
    operation_at,
    operations_in,
)
from shmbroker.core.run import reserve, unreserve
from shmbroker.core.take import finish, give_back_once, take_once
from shmbroker.core.transaction import (
    loan_placed,
    place_once,
    room_with,
    series_drop,
    transaction_unplaced,
)
from tests.explore.operation import ask, tell
from tests.explore.processes import (
    ACKED,
    END,
    GAVE_BACK,
    IS_IT_COMMITTED,
    IS_IT_MY_TURN,
    IS_THERE_ROOM,
    KEPT,
    PRODUCER_SHIFT,
    REFUSED,
    TAKEN,
    forget,
    producing,
    repair_all,
)
from tests.explore.ring import (
    BODY,
    BODY_BYTES,
    CHUNK_BYTES,
    COPY,
    KEPT_COPY,
    LEASES,
    MESSAGE,
    PORT,
    QUEUE,
    RECORD,
    STEPS,
    TRANSACTION,
)
from tests.explore.translation import program


@program
def fill_in(body: int) -> int:
    chunk = reserve(PORT, BODY_BYTES << at.SHAPE_BODY_SHIFT, PLAIN_MARK)
    store(load(PORT + at.PORT_DATA) + chunk + at.CHUNK_HEADER_BYTES, body)
    commit_add(RECORD, QUEUE, chunk, 0)
    return chunk


@program
def write_down(who: int, messages: int) -> int:
    """Take a message if there is one, to turn it into some others: how many are acknowledged."""
    acks = int(take_once(PORT, MESSAGE) == OK)
    commit_begin(RECORD, 0)
    if acks:
        position = load(MESSAGE + at.MESSAGE_POSITION)
        tell(TAKEN, position, load(load(MESSAGE + at.MESSAGE_BODY)))
        word = load(MESSAGE + at.MESSAGE_WORD)
        commit_add(RECORD, QUEUE | at.OPERATION_ACKS, position, word)
    for index in range(messages):
        fill_in((who << PRODUCER_SHIFT) | (index + 1))
    return acks


@program
def prepare(who: int, messages: int, acks: int) -> int:
    """Pledge, number, and wait for room: the series, or a code."""
    if commit_pledge(PORT, RECORD, QUEUE, LEASES, BODY) < 0:
        return -1
    series = commit_number(PORT, RECORD, QUEUE, who, 0)
    while series >= 0 and room_with(PORT, BODY, acks) < messages:
        if ask(IS_THERE_ROOM, FULL) == END:
            series_drop(PORT, series, who)
            series = -1
    return series


@program
def forget_steps() -> int:
    commit_walk(STEPS, 0)
    store(STEPS + at.STEPS_WHERE, 0)
    store(STEPS + at.STEPS_WORD, 0)
    return store(STEPS + at.STEPS_BLOCKED_AT, 0)


@program
def committing(who: int, messages: int) -> int:
    acks = write_down(who, messages)
    store_release(TRANSACTION, at.TRANSACTION_PREPARED)
    store(LEASES, -1)
    series = prepare(who, messages, acks)
    store(BODY, 0)
    if series < 0:
        commit_take_back(PORT, RECORD, QUEUE, LEASES)
        store(LEASES, 0)
        store_release(TRANSACTION, at.TRANSACTION_NONE)
        for index in range(messages):
            chunk = operation_at(RECORD, acks + messages - 1 - index)
            unreserve(PORT, load(chunk + at.OPERATION_WHERE_AT))
        if acks:
            position = load(operation_at(RECORD, 0) + at.OPERATION_WHERE_AT)
            tell(GAVE_BACK, position, give_back_once(PORT, MESSAGE))
        forget()
        return 0
    store(LEASES, 0)
    commit_decide(0, RECORD, TRANSACTION)
    forget()
    finishing(who)
    for index in range(messages):
        chunk = operation_at(RECORD, acks + index)
        loan_placed(PORT, load(chunk + at.OPERATION_WHERE_AT))
    return 0


@program
def committing_late(who: int, messages: int, deadline_ms: int) -> int:
    """The message is taken with a deadline, which may be over when it is pledged."""
    store(PORT + at.PORT_LEASE_DEADLINE, deadline_ms)
    return committing(who, messages)


@program
def walk(record: int, holder: int) -> int:
    """All that there is room for: OK, or FULL.  The helper, who is nobody, returns no series."""
    step = commit_next(record, STEPS)
    while step != 0:
        where = load(STEPS + at.STEPS_WHERE)
        word = load(STEPS + at.STEPS_WORD)
        if step == at.STEP_ACKNOWLEDGE:
            finish(PORT, where, word)
            tell(ACKED, where, OK)
        elif step == at.STEP_PUBLISH:
            code = place_once(PORT, where, word, int(holder != 0))
            if code != OK:
                tell(REFUSED, code)
                commit_block(STEPS)
        elif holder != 0:
            series_drop(PORT, 1, holder)
        else:
            return OK
        step = commit_next(record, STEPS)
    return FULL if commit_is_blocked(STEPS) else OK


@program
def finishing(holder: int) -> int:
    """Let all of what this participant has committed happen."""
    state = load_acquire(TRANSACTION)
    if state == at.TRANSACTION_NONE:
        return 0
    begin = at.STEP_ACKNOWLEDGE if state == at.TRANSACTION_COMMITTED else at.STEP_RETURN
    commit_walk(STEPS, begin)
    while walk(RECORD, holder) == FULL:
        ask(IS_THERE_ROOM, FULL)
        commit_walk(STEPS, begin)
    forget_steps()
    store_release(TRANSACTION, at.TRANSACTION_NONE)
    return 0


@program
def undertaking(holder: int, first: int, last: int) -> int:
    """When these have ended: finish what the one before has committed, then repair."""
    for each in range(first, last + 1):
        ask(IS_IT_MY_TURN, each)
    finishing(holder)
    repair_all()
    return 0


@program
def helping(whom: int) -> int:
    """Do what is committed while its owner may go on, as the journaler does."""
    ask(IS_IT_COMMITTED, whom)
    if commit_copy(RECORD, TRANSACTION, COPY) != 0:
        commit_walk(STEPS, at.STEP_ACKNOWLEDGE)
        walk(COPY, 0)
    return operations_in(COPY)


@program
def committing_first(who: int, last: int) -> int:
    """One message in a transaction, and then others, in its memory as soon as it is free."""
    committing(who, 1)
    return producing(who, 2, last)


@program
def keeping(whom: int) -> int:
    """Copy the message that is to be published, if it has no place yet, as the journaler does."""
    ask(IS_IT_COMMITTED, whom)
    if commit_copy(RECORD, TRANSACTION, COPY) != 0:
        where = load(operation_at(COPY, 0) + at.OPERATION_WHERE_AT)
        word = load(operation_at(COPY, 0) + at.OPERATION_WORD_AT)
        if transaction_unplaced(PORT, where, word, KEPT_COPY, CHUNK_BYTES) != 0:
            tell(KEPT, load(KEPT_COPY + at.CHUNK_HEADER_BYTES))
    return 0
