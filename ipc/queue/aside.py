"""Messages that are set aside because their dead-letter or expiry queue is full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.doctor.finding import Finding

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

TARGETS = ("dead_letter", "expiry_queue")


@dataclass(frozen=True, slots=True)
class SetAside:
    """Those of one queue."""

    queue: str
    count: int
    targets: tuple[str, ...]
    """The names of its dead-letter and expiry queues."""

    @property
    def problem(self) -> str:
        messages = "message is" if self.count == 1 else "messages are"
        full = " or ".join(repr(each) for each in self.targets)
        return f"{self.count:,} {messages} set aside: no room in {full}"


def of_queue(broker: Broker, name: str) -> SetAside | None:
    """None if nothing is set aside in this queue."""
    queue = broker.queue(name)
    count = queue.statistics().set_aside
    if count == 0:
        return None
    explained = queue.explain()
    named = [explained[target].value for target in TARGETS]
    return SetAside(name, count, tuple(str(each) for each in named if each))


def of_vhost(broker: Broker) -> Iterator[SetAside]:
    """All queues of a vhost in which something is set aside."""
    for queue in broker.queues():
        with suppress(NotFound):  # deleted meanwhile
            if queue.depth and (found := of_queue(broker, queue.name)):
                yield found


def findings(broker: Broker) -> Iterator[Finding]:
    for found in of_vhost(broker):
        target = found.targets[0] if found.targets else found.queue
        yield Finding(
            "warning",
            f"queue {found.queue!r} of vhost {broker.vhost!r}",
            found.problem,
            f"make room: shmbroker --vhost {broker.vhost} consumer --destination queue://{target}, "
            f"or queue retry, move or purge; a full queue takes no more of them",
        )
