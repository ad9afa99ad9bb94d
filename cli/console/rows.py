"""All queues at one moment as the rows of the page, and their rates since the moment before.

With thousands of queues an object for each figure of each would take most of the time, so they are
reckoned as columns (cli/metrics/rings.py), and rows are made of them at the end.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from shmbroker.cli.console.snapshot import Row
from shmbroker.cli.metrics.queues import Queues
from shmbroker.core import layout as at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shmbroker.ipc.connection.broker import Broker

KEYS: Final = (
    "name", "depth", "slots", "paused", "in_per_second", "out_per_second", "consumers", "producers",
    "durable", "critical",
)  # fmt: skip
FIGURES: Final = ("depth", "published", "slots", "paused", "consumers", "producers")


class Moment:
    def __init__(self, broker: Broker) -> None:
        self.at = time.monotonic()
        queues = Queues(broker, unreadable=True)
        self.names = queues.names
        self.references = queues.references
        self.durable = queues.is_durable
        self.figures = {name: queues.figures[name].astype(np.int64) for name in FIGURES}

    def rows(self, before: Moment | None, critical: Mapping[str, str]) -> dict[str, Row]:
        """Those without their writer first, then the busiest.  A queue that is new has no rates."""
        came, went = self._since(before or self)
        seconds = max(self.at - (before or self).at, 1e-9)
        rates = np.round(came / seconds, 1), np.round(went.clip(0) / seconds, 1)
        is_sane = np.array([name not in critical for name in self.names], np.bool_)
        depth = self.figures["depth"]
        order = np.lexsort((-depth, -rates[0] - rates[1], is_sane)).tolist()
        figures = (
            depth, self.figures["slots"], self.figures["paused"] != 0, *rates,
            self.figures["consumers"], self.figures["producers"], self.durable,
        )  # fmt: skip
        problems = [critical.get(name) for name in self.names]
        columns = (self.names, *(each.tolist() for each in figures), problems)
        rows = [dict(zip(KEYS, each, strict=True)) for each in zip(*columns, strict=True)]
        return {self.names[place]: rows[place] for place in order}

    def _since(self, before: Moment) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many messages came, and how many went."""
        places = before.references & at.REFERENCE_INDEX_MASK
        known, published, depth = np.zeros((3, at.QUEUE_ROWS), np.int64)
        known[places] = before.references
        published[places], depth[places] = before.figures["published"], before.figures["depth"]
        rows = self.references & at.REFERENCE_INDEX_MASK
        is_same = known[rows] == self.references
        came = np.where(is_same, self.figures["published"] - published[rows], 0)
        return came, np.where(is_same, came - (self.figures["depth"] - depth[rows]), 0)
