"""A dashboard for Grafana, from the table: a row for each of its parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from shmbroker.cli.metrics.metric import Metric
from shmbroker.cli.metrics.table import PARTS

WIDTH, HEIGHT = 12, 8
"""Of a panel; a dashboard is two of them wide."""
SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
UNITS: Final = {"_bytes": "bytes", "_seconds": "s"}


def unit_of(metric: Metric) -> str:
    ends = (unit for end, unit in UNITS.items() if metric.name.endswith(end))
    return next(ends, "short")


def panel(metric: Metric, number: int, x: int, y: int) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": metric.help.rstrip("."),
        "description": f"`{metric.name}`. Alarming: {metric.alarming or 'nothing by itself'}.",
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit_of(metric)}, "overrides": []},
        "targets": [{"refId": "A", "datasource": SOURCE, "expr": metric.panel}],
    }


def row(title: str, number: int, y: int) -> dict[str, Any]:
    place = {"x": 0, "y": y, "w": 2 * WIDTH, "h": 1}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place,
            "panels": []}  # fmt: skip


def panels() -> Iterator[dict[str, Any]]:
    number = y = 0
    for part, metrics in PARTS.items():
        drawn = [metric for metric in metrics if metric.panel]
        if not drawn:
            continue
        number += 1
        yield row(part, number, y)
        y += 1
        for place, metric in enumerate(drawn):
            number += 1
            yield panel(metric, number, place % 2 * WIDTH, y + place // 2 * HEIGHT)
        y += (len(drawn) + 1) // 2 * HEIGHT


def whole() -> dict[str, Any]:
    """For Grafana's import; it asks which Prometheus."""
    return {
        "title": "shmbroker",
        "uid": "shmbroker",
        "tags": ["shmbroker"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "panels": list(panels()),
    }
