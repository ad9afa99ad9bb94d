"""Two exchanges: which queues a key leads to, by bindings and by what is diverted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.model import topic_takes
from tests.support.settings_model.queue import QueueModel

EXCHANGES = ["x", "y"]


@dataclass(eq=False)
class RoutesModel:
    bindings: list[tuple[str, str, QueueModel]] = field(default_factory=list)
    diverts: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    """Where from, the key, where to; and whether only there."""

    def route(self, exchange: str, key: str) -> set[QueueModel]:
        found: set[QueueModel] = set()
        pending, seen = [exchange], {exchange}
        while pending:
            source = pending.pop()
            diverted = list(self.diverted(source, key))
            if not any(exclusive for _, exclusive in diverted):
                found |= {
                    queue
                    for name, pattern, queue in self.bindings
                    if name == source and topic_takes(pattern, key)
                }
            else:
                diverted = [each for each in diverted if each[1]]
            for to, _ in diverted:
                if to not in seen:
                    seen.add(to)
                    pending.append(to)
        return found

    def diverted(self, source: str, key: str) -> Iterator[tuple[str, bool]]:
        for (name, pattern, to), exclusive in self.diverts.items():
            if name == source and topic_takes(pattern, key):
                yield to, exclusive

    def forget(self, queue: QueueModel) -> None:
        self.bindings = [each for each in self.bindings if each[2] is not queue]
