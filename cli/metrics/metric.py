"""What one metric is: its name and type for Prometheus, and what people are told of it."""

from __future__ import annotations

from dataclasses import dataclass

GAUGE = "gauge"
COUNTER = "counter"
HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Rule:
    """When somebody is to be told."""

    alert: str
    expression: str
    lasts: str
    severity: str


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    type: str
    help: str
    labels: tuple[str, ...] = ()
    alarming: str = ""
    """For people; empty: no value of it is alarming by itself."""
    rule: Rule | None = None
    panel: str = ""
    """What the dashboard draws of it, in PromQL; empty: nothing."""
