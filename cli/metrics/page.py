"""python -m shmbroker.cli.metrics.page: writes the tables of docs/metrics.md anew."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from shmbroker.cli.generated import put
from shmbroker.cli.metrics.metric import Metric
from shmbroker.cli.metrics.table import PARTS

BEGIN: Final = "<!-- metrics: made by python -m shmbroker.cli.metrics.page -->"
END: Final = "<!-- end of metrics -->"


def cells(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    help_, alarming = (text.replace("|", "\\|") for text in (metric.help, metric.alarming))
    alert = f"`Shmbroker{metric.rule.alert}`" if metric.rule else ""
    return f"| `{metric.name}` | {metric.type} | {help_} | {labels} | {alarming} | {alert} |"


def tables() -> str:
    lines = []
    for part, metrics in PARTS.items():
        lines += [f"### {part}", "", "| metric | type | what it is | labels | alarming | alert |"]
        lines += ["|---|---|---|---|---|---|", *map(cells, metrics), ""]
    return "\n".join(lines)


def renewed(page: str) -> str:
    return put(page, BEGIN, tables(), END)


def main() -> None:
    path = Path("docs/metrics.md")
    path.write_text(renewed(path.read_text()))


if __name__ == "__main__":
    main()
