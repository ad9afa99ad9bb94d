"""The gates of a queue: who has not passed which messages yet, and so keeps them in the ring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shmbroker.core.layout import GATES
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import Error, NotFound
from shmbroker.ipc.doctor.finding import Finding
from shmbroker.ipc.follower.header import KINDS

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

MISSING = "(min-insync)"
"""Of a gate that stands for replicas that are needed and not in sync."""
FULL_PERCENT = 75
"""A gate that is so far behind, in percent of the slots, is told of."""


@dataclass(frozen=True, slots=True)
class Gate:
    kind: str
    """subscription, journal, pager, replica or link."""
    name: str
    is_lasting: bool
    """It stays when its owner dies or leaves."""
    owner: int | None
    """A participant; None: nobody, until somebody takes it."""
    since: int
    """When that one took it: nanoseconds since the epoch, 0 unknown."""
    position: int
    behind: int
    """Messages that it has not passed."""
    holds_head: bool
    """It is why the ring keeps messages that were acknowledged."""
    index: int
    """In its queue."""
    confirms: bool
    """Confirms of the queue wait for it."""
    holds_barrier: bool
    """It is why messages are not confirmed."""

    @classmethod
    def of(cls, told: Any) -> Gate:
        kind = KINDS[told.kind] if 0 <= told.kind < len(KINDS) else str(told.kind)
        name = ffi.string(told.name).decode(errors="replace")
        return cls(
            kind,
            name,
            bool(told.lasting),
            told.owner or None,
            told.since,
            told.position,
            told.behind,
            bool(told.holds),
            told.index,
            bool(told.confirms),
            bool(told.holds_barrier),
        )

    def __str__(self) -> str:
        called = f"{self.kind} {self.name!r}" if self.name else self.kind
        owner = "nobody" if self.owner is None else f"participant {self.owner}"
        barrier = ", in the barrier" if self.confirms else ""
        if self.holds_barrier:
            barrier = ", holds the barrier back"
        holds = ", holds head back" if self.holds_head else ""
        return f"{called} of {owner}, {self.behind:,} behind{barrier}{holds}"


def gates_of(queue: Any) -> tuple[Gate, ...] | int:
    """All of a queue of C, or an error code."""
    told = ffi.new("sb_gate[]", GATES)
    count: int = lib.sb_gates(queue, told, GATES)
    return count if count < 0 else tuple(Gate.of(told[each]) for each in range(count))


def findings(broker: Broker) -> Iterator[Finding]:
    """Gates in nobody's hand that hold something back, and gates that are nearly a ring behind;
    and queues that cannot be looked at."""
    for queue in broker.queues():
        try:
            gates = broker.queue(queue.name).gates()
        except NotFound:  # deleted meanwhile
            continue
        except Error as error:
            subject = f"queue {queue.name!r} of vhost {broker.vhost!r}"
            yield Finding("error", subject, str(error), RESTORE.format(vhost=broker.vhost))
            continue
        for gate in gates:
            finding = found(broker.vhost, queue.name, queue.slots, gate)
            if finding is not None:
                yield finding


def found(vhost: str, queue: str, slots: int, gate: Gate) -> Finding | None:
    subject = f"queue {queue!r} of vhost {vhost!r}"
    if gate.holds_barrier and gate.owner is None and gate.kind != "journal":
        problem = f"its gate {gate}: nothing is confirmed or delivered before it has moved"
        return Finding("error", subject, problem, REMEDIES.get(gate.kind, REOPEN))
    if not gate.holds_head:
        return None
    if gate.owner is None:
        problem = f"its gate {gate}: it keeps messages that were acknowledged"
        return Finding("note", subject, problem, REMEDIES.get(gate.kind, REOPEN))
    if gate.behind * 100 < slots * FULL_PERCENT:
        return None
    problem = f"its gate {gate}: publishers will soon find no room"
    return Finding("warning", subject, problem, f"see what participant {gate.owner} waits for")


RESTORE = (
    "stop its broker, delete the vhost (shmbroker vhost delete {vhost} --yes), and start the "
    "broker: what is durable comes back from the journal"
)
REOPEN = "start again what had it, or delete the queue"
REMEDIES = {
    "journal": "start a broker: shmbroker run DIR",
    "pager": "start a broker: shmbroker run DIR",
    "replica": "start it again, or drop it",
}
