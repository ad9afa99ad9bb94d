"""`shmbroker queue latency`: record how long messages wait and are in hand, and show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shmbroker.cli.connection import connected, observed, queue_named, vhost_option
from shmbroker.cli.group import verb
from shmbroker.cli.output import (
    json_option,
    print_json,
    print_table,
    say,
)
from shmbroker.cli.queue import name_argument
from shmbroker.cli.units import DURATION, format_duration

if TYPE_CHECKING:
    from shmbroker.ipc.latency.latency import Histogram

PERCENTILES = {"p50": 50, "p90": 90, "p99": 99, "p99_9": 99.9, "p99_99": 99.99, "max": 100}


@verb(
    examples="""
    shmbroker queue latency orders on
    shmbroker queue latency orders on --digits 3 --highest 10s
    shmbroker queue latency orders on --one-in 16
    shmbroker queue latency orders
    shmbroker queue latency orders --json | jq '."publish-take".p99_ns'
    shmbroker queue latency orders off
    """
)
@name_argument
@click.argument("switch", metavar="[on|off]", type=click.Choice(["on", "off"]), required=False)
@click.option("--lowest", type=DURATION, help="Lowest time of the range.  [1ns, or as before]")
@click.option("--highest", type=DURATION, help="Highest time of the range.  [1h, or as before]")
@click.option(
    "--digits",
    type=click.IntRange(2, 3),
    help="Precision in significant digits.  [2, or as before]",
)
@click.option("--one-in", type=int, default=1, help="Record one message in 2, 4, 8 ...")
@json_option
@vhost_option
def latency(
    name: str,
    switch: str | None,
    lowest: float | None,
    highest: float | None,
    digits: int | None,
    one_in: int,
    as_json: bool,
    vhost: str,
) -> None:
    """Switch the recording of latencies on or off, or show the histograms.

    Records how long messages wait in the queue and how long consumers hold them.  A message is
    counted when it is acknowledged; that costs a few nanoseconds.  Another range or precision
    starts new histograms.
    """
    if switch is not None:
        with connected(vhost) as broker:
            found = queue_named(broker, name)
            found.latency(
                switch == "on", lowest=lowest, highest=highest, digits=digits, one_in=one_in
            )
        say(f"the latency of queue {name!r} is {'' if switch == 'on' else 'not '}recorded")
        return
    with observed(vhost) as broker:
        histograms = queue_named(broker, name).histograms()
    fields = {kind: latency_fields(each) for kind, each in histograms.items()}
    if as_json:
        print_json(fields)
        return
    if not fields:
        say(f"nothing was recorded: shmbroker queue latency {name} on")
    rows = [
        [kind, each["count"], *(format_duration(each[f"{key}_ns"] / 1e9) for key in PERCENTILES)]
        for kind, each in fields.items()
    ]
    headers = (key.upper().replace("_", ".") for key in PERCENTILES)
    print_table(["TIME", "COUNT", *headers], rows)


def latency_fields(histogram: Histogram) -> dict[str, int]:
    """The fields of a histogram in `--json`."""
    told = {"count": histogram.total, "overflow": histogram.overflow}
    told |= {f"{key}_ns": histogram.percentile(each) for key, each in PERCENTILES.items()}
    return told
