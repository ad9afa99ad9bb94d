"""The samples of one scrape, as they are collected: families of prometheus-client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from shmbroker.cli.metrics.metric import COUNTER, GAUGE
from shmbroker.cli.metrics.table import METRICS

Family = GaugeMetricFamily | CounterMetricFamily | HistogramMetricFamily


def family_of(name: str) -> Family:
    """KeyError if it is not in the table."""
    metric = METRICS[name]
    if metric.type == GAUGE:
        return GaugeMetricFamily(name, metric.help, labels=metric.labels)
    if metric.type == COUNTER:
        return CounterMetricFamily(name.removesuffix("_total"), metric.help, labels=metric.labels)
    return HistogramMetricFamily(name, metric.help, labels=metric.labels)


class Sheet:
    """Families in the order in which their first sample came."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}

    def _family(self, name: str) -> Family:
        if name not in self._families:
            self._families[name] = family_of(name)
        return self._families[name]

    def put(self, name: str, value: float, *labels: str) -> None:
        family = self._family(f"shmbroker_{name}")
        assert not isinstance(family, HistogramMetricFamily)
        family.add_metric(labels, value)

    def put_one(self, name: str, value: str, known: Iterable[str], *labels: str) -> None:
        """A state: 1 for the one that it is in, and 0 for all others."""
        for each in dict.fromkeys((*known, value)):
            self.put(name, each == value, *labels, each)

    def put_buckets(
        self, name: str, buckets: Sequence[tuple[str, float]], seconds: float, *labels: str
    ) -> None:
        family = self._family(f"shmbroker_{name}")
        assert isinstance(family, HistogramMetricFamily)
        family.add_metric(labels, buckets, seconds)

    def families(self) -> Iterator[Metric]:
        yield from self._families.values()
