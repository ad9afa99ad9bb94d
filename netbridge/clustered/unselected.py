"""Messages that wait where no consumer takes them, and the settings that would free them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from shmbroker.ipc.base.errors import NotFound, SelectorError
from shmbroker.ipc.base.names import OWN
from shmbroker.ipc.doctor.finding import Finding
from shmbroker.ipc.request.return_address import name_end
from shmbroker.ipc.selector.copied import matches_copied
from shmbroker.ipc.selector.selector import Selector
from shmbroker.netbridge.cluster.advert import SELECTORS_MAX

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

LOOKED_AT: Final = 1000
"""Messages of a queue, from the oldest on."""


@dataclass(frozen=True, slots=True)
class Unselected:
    """Those of one queue."""

    queue: str
    count: int
    selectors: tuple[str, ...]
    """Of its consumers; none: it has no consumer."""
    lacks: tuple[str, ...]
    """Settings without which they do not go to another node of the cluster."""

    @property
    def problem(self) -> str:
        messages = "message waits" if self.count == 1 else "messages wait"
        if not self.selectors:
            return f"{self.count:,} {messages}, and nobody takes from it"
        return f"{self.count:,} {messages} that no selector of its consumers matches"

    def remedy(self, is_in_cluster: bool) -> str:
        here = "start a consumer that takes them, or move them: shmbroker queue move"
        if not is_in_cluster:
            return here
        if len(self.selectors) > SELECTORS_MAX:
            return f"{here}. A node with more than {SELECTORS_MAX} selectors of a queue keeps them"
        if not self.lacks:
            return f"they go to a node with a consumer that takes them; or {here}"
        return (
            f"{here}; or make the queue with {' and '.join(self.lacks)}: then they go to a node "
            "with a consumer that takes them"
        )


def of_vhost(broker: Broker) -> Iterator[Unselected]:
    """All queues in which messages wait that none of the consumers takes; in a cluster also those
    without consumers."""
    references = {row.name: row.reference for row in broker._catalog.queues()}
    taken = broker._participants.taken(list(references.values()))
    is_in_cluster = bool(name_end(broker))
    for queue in broker.queues():
        if queue.name.startswith(OWN) or not queue.depth or queue.name not in references:
            continue
        selectors = taken.get(references[queue.name])
        with suppress(NotFound, SelectorError):  # deleted meanwhile; a text that nobody can use
            depth = broker.queue(queue.name).statistics().depth
            if selectors is None and is_in_cluster and depth:
                yield Unselected(queue.name, depth, (), _lacks(broker, queue.name, False))
            elif selectors and (count := _count(broker, queue.name, selectors)):
                lacks = _lacks(broker, queue.name, True)
                yield Unselected(queue.name, count, tuple(sorted(selectors)), lacks)


def _lacks(broker: Broker, name: str, is_consumed: bool) -> tuple[str, ...]:
    settings = broker.queue(name).explain()
    lacks = []
    if settings["redistribution_delay"].value is None:
        lacks.append("redistribution_delay=5s")
    if is_consumed and settings["redistribution_filters"].value != "match":
        lacks.append("redistribution_filters=match")
    return tuple(lacks)


def _count(broker: Broker, name: str, selectors: Collection[str]) -> int:
    wanted = [Selector(each) for each in selectors]
    messages = islice(broker.queue(name).browse(), LOOKED_AT)
    return sum(not any(matches_copied(each, message) for each in wanted) for message in messages)


def findings(broker: Broker) -> Iterator[Finding]:
    is_in_cluster = bool(name_end(broker))
    for found in of_vhost(broker):
        yield Finding(
            "note",
            f"queue {found.queue!r} of vhost {broker.vhost!r}",
            found.problem,
            found.remedy(is_in_cluster),
        )
