"""The page that a scrape reads, of an instance or of a vhost."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from shmbroker.cli.metrics import broker, links, vhost
from shmbroker.cli.metrics.sheet import Sheet
from shmbroker.cli.metrics.vhost import QUEUES_MAX
from shmbroker.ipc.instance.config import config
from shmbroker.netbridge.broker.table import read

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""What `text` is, for whoever serves it over HTTP."""


class MetricsOf(Collector):
    """Of an instance, by its folder, or of a vhost of this host, by its name."""

    def __init__(self, place: Path | str, queues_max: int = QUEUES_MAX) -> None:
        self._place, self._queues_max = place, queues_max

    def collect(self) -> Iterable[Metric]:
        """Looked at anew for each scrape.  ConfigError: the folder has no good configuration."""
        sheet = Sheet()
        if isinstance(self._place, Path):
            found = config.load(self._place)
            broker.collect(sheet, found)
            name = found.vhost
        else:
            name = self._place
        table = read(name)
        if table is not None and is_of(table.folder, self._place):
            links.collect(sheet, name, table)
        vhost.collect(sheet, name, self._queues_max)
        return sheet.families()


def is_of(folder: Path, place: Path | str) -> bool:
    """Whether the table of links of this instance is one of what is looked at."""
    return isinstance(place, str) or folder.resolve() == place.resolve()


def text(place: Path | str, queues_max: int = QUEUES_MAX) -> str:
    """The metrics of the instance in a folder, or of the vhost of this name.

    Of a backup on a live's host the vhost is that of the live: both see the same queues.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(MetricsOf(place, queues_max))
    return generate_latest(registry).decode()
