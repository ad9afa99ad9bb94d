"""Alert rules for Prometheus, from the table."""

from __future__ import annotations

import json

from shmbroker.cli.metrics.metric import Metric
from shmbroker.cli.metrics.table import PARTS


def summary(metric: Metric) -> str:
    names = ", ".join(f"{{{{ $labels.{label} }}}}" for label in metric.labels)
    return f"{metric.help.rstrip('.')}: {{{{ $value }}}} ({names})"


def text() -> str:
    """A file for `rule_files`, in YAML; texts are quoted as JSON has them, which YAML takes."""
    lines = ["groups:"]
    for part, metrics in PARTS.items():
        rules = [(metric, metric.rule) for metric in metrics if metric.rule is not None]
        if not rules:
            continue
        lines += [f"  - name: {json.dumps(f'shmbroker: {part}')}", "    rules:"]
        for metric, rule in rules:
            lines += [
                f"      - alert: Shmbroker{rule.alert}",
                f"        expr: {json.dumps(rule.expression)}",
                f"        for: {rule.lasts}",
                "        labels:",
                f"          severity: {rule.severity}",
                "        annotations:",
                f"          summary: {json.dumps(summary(metric))}",
            ]
    return "\n".join([*lines, ""])
