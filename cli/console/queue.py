"""One queue as its page shows it: statistics, settings, who has it open, gates, latencies."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from shmbroker.cli.fields import statistics_fields
from shmbroker.cli.participants import fields as participant_fields
from shmbroker.cli.participants import joined
from shmbroker.cli.recording import latency_fields
from shmbroker.ipc.base.errors import Error

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.latency.latency import Histogram
    from shmbroker.ipc.queue.queue import Queue

WAITED: Final = "publish-take"
STEPS: Final = 2
"""Rows of the heat map for each doubling of the time."""


def fields(broker: Broker, name: str, critical: str | None) -> dict[str, Any]:
    """An Error: there is no such queue."""
    found = broker.queue(name)
    settings = found.explain()
    told = statistics_fields(
        found.name, found.slots, found.is_paused, critical, settings["replicate"].value,
        found.statistics(), found.gates(), found.origins(),
    )  # fmt: skip
    return {
        **told,
        "settings": {key: {"value": e.value, "source": e.source} for key, e in settings.items()},
        "participants": participants(broker, name),
        "bindings": [asdict(each) for each in broker.bindings() if each.destination == name],
        "latencies": {kind: latency_fields(each) for kind, each in found.histograms().items()},
    }


def participants(broker: Broker, name: str) -> list[dict[str, Any]]:
    """Those that have this queue open."""
    return [
        participant_fields(each) | {"queues": len(each.queues)}
        for each in broker.participants()
        if each.id != broker.participant and name in each.queues
    ]


def everybody(
    broker: Broker, programs: list[dict[str, Any]], process: int | None
) -> list[dict[str, Any]]:
    """All participants, and programs on other hosts, with what has gone over their links.

    `process`: of the broker; what is its own is not to be disconnected.
    """
    others = [each for each in broker.participants() if each.id != broker.participant]
    return [
        each
        | {"queues": len(each["queues"])}
        | {"own": each["remote"] is None and each["pid"] == process}
        for each in joined(others, programs)
    ]


def row_of(nanoseconds: int) -> int:
    """Of the heat map."""
    return math.floor(math.log2(max(1, nanoseconds)) * STEPS)


class Watched:
    """A queue whose page somebody looks at."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.shown: dict[str, Any] = {}
        self._counts: dict[int, int] = {}

    def read(self, broker: Broker, critical: str | None) -> None:
        try:
            self.shown = {
                **fields(broker, self.name, critical),
                "heat": self._heat(broker.queue(self.name)),
            }
        except Error as error:
            self.shown = {"name": self.name, "gone": str(error)}

    def _heat(self, queue: Queue) -> list[list[int]]:
        """How many messages waited how long since the last reading: rows of the map, counts."""
        histogram = queue.histograms().get(WAITED)
        if histogram is None:
            return []
        is_first = not self._counts
        counts = _counts(histogram)
        grown = {row: each - self._counts.get(row, 0) for row, each in counts.items()}
        self._counts = counts
        if is_first or any(each < 0 for each in grown.values()):  # it began anew
            return []
        return [[row, each] for row, each in sorted(grown.items()) if each]


def _counts(histogram: Histogram) -> dict[int, int]:
    found: dict[int, int] = {}
    for highest, count in histogram:
        row = row_of(highest)
        found[row] = found.get(row, 0) + count
    return found
