"""The job of one process: all that a compiled loop needs to know, as one tuple of integers.

C takes a pointer to it: native/job.h says the same, field by field. Numba takes it as it is.
Arrays go as addresses in both: Numba would count a reference to each array of a tuple, by an
atomic instruction, whenever the tuple is handed on: some 150 ns a message.
"""

import ctypes
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shmbroker.perf.harness.payload import Payload
from shmbroker.perf.harness.plan import GROUP_LENGTH, Plan
from shmbroker.perf.harness.role_result import Checksum
from shmbroker.perf.harness.task import MODES
from shmbroker.perf.harness.topology import Seat

BATCH = 64

PAUSES_STREAM = 64
"""Between two looks of a stream's ends. Who looks again at once takes each cache line out of the
other's hands as soon as it was written, and they proceed in lock-step. Million messages a second
one to one, in the two states of the machine that it was measured on (raw ping-pong 53 or 450 ns):

| pauses         |  1   |  8  | 32 | 64 | 128 |
|----------------|------|-----|----|----|-----|
| single, 53 ns  | 10.5 | 17  | 24 | 26 | 27  |
| single, 450 ns | 9.3  | 9.4 | 11 | 12 | 13  |
| batch, 53 ns   | 33   | 36  | 39 | 41 | 42  |
| batch, 450 ns  | 7.4  | 9.1 | 11 | 12 | 14  |

In ping-pong, where each pause is part of the round trip, it is one."""

TRIES_BEFORE_YIELDING = 2
"""In a crowd. Million messages a second with 0, 2 and 8: three to one 8, 13, 13 (450 ns); competing
17, 25, 25; broadcast 25, 20, 15 (53 ns)."""

UNTIL_STOPPED = -1
MESSAGE_WORDS, CURSOR_WORDS, TALLY_WORDS = 8, 4, 7

Bytes = NDArray[np.uint8]
Words = NDArray[np.int64]


class Job(NamedTuple):
    """The order of the fields is the interface; see native/job.h for what each is."""

    out: int
    incoming: int
    mode: int
    pauses: int
    crowded: int
    tries: int
    subscribed: int
    size: int
    period: int
    rows: int
    senders: int
    wanted: int
    batch: int
    check_every: int
    warmup: int
    groups: int
    group_length: int
    singles: int
    source: int
    expected: int
    room: int
    messages: int
    lengths: int
    cursor: int
    groups_ns: int
    singles_ns: int
    tally: int

    def for_c(self) -> Any:
        return (ctypes.c_int64 * len(self))(*self)


@dataclass(frozen=True, slots=True)
class Buffers:
    """The memory that a job refers to; it must outlive it."""

    source: Bytes
    expected: Bytes
    room: Bytes
    messages: Words
    lengths: Words
    cursor: Words
    groups_ns: Words
    singles_ns: Words
    tally: Words

    def received(self) -> Checksum:
        return Checksum(int(self.tally[0]), int(self.tally[1]))

    def finished_ns(self) -> int:
        """When a receiver had got its last message."""
        return int(self.tally[2])


def buffers_of(seat: Seat, plan: Plan) -> Buffers:
    task, payload = plan.task, plan.payload
    batch = min(BATCH, payload.period) if task.mode == "batch" else 1
    return Buffers(
        source=_rows(payload, 0 if seat.role == "responder" else seat.index),
        expected=np.concatenate([_rows(payload, each) for each in range(task.topology.senders)]),
        room=np.zeros((batch, task.size), np.uint8),
        messages=np.zeros((batch, MESSAGE_WORDS), np.int64),
        lengths=np.full(batch, task.size, np.int64),
        cursor=np.zeros(CURSOR_WORDS, np.int64),
        groups_ns=np.zeros(plan.groups, np.int64),
        singles_ns=np.zeros(plan.singles, np.int64),
        tally=np.zeros(TALLY_WORDS, np.int64),
    )


def job_of(seat: Seat, plan: Plan, buffers: Buffers, out: int, incoming: int) -> Job:
    """The job of a seat, given its memory and the addresses of its ports."""
    task = plan.task
    return Job(
        out=out,
        incoming=incoming,
        mode=MODES.index(task.mode),
        pauses=1 if task.topology.measures_latency else PAUSES_STREAM,
        crowded=int(plan.crowded),
        tries=TRIES_BEFORE_YIELDING,
        subscribed=int(task.topology.delivery == "to-all"),
        size=task.size,
        period=plan.payload.period,
        rows=len(buffers.source),
        senders=task.topology.senders,
        wanted=_wanted(seat, plan),
        batch=len(buffers.lengths),
        check_every=plan.batch,
        warmup=plan.warmup,
        groups=plan.groups,
        group_length=GROUP_LENGTH,
        singles=plan.singles,
        source=buffers.source.ctypes.data,
        expected=buffers.expected.ctypes.data,
        room=buffers.room.ctypes.data,
        messages=buffers.messages.ctypes.data,
        lengths=buffers.lengths.ctypes.data,
        cursor=buffers.cursor.ctypes.data,
        groups_ns=buffers.groups_ns.ctypes.data,
        singles_ns=buffers.singles_ns.ctypes.data,
        tally=buffers.tally.ctypes.data,
    )


def _wanted(seat: Seat, plan: Plan) -> int:
    if plan.task.topology.measures_latency:
        return plan.round_trips
    if seat.role == "sender":
        return plan.count
    return UNTIL_STOPPED if plan.task.topology.sharing else plan.arriving


def _rows(payload: Payload, sender: int) -> Bytes:
    """The messages that are ever sent in full: one period, or in mode loan its first."""
    if payload.mode != "loan":
        return payload.block(sender).copy()
    first = payload.messages(sender)[0]
    return np.frombuffer(first, np.uint8).reshape(1, payload.size).copy()
