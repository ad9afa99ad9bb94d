"""`shmbroker metrics`: what Prometheus reads, and what it and Grafana need for that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shmbroker.cli.group import Group
from shmbroker.cli.output import json_option, names_option, print_json, print_names, print_table

if TYPE_CHECKING:
    from shmbroker.cli.metrics.metric import Metric


@click.group(
    cls=Group,
    examples="""
    shmbroker metrics show /var/lib/shmbroker/orders
    shmbroker metrics rules > /etc/prometheus/shmbroker.rules.yml
    shmbroker metrics dashboard > shmbroker.json
    """,
)
def metrics() -> None:
    """Metrics for Prometheus."""


@metrics.command(
    examples="""
    shmbroker metrics show /var/lib/shmbroker/orders
    shmbroker metrics show trading | grep shmbroker_queue_depth
    """
)
@click.argument("place", metavar="DIR|VHOST")
@click.option("--queues-max", metavar="N", type=click.IntRange(min=0), default=500,
    show_default=True, help="So many queues have samples of their own.")  # fmt: skip
def show(place: str, queues_max: int) -> None:
    """Print the metrics of the broker in DIR, or of VHOST, as a scrape has them.

    It reads shared memory and files, so it works as well if the broker hangs, is stopped or is
    dead.  Queues beyond --queues-max are summed under the name (others), and those that are
    temporary under (temporary).
    """
    try:
        from shmbroker.cli.metrics.exposition import text
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"metrics need {error.name}: pip install 'shmbroker[metrics]'"
        ) from None
    is_folder = "/" in place or Path(place).is_dir()
    if not is_folder:
        from shmbroker.ipc.vhost import vhost

        if not vhost.exists(place):
            raise click.ClickException(
                f"there is neither a folder nor a vhost {place!r}: shmbroker vhost list"
            )
    click.echo(text(Path(place) if is_folder else place, queues_max), nl=False)


@metrics.command(
    examples="""
    shmbroker metrics rules > /etc/prometheus/shmbroker.rules.yml
    """
)
def rules() -> None:
    """Print alert rules, as a file for `rule_files` of Prometheus."""
    from shmbroker.cli.metrics.rules import text

    click.echo(text(), nl=False)


@metrics.command(
    examples="""
    shmbroker metrics dashboard > shmbroker.json
    """
)
def dashboard() -> None:
    """Print a dashboard, for Grafana's import."""
    from shmbroker.cli.metrics.dashboard import whole

    print_json(whole())


@metrics.command(
    "list",
    examples="""
    shmbroker metrics list
    shmbroker metrics list --json | jq -r '.[] | select(.alert) | .name'
    """,
)
@json_option
@names_option
def list_(as_json: bool, names: bool) -> None:
    """List all metrics, and when each is alarming."""
    from shmbroker.cli.metrics.table import METRICS

    found = list(METRICS.values())
    if names:
        print_names(each.name for each in found)
    elif as_json:
        print_json([fields(each) for each in found])
    else:
        print_table(
            ["METRIC", "TYPE", "WHAT", "ALARMING"],
            [[each.name, each.type, each.help, each.alarming] for each in found],
        )


def fields(metric: Metric) -> dict[str, object]:
    return {
        "name": metric.name,
        "type": metric.type,
        "help": metric.help,
        "labels": list(metric.labels),
        "alarming": metric.alarming or None,
        "alert": f"Shmbroker{metric.rule.alert}" if metric.rule else None,
    }
