"""The page that a scrape reads, of an instance or of a vhost."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

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
    return written(MetricsOf(place, queues_max).collect())


def written(families: Iterable[Metric]) -> str:
    """As prometheus_client writes them (`generate_latest`), which looks at the same names and
    labels again for each sample: with 500 queues there are 10,000."""
    lines: list[str] = []
    known: dict[tuple[tuple[str, str], ...], str] = {}
    for family in families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        help_ = family.documentation.replace("\\", r"\\").replace("\n", r"\n")
        lines.append(f"# HELP {name} {help_}\n# TYPE {name} {family.type}\n")
        for sample in family.samples:
            labels = tuple(sample.labels.items())
            text = known.get(labels)
            if text is None:
                text = known[labels] = labels_text(labels)
            value = floatToGoString(sample.value)  # type: ignore[no-untyped-call]
            lines.append(f"{sample.name}{text} {value}\n")
    return "".join(lines)


def labels_text(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{escaped(value)}"' for name, value in sorted(labels))
    return f"{{{','.join(pairs)}}}"


def escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
