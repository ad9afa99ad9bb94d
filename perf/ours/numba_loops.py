"""The loops in Numba: perf/native over again, as a user's own @njit code.

Everything is an address, and is read by `load`: an array that is handed on or viewed as another
type costs Numba reference counts and calls in the midst of the loop.

Compiled once and kept on disk, in the kernels' own cache folder (shmbroker.ipc.build.jit): Numba's
cache by itself would not notice that a kernel has changed.
"""

import hashlib
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache

from shmbroker.core.codes import EMPTY, FULL, OK, REVOKED
from shmbroker.core.layout import GATE_FLEETING, MESSAGE_BODY, MESSAGE_BYTES, MESSAGE_LENGTH
from shmbroker.core.llvm import extern, intrinsics
from shmbroker.ipc.build.jit import KernelLocator, digest
from shmbroker.kernels import (
    ack,
    ack_many,
    cursor_next,
    cursor_open,
    cursor_release,
    loan,
    loan_body,
    pause,
    publish,
    publish_chunk,
    publish_many,
    receive,
    take,
    take_many,
    yield_processor,
)
from shmbroker.perf.harness.task import MODES
from shmbroker.perf.ours.job import Job

SINGLE, COMBINED, BATCH, LOAN = (MODES.index(mode) for mode in MODES)
STOPPED, DIFFERENT = 1, -1000
RELEASE_EVERY = 32
CLOCK_MONOTONIC = 1

COUNT, TOTAL, FINISHED, UNCHECKED, UNRELEASED, CLOCK = range(0, 48, 8)
"""Where struct tally of native/job.h has them."""

clock_gettime: Any = extern("clock_gettime", 2)
load: Any = intrinsics()["load"]
store: Any = intrinsics()["store"]
copy: Any = intrinsics()["copy"]


class LoopLocator(KernelLocator):
    def get_source_stamp(self) -> str:
        return digest() + hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


class LoopCacheImplementation(CompileResultCacheImpl):
    _locator_classes: list[Any] = [LoopLocator]  # noqa: RUF012  Numba's interface


class LoopCache(FunctionCache):
    _impl_class = LoopCacheImplementation


def loop(function: Any) -> Any:
    """A loop that is called from Python: compiled once for all runs."""
    made: Any = njit(nogil=True, error_model="numpy")(function)
    cache: Any = LoopCache
    made._cache = cache(function)
    return made


step = njit(error_model="numpy", forceinline=True)
"""A part of a loop."""


# --- waiting, the clock, the tally -----------------------------------------------------------


@step
def relax(job: Job, tries: int) -> int:
    """Before the next try; with more processes than cores, whom we wait for may need ours."""
    if job.crowded and tries >= job.tries:
        yield_processor()
    else:
        for _ in range(job.pauses):
            pause()
    return tries + 1


@step
def now_ns(job: Job) -> int:
    clock = job.tally + CLOCK
    clock_gettime(CLOCK_MONOTONIC, clock)
    return int(load(clock) * 1_000_000_000 + load(clock + 8))


@step
def add(address: int, increment: int) -> int:
    return int(store(address, load(address) + increment))


@njit(error_model="numpy")
def is_same(job: Job, body: int) -> bool:
    """Compare a message in full with what was sent."""
    stamp = load(body)
    sender, row = stamp >> 32, stamp & 0xFFFFFFFF
    if sender < 0 or sender >= job.senders or row >= job.rows:
        return False
    sent = job.expected + (sender * job.rows + row) * job.size
    for at in range(0, job.size, 8):  # noqa: SIM110  Numba knows no generators
        if load(body + at) != load(sent + at):
            return False
    return True


@step
def keep(job: Job, body: int) -> int:
    """Count a message, and now and then look at all of it: OK or DIFFERENT."""
    stamp = load(body)
    add(job.tally + COUNT, 1)
    add(job.tally + TOTAL, stamp)
    unchecked = add(job.tally + UNCHECKED, 1)
    if job.mode == LOAN:
        if stamp & 0xFFFFFFFF != 0:
            return OK
    elif unchecked < job.check_every:
        return OK
    store(job.tally + UNCHECKED, 0)
    return OK if is_same(job, body) else DIFFERENT


# --- sending ---------------------------------------------------------------------------------


@step
def send_copy(job: Job, body: int) -> int:
    tries = 0
    while True:  # and not two calls of publish: each is a copy of it
        code: int = publish(job.out, body, job.size)
        if code != FULL:
            return code
        tries = relax(job, tries)


@step
def send_loan(job: Job, body: int, stamp: int) -> int:
    """Write the message into the ring's own memory: the stamp, or all of it."""
    chunk = loan(job.out, job.size)
    if chunk < 0:
        return int(chunk)
    loaned = loan_body(job.out, chunk)
    if stamp & 0xFFFFFFFF == 0:
        copy(loaned, body, job.size)
    else:
        store(loaned, stamp)
    tries = 0
    while True:
        code: int = publish_chunk(job.out, chunk)
        if code != FULL:
            return code
        tries = relax(job, tries)


@step
def send_number(job: Job, source: int, number: int) -> int:
    index = number % job.period
    if job.mode == LOAN:
        return send_loan(job, source, load(source) + index)
    return send_copy(job, source + index * job.size)


@step
def send_batch(job: Job, source: int, number: int) -> int:
    tries = 0
    sent = 0
    while sent < job.batch:
        body = source + (number % job.period + sent) * job.size
        code = publish_many(job.out, body, job.lengths, job.batch - sent)
        if code == FULL:
            tries = relax(job, tries)
        elif code < 0:
            return int(code)
        else:
            sent += code
    return sent


@loop
def send(job: Job) -> int:
    """A sender's whole stream."""
    source = job.source
    number = 0
    while number < job.wanted:
        if job.mode == BATCH:
            code = send_batch(job, source, number)
            number += job.batch
        else:
            code = send_number(job, source, number)
            number += 1
        if code < 0:
            return code
    return OK


# --- ping-pong -------------------------------------------------------------------------------


@step
def take_next(job: Job) -> int:
    tries = 0
    while True:
        code: int = take(job.incoming, job.messages)
        if code != EMPTY:
            return code
        tries = relax(job, tries)


@step
def receive_next(job: Job) -> int:
    """The length of the next message, which is in room and acknowledged."""
    tries = 0
    message, room = job.messages, job.room
    while True:
        length: int = receive(job.incoming, message, room, job.size)
        if length != EMPTY:
            return length
        tries = relax(job, tries)


@step
def await_reply(job: Job) -> int:
    """The reply, copied to room but in mode loan, and acknowledged."""
    if job.mode == COMBINED:
        length = receive_next(job)
        if length != job.size:
            return DIFFERENT if length >= 0 else length
        body = job.room
    else:
        code = take_next(job)
        if code < 0:
            return code
        body = load(job.messages + MESSAGE_BODY)
        if load(job.messages + MESSAGE_LENGTH) != job.size:
            return DIFFERENT
    stamp = load(body)
    add(job.tally + COUNT, 1)
    add(job.tally + TOTAL, stamp)
    if job.mode == COMBINED:
        return OK
    if job.mode == SINGLE:
        copy(job.room, body, job.size)
    elif stamp & 0xFFFFFFFF == 0 and not is_same(job, body):
        return DIFFERENT
    return int(ack(job.incoming, job.messages))


@step
def exchange(job: Job, trips: int) -> int:
    """So many round trips; the time of all together, or a code."""
    source = job.source
    before = now_ns(job)
    for _ in range(trips):
        code = send_number(job, source, load(job.tally + COUNT))
        if code >= 0:
            code = await_reply(job)
        if code < 0:
            return code
    time_ns = now_ns(job) - before
    if trips > 0 and job.mode != LOAN and not is_same(job, job.room):
        return DIFFERENT
    return time_ns


@loop
def initiate(job: Job) -> int:
    """Times by the rule in plan.py."""
    time_ns = 0
    # one loop for the three parts of the plan, so that `exchange` is compiled in once
    for part in range(1 + job.groups + job.singles):
        trips = job.warmup
        if part > 0:
            trips = job.group_length if part <= job.groups else 1
        time_ns = exchange(job, trips)
        if time_ns < 0:
            break
        if part > job.groups:
            store(job.singles_ns + (part - 1 - job.groups) * 8, time_ns)
        elif part > 0:
            store(job.groups_ns + (part - 1) * 8, time_ns)
    return min(time_ns, OK)


@step
def reply_and_ack(job: Job) -> int:
    """Reply first, acknowledge then: if we die in between, somebody else replies once more."""
    code = take_next(job)
    if code < 0:
        return code
    request = load(job.messages + MESSAGE_BODY)
    stamp = load(request)
    code = send_loan(job, request, stamp) if job.mode == LOAN else send_copy(job, request)
    if code < 0:
        return code
    return int(ack(job.incoming, job.messages))


@step
def receive_and_reply(job: Job) -> int:
    length = receive_next(job)
    if length < 0:
        return length
    return send_copy(job, job.room)


@loop
def respond(job: Job) -> int:
    for _ in range(job.wanted):
        code = receive_and_reply(job) if job.mode == COMBINED else reply_and_ack(job)
        if code < 0:
            return code
    return OK


# --- receiving: how each kind of receiver looks once: OK, STOPPED, EMPTY or an error ------------


@step
def look_single(job: Job) -> int:
    """Take, copy or in mode loan read in place, acknowledge."""
    message = job.messages
    code: int = take(job.incoming, message)
    if code != OK:
        return code
    body = load(job.messages + MESSAGE_BODY)
    kept = STOPPED
    if load(job.messages + MESSAGE_LENGTH) == job.size:
        if job.mode != LOAN:
            copy(job.room, body, job.size)
            body = job.room
        kept = keep(job, body)
    code = ack(job.incoming, message)
    return kept if code == OK else code


@step
def look_combined(job: Job) -> int:
    room = job.room
    length: int = receive(job.incoming, job.messages, room, job.size)
    if length < 0:
        return length
    return keep(job, room) if length == job.size else STOPPED


@step
def look_batch(job: Job) -> int:
    messages, result = job.messages, OK
    taken = take_many(job.incoming, messages, job.batch)
    if taken < 0:
        return int(taken)
    for index in range(taken):
        message, room = messages + index * MESSAGE_BYTES, job.room + index * job.size
        if load(message + MESSAGE_LENGTH) != job.size:
            result = STOPPED
            break
        copy(room, load(message + MESSAGE_BODY), job.size)
        result = keep(job, room)
        if result != OK:
            break
    return result if ack_many(job.incoming, messages, taken) == taken else REVOKED


@step
def release(job: Job) -> int:
    store(job.tally + UNRELEASED, 0)
    return min(int(cursor_release(job.cursor)), OK)


@step
def look_subscribed(job: Job) -> int:
    code: int = cursor_next(job.cursor, job.messages)
    if code == EMPTY and load(job.tally + UNRELEASED):
        return EMPTY if release(job) == OK else REVOKED
    if code != OK:
        return code
    if load(job.messages + MESSAGE_LENGTH) != job.size:
        return DIFFERENT
    body = load(job.messages + MESSAGE_BODY)
    if job.mode != LOAN:
        copy(job.room, body, job.size)
        body = job.room
    code = keep(job, body)
    if code == OK and add(job.tally + UNRELEASED, 1) == RELEASE_EVERY:
        code = release(job)
    return code


@loop
def subscribe(job: Job) -> int:
    """Before the first message is sent, so that none is missed."""
    return int(cursor_open(job.cursor, job.incoming, GATE_FLEETING, 0))


@step
def note_time(job: Job, timed: int) -> int:
    """Now, if something has arrived since the last time; how much had by now."""
    count: int = load(job.tally + COUNT)
    if count != timed:
        store(job.tally + FINISHED, now_ns(job))
    return count


@loop
def receive_all(job: Job) -> int:
    """The stream is over when we have all, or at a stop; its end is when the last came."""
    store(job.tally + FINISHED, now_ns(job))
    timed, tries, code = 0, 0, OK
    while code != STOPPED and load(job.tally + COUNT) != job.wanted:
        if job.subscribed:
            code = look_subscribed(job)
        elif job.mode == COMBINED:
            code = look_combined(job)
        elif job.mode == BATCH:
            code = look_batch(job)
        else:
            code = look_single(job)
        if code == OK:
            tries = 0
        elif code == EMPTY:
            timed = note_time(job, timed)
            tries = relax(job, tries)
        elif code < 0:
            return code
    note_time(job, timed)
    return OK


LOOPS = {
    "initiate": initiate,
    "respond": respond,
    "send": send,
    "receive": receive_all,
    "subscribe": subscribe,
}
