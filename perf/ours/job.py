"""The job of one process: all that a compiled loop needs to know, as one tuple.

Numba takes the tuple as it is. C takes a pointer to the same fields, each 64 bits wide: an
integer, or the address of an array (native/job.h). The order of the fields is the interface.
"""

import ctypes
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shmbroker.perf.payload import Payload
from shmbroker.perf.plan import GROUP_LENGTH, Plan
from shmbroker.perf.role_result import Checksum
from shmbroker.perf.task import MODES
from shmbroker.perf.topology import Seat

BATCH = 64
UNTIL_STOPPED = -1
MESSAGE_WORDS, CURSOR_WORDS = 8, 4

Bytes = NDArray[np.uint8]
Words = NDArray[np.int64]


class Job(NamedTuple):
    """See native/job.h for what each field is."""

    out: int
    incoming: int
    mode: int
    crowded: int
    subscribed: int
    size: int
    period: int
    rows: int
    senders: int
    count: int
    batch: int
    check_every: int
    warmup: int
    groups: int
    group_length: int
    singles: int
    source: Bytes
    expected: Bytes
    room: Bytes
    messages: Words
    lengths: Words
    cursor: Words
    groups_ns: Words
    singles_ns: Words
    outcome: Words

    def for_c(self) -> Any:
        """The structure that C sees; the arrays must outlive it."""
        fields = [each if isinstance(each, int) else each.ctypes.data for each in self]
        return (ctypes.c_int64 * len(fields))(*fields)

    def finished_ns(self) -> int:
        """When a receiver had got its last message."""
        return int(self.outcome[2])

    def received(self) -> Checksum:
        return Checksum(int(self.outcome[0]), int(self.outcome[1]))


def job_of(seat: Seat, plan: Plan, out: int = 0, incoming: int = 0) -> Job:
    """The job of a seat, given the addresses of its ports."""
    task, payload = plan.task, plan.payload
    rows = _rows(payload, 0)
    batch = min(BATCH, payload.period) if task.mode == "batch" else 1
    return Job(
        out=out,
        incoming=incoming,
        mode=MODES.index(task.mode),
        crowded=int(plan.crowded),
        subscribed=int(task.topology.delivery == "to-all"),
        size=task.size,
        period=payload.period,
        rows=len(rows),
        senders=task.topology.senders,
        count=_count(seat, plan),
        batch=batch,
        check_every=plan.batch,
        warmup=plan.warmup,
        groups=plan.groups,
        group_length=GROUP_LENGTH,
        singles=plan.singles,
        source=_rows(payload, 0 if seat.role == "responder" else seat.index),
        expected=np.concatenate([_rows(payload, each) for each in range(task.topology.senders)]),
        room=np.zeros((batch, task.size), np.uint8),
        messages=np.zeros((batch, MESSAGE_WORDS), np.int64),
        lengths=np.full(batch, task.size, np.int64),
        cursor=np.zeros(CURSOR_WORDS, np.int64),
        groups_ns=np.zeros(plan.groups, np.int64),
        singles_ns=np.zeros(plan.singles, np.int64),
        outcome=np.zeros(3, np.int64),
    )


def _count(seat: Seat, plan: Plan) -> int:
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
