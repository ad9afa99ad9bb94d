"""Prometheus and promtool of Debian read what we write: metrics, rules, and the dashboard."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

import shmbroker
from shmbroker.cli.metrics import page, rules
from shmbroker.cli.metrics.exposition import text
from shmbroker.cli.metrics.metric import COUNTER, HISTOGRAM
from shmbroker.cli.metrics.table import METRICS
from tests.cli.command import Shell
from tests.cli.metrics.prometheus import Prometheus, promtool, served

DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"
NAME = re.compile(r"shmbroker_\w+")


def series() -> set[str]:
    """The names that samples have."""
    found = set()
    for metric in METRICS.values():
        ends = ("_bucket", "_sum", "_count") if metric.type == HISTOGRAM else ("",)
        found |= {metric.name + end for end in ends}
    return found


def test_names_are_by_the_conventions() -> None:
    for metric in METRICS.values():
        assert metric.name.endswith("_total") == (metric.type == COUNTER), metric.name
        assert metric.help.endswith("."), metric.name
        assert not metric.rule or metric.alarming, metric.name


def test_rules_and_panels_name_metrics_that_are_there(shell: Shell) -> None:
    assert set(NAME.findall(shell.does("metrics", "rules").out)) <= series()
    board = shell.does("metrics", "dashboard").json
    drawn = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    assert drawn
    for each in drawn:
        assert set(NAME.findall(each)) <= series(), each
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len(set(places)) == len(places)


def test_the_list(shell: Shell) -> None:
    assert shell.does("metrics", "list", "--names").lines == list(METRICS)
    rows = shell.does("metrics", "list", "--json").json
    assert [each["name"] for each in rows] == list(METRICS)
    assert "shmbroker_up" in shell.does("metrics", "list").out


def test_the_tables_of_the_docs_are_those_of_the_code() -> None:
    told = DOCS.read_text()
    assert told == page.renewed(told), "run python -m shmbroker.cli.metrics.page"


def test_promtool_takes_the_rules(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    path.write_text(shell.does("metrics", "rules").out)
    count = sum(metric.rule is not None for metric in METRICS.values())
    assert f"SUCCESS: {count} rules found" in promtool("check", "rules", str(path))


def test_promtool_takes_the_panels(shell: Shell, tmp_path: Path) -> None:
    """As expressions of rules, which it parses."""
    board = json.loads(shell.does("metrics", "dashboard").out)
    path = tmp_path / "panels.yml"
    lines = ["groups: [{name: panels, rules: ["]
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            named = f"panel:{panel['id']}"
            lines.append(f"{{record: {json.dumps(named)}, expr: {json.dumps(target['expr'])}}},")
    path.write_text("\n".join([*lines, "]}]", ""]))
    assert "SUCCESS" in promtool("check", "rules", str(path))


def test_promtool_takes_the_metrics(vhost_name: str) -> None:
    with shmbroker.connect(f"shm://{vhost_name}", create=True) as broker:
        queue = broker.declare_queue("orders")
        queue.latency(True)
        queue.publish(b"x")
        queue.get(timeout=0).ack()
        assert promtool("check", "metrics", text=text(vhost_name)) == ""


@pytest.mark.usefixtures("shell")
def test_prometheus_scrapes_and_alerts(vhost_name: str, tmp_path: Path) -> None:
    with ExitStack() as open_things:
        broker = open_things.enter_context(shmbroker.connect(f"shm://{vhost_name}"))
        orders = broker.declare_queue("orders")
        orders.latency(True)
        port = open_things.enter_context(served(partial(text, vhost_name)))
        prometheus = Prometheus(tmp_path, port, rules.text())
        open_things.callback(prometheus.close)
        for _ in range(3):
            orders.publish(b"x")
        depth = 'shmbroker_queue_depth{queue="orders"}'
        assert prometheus.eventually(depth, 3)["vhost"] == vhost_name
        orders.get(timeout=0).ack()
        prometheus.eventually('shmbroker_queue_acked_total{queue="orders"}', 1)
        prometheus.eventually('shmbroker_queue_wait_seconds_bucket{queue="orders",le="+Inf"}', 1)
        orders.get(timeout=0).reject()
        alert = 'ALERTS{alertname="ShmbrokerDeadLetters",alertstate="firing"}'
        assert prometheus.eventually(alert, 1)["queue"] == "orders"
