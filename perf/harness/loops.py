"""The loops of the Python peers: one per role, as tight as Python allows.

Every name used per message is a local. ``relax`` is None when each process has a core of its
own: whoever finds nothing to do tries again at once; otherwise it is ``os.sched_yield``.
"""

import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice, repeat

import numpy as np

from shmbroker.perf.harness.gate import Gate
from shmbroker.perf.harness.payload import STOP
from shmbroker.perf.harness.plan import GROUP_LENGTH, Plan
from shmbroker.perf.harness.port import Port
from shmbroker.perf.harness.role_result import Checksum, RoleResult
from shmbroker.perf.harness.tally import Tally
from shmbroker.perf.harness.topology import Role, Seat

Relax = Callable[[], object] | None
Loop = Callable[[Port, Seat, Plan, Gate, Relax], RoleResult]

STOP_PAUSE_S = 0.002
_now = time.perf_counter_ns


def initiate(port: Port, seat: Seat, plan: Plan, gate: Gate, relax: Relax) -> RoleResult:
    """Send, await the echo; times by the rule in plan.py."""
    stream = cycle(plan.payload.messages(seat.index))
    tally = Tally(plan.payload)
    gate.start()
    started = _now()
    for length in _lengths(plan.warmup):
        _exchange(port, stream, length, tally, relax)
    groups = []
    for _ in repeat(None, plan.groups):
        groups.append(_exchange(port, stream, GROUP_LENGTH, tally, relax))
    singles: list[int] = []
    for length in _lengths(plan.singles):
        _exchange_singly(port, stream, length, tally, relax, singles)
    sent = Checksum(plan.round_trips, plan.payload.stamp_total(seat.index, plan.round_trips))
    return RoleResult(
        started,
        _now(),
        sent,
        tally.checksum(),
        np.array(groups, np.int64),
        np.array(singles, np.int64),
    )


def _lengths(total: int) -> list[int]:
    """Total, cut into groups."""
    full, rest = divmod(total, GROUP_LENGTH)
    return [GROUP_LENGTH] * full + [rest] * bool(rest)


def _exchange(port: Port, stream: Iterator[bytes], length: int, tally: Tally, relax: Relax) -> int:
    """``length`` round trips; returns their time together."""
    send, receive, keep, full = port.send, port.receive, tally.keep, port.full
    before = _now()
    for message in islice(stream, length):
        try:
            while send(message) is False:
                if relax:
                    relax()
        except full:
            _send_later(port, message, relax)
        reply = receive()
        while reply is None:
            if relax:
                relax()
            reply = receive()
        keep(reply)
    after = _now()
    tally.settle()
    return after - before


def _exchange_singly(
    port: Port, stream: Iterator[bytes], length: int, tally: Tally, relax: Relax, times: list[int]
) -> None:
    """``length`` round trips; appends the time of each."""
    send, receive, keep, full = port.send, port.receive, tally.keep, port.full
    now, note = _now, times.append
    for message in islice(stream, length):
        before = now()
        try:
            while send(message) is False:
                if relax:
                    relax()
        except full:
            _send_later(port, message, relax)
        reply = receive()
        while reply is None:
            if relax:
                relax()
            reply = receive()
        note(now() - before)
        keep(reply)
    tally.settle()


def respond(port: Port, seat: Seat, plan: Plan, gate: Gate, relax: Relax) -> RoleResult:
    """Send back what arrives. It checks nothing: the initiator checks what comes back."""
    send, receive, full = port.send, port.receive, port.full
    gate.start()
    started = _now()
    for _ in repeat(None, plan.round_trips):
        message = receive()
        while message is None:
            if relax:
                relax()
            message = receive()
        try:
            while send(message) is False:  # type: ignore[arg-type]  # an echo is never converted
                if relax:
                    relax()
        except full:
            _send_later(port, message, relax)  # type: ignore[arg-type]
    return RoleResult(started, _now())


def _send_later(port: Port, message: bytes, relax: Relax) -> None:
    """Send what there was no room for, to a port that says so by an exception."""
    while True:
        if relax:
            relax()
        try:
            if port.send(message) is not False:
                return
        except port.full:
            continue


def send_all(port: Port, seat: Seat, plan: Plan, gate: Gate, relax: Relax) -> RoleResult:
    """Send this sender's whole stream, then the stop messages where receivers compete."""
    messages = plan.payload.messages(seat.index)
    by_batch = plan.task.mode == "batch" and port.send_many
    gate.start()
    started = _now()
    if by_batch:
        _send_batches(port, messages, plan, relax)
    else:
        _send_singly(port, messages, plan, relax)
    finished = _now()
    if plan.task.topology.sharing:
        _send_stops(port, gate)
    total = plan.payload.stamp_total(seat.index, plan.count)
    return RoleResult(started, finished, Checksum(plan.count, total))


def _send_singly(port: Port, messages: list[bytes], plan: Plan, relax: Relax) -> None:
    send, full = port.send, port.full
    for message in islice(cycle(messages), plan.count):
        try:
            while send(message) is False:
                if relax:
                    relax()
        except full:
            _send_later(port, message, relax)


def _send_batches(port: Port, messages: list[bytes], plan: Plan, relax: Relax) -> None:
    send_many, length = port.send_many, plan.batch
    assert send_many is not None
    batches = [messages[at : at + length] for at in range(0, len(messages), length)]
    for batch in islice(cycle(batches), plan.count // length):
        taken = send_many(batch)
        while taken is not None and taken < len(batch):
            if relax:
                relax()
            batch = batch[taken:]
            taken = send_many(batch)


def _send_stops(port: Port, gate: Gate) -> None:
    """Until every receiver has one: a batch may swallow several, and so may a fair scheduler."""
    while missing := gate.missing():
        try:
            for _ in range(missing):
                port.send(STOP)
        except port.full:
            pass  # they have much to do still
        time.sleep(STOP_PAUSE_S)


def receive_all(port: Port, seat: Seat, plan: Plan, gate: Gate, relax: Relax) -> RoleResult:
    """Receive the whole stream, or, competing with others, until a stop message."""
    tally = Tally(plan.payload)
    gate.start()
    started = _now()
    if plan.task.topology.sharing:
        finished = _receive_share(port, plan, tally, relax)
        gate.leave(seat.index)
    elif plan.task.mode == "batch" and port.receive_many:
        _receive_batches(port, plan, tally, relax)
        finished = _now()
    else:
        _receive_singly(port, plan, tally, relax)
        finished = _now()
    return RoleResult(started, finished, received=tally.checksum())


def _receive_singly(port: Port, plan: Plan, tally: Tally, relax: Relax) -> None:
    receive, keep, wanted = port.receive, tally.keep, plan.arriving
    while wanted:
        length = min(wanted, plan.batch)
        for _ in repeat(None, length):
            message = receive()
            while message is None:
                if relax:
                    relax()
                message = receive()
            keep(message)
        tally.settle()
        wanted -= length


def _receive_batches(port: Port, plan: Plan, tally: Tally, relax: Relax) -> None:
    receive_many, keep_all, wanted = port.receive_many, tally.keep_all, plan.arriving
    assert receive_many is not None
    while wanted:
        messages = receive_many()
        if not messages:
            if relax:
                relax()
            continue
        keep_all(messages)
        tally.settle()
        wanted -= len(messages)


def _receive_share(port: Port, plan: Plan, tally: Tally, relax: Relax) -> int:
    """Receive until a stop message; returns when the last real message had arrived."""
    by_batch = plan.task.mode == "batch" and port.receive_many
    receive, receive_many, keep = port.receive, port.receive_many, tally.keep
    stop_length, finished, kept = len(STOP), _now(), 0
    while True:
        messages = receive_many() if by_batch and receive_many else (receive(),)
        if not messages and relax:
            relax()
        for message in messages:
            if message is None:
                if relax:
                    relax()
            elif len(message) == stop_length:
                return _now() if kept else finished
            else:
                keep(message)
                kept += 1
        if kept >= plan.batch:
            tally.settle()
            finished, kept = _now(), 0


LOOPS: dict[Role, Loop] = {
    "initiator": initiate,
    "responder": respond,
    "sender": send_all,
    "receiver": receive_all,
}
