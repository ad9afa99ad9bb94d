"""`shmbroker latency`: evaluate latency spools with Spark.

These verbs are for daily questions and for schedulers.  Spark takes seconds to start; for many
questions, query the tables from Python or SQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shmbroker.cli.group import Group
from shmbroker.cli.output import json_option, print_json, print_table, say
from shmbroker.cli.spark import sparked
from shmbroker.cli.units import COUNT, DURATION, format_count, format_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from shmbroker.perf.spark.tables import Tables

Function = TypeVar("Function", bound=Callable[..., object])

KEYS = ("host", "vhost", "queue", "kind", "build", "window")
ROWS = 50


class Percentile(click.ParamType[float]):
    name = "percentile"

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(value)
        except ValueError:
            number = -1
        if not 0 <= number <= 100:
            self.fail(f"{value!r} is no percentile; one is written 50, 99 or 99.99", param, ctx)
        return number


PERCENTILE = Percentile()
tables_argument = click.argument("tables")
percentile_option = click.option(
    "--percentile", type=PERCENTILE, default=99.0, show_default=True, help="The percentile."
)
rows_option = click.option(
    "--rows", type=COUNT, default=ROWS, show_default=True, help="Show at most this many rows."
)


verbose = click.option("--verbose", is_flag=True, help="Show what Spark itself says.")


def master_option(function: Function) -> Function:
    return click.option(
        "--master", metavar="URL",
        help="Spark master.  [all cores of this machine; under spark-submit its master]",
    )(verbose(function))  # fmt: skip


@contextmanager
def opened(place: str, master: str | None, verbose: bool) -> Iterator[Tables]:
    with sparked(master, verbose) as spark:
        from shmbroker.perf.spark.tables import Tables

        tables = Tables(spark, place)
        _ = tables.about  # raises NoTables
        yield tables


@click.group(
    cls=Group,
    examples="""
    shmbroker latency merge /var/spool/shmbroker --into tables
    shmbroker latency percentiles tables --by queue
    shmbroker latency regression tables --before 1.4 --after 1.5
    shmbroker latency report tables --output latency.html
    """,
)
def latency() -> None:
    """Evaluate the latencies of many hosts with Spark.

    Merges spools, compares builds and hosts, and plots the results.  Needs Java 17 and the extra
    `latency`.
    """


window_option = click.option("--window", type=DURATION, default="1m", show_default=True,
    help="Merge intervals that begin in the same window.")  # fmt: skip
into_option = click.option("--into", "place", required=True, metavar="TABLES",
    help="Folder of the tables.")  # fmt: skip


@latency.command(
    "merge",
    examples="""
    shmbroker latency merge /var/spool/shmbroker --into tables
    shmbroker latency merge hdfs://namenode/spools --into hdfs://namenode/latency --window 5m
    """,
)
@click.argument("spool")
@into_option
@window_option
@json_option
@master_option
def merge_spool(
    spool: str, place: str, window: float, as_json: bool, master: str | None, verbose: bool
) -> None:
    """Merge a whole SPOOL into tables.  A new run replaces the previous one.

    Damaged files and intervals are left out and counted; `latency problems` lists them.
    """
    with sparked(master, verbose) as spark:
        from shmbroker.perf.spark.intake import merge

        taken = merge(spark, spool, place, seconds(window))
    if as_json:
        print_json(vars(taken))
        return
    click.echo(
        f"{format_count(taken.messages, 'message')} of {format_count(taken.intervals, 'interval')} "
        f"in {format_count(taken.files, 'file')}"
    )
    if taken.problems:
        say(f"{format_count(taken.problems, 'problem')}: shmbroker latency problems {place}")


def seconds(window: float) -> int:
    if window != int(window) or window < 1:
        raise click.UsageError(f"a window is whole seconds, not {format_duration(window)}")
    return int(window)


@latency.command(
    "follow",
    examples="""
    shmbroker latency follow /var/spool/shmbroker --into tables
    shmbroker latency follow /var/spool/shmbroker --into tables --once
    """,
)
@click.argument("spool")
@into_option
@window_option
@click.option("--delay", type=DURATION, default="10m", show_default=True,
    help="Accept late intervals for this long after the end of their window.")  # fmt: skip
@click.option("--every", type=DURATION, default="10s", show_default=True,
    help="Interval between two looks for new files.")  # fmt: skip
@click.option("--once", is_flag=True, help="Read the files that exist now, then exit.")
@click.option("--files", type=COUNT, default=1000, show_default=True,
    help="Read at most this many files at once.")  # fmt: skip
@master_option
def follow_spool(
    spool: str, place: str, window: float, delay: float, every: float, once: bool, files: int,
    master: str | None, verbose: bool,
) -> None:  # fmt: skip
    """Merge the files of a SPOOL as they appear.

    After a stop or a kill, start it again: no file is lost or counted twice.  Intervals that
    arrive after their window was closed are set aside and counted in the report.
    """
    with sparked(master, verbose) as spark:
        from shmbroker.perf.spark.intake import follow

        trigger = None if once else f"{every:g} seconds"
        follow(spark, spool, place, seconds(window), delay, trigger, files)


@latency.command(
    "percentiles",
    examples="""
    shmbroker latency percentiles tables --by queue,kind
    shmbroker latency percentiles tables --by host,queue --at 99 --at 99.9 --json
    """,
)
@tables_argument
@click.option("--by", default="queue,kind", show_default=True, metavar="KEYS",
    help=f"Group by any of {', '.join(KEYS)}.")  # fmt: skip
@click.option(
    "--at", type=PERCENTILE, multiple=True, help="A percentile.  May be repeated.  [50 to 100]"
)
@rows_option
@json_option
@master_option
def show_percentiles(
    tables: str,
    by: str,
    at: Sequence[float],
    rows: int,
    as_json: bool,
    master: str | None,
    verbose: bool,
) -> None:
    """Show percentiles, and write all of them to TABLES/percentiles."""
    keys = [key.strip() for key in by.split(",")]
    if unknown := [key for key in keys if key not in KEYS]:
        raise click.UsageError(f"no key {unknown[0]!r}: there are {', '.join(KEYS)}")
    with opened(tables, master, verbose) as found:
        from shmbroker.perf.spark.percentiles import LADDER, percentiles

        frame = percentiles(found.histograms, keys, sorted(at) or LADDER)
        show(found.write_result("percentiles", frame).orderBy(*keys), rows, as_json)


@latency.command("trends", examples="shmbroker latency trends tables --percentile 99.9")
@tables_argument
@percentile_option
@rows_option
@json_option
@master_option
def show_trends(
    tables: str,
    percentile: float,
    rows: int,
    as_json: bool,
    master: str | None,
    verbose: bool,
) -> None:
    """Show the trend of a percentile for each queue: change per hour, and goodness of fit.

    Too few windows, or too short a time, have no trend; the last column says so.
    """
    with opened(tables, master, verbose) as found:
        from shmbroker.perf.spark.trends import trends

        show(found.write_result("trends", trends(found.histograms, percentile)), rows, as_json)


@latency.command(
    "regression",
    examples="""
    shmbroker latency regression tables --before 1.4 --after 1.5
    shmbroker latency regression tables --before 1.4 --after 1.5 --least 5 || echo slower
    """,
)
@tables_argument
@click.option("--before", required=True, metavar="BUILD", help="Build to compare with.")
@click.option("--after", required=True, metavar="BUILD", help="Build that may be slower.")
@click.option("--at", type=PERCENTILE, multiple=True, default=(50.0, 90.0, 99.0),
    show_default=True, help="A percentile.  May be repeated.")  # fmt: skip
@click.option("--alpha", type=click.FloatRange(0.001, 0.5), default=0.01, show_default=True,
    help="Probability of any false alarm in a run.")  # fmt: skip
@click.option("--least", type=click.FloatRange(0), default=2.0, show_default=True,
    help="Ignore changes below this many percent.")  # fmt: skip
@click.option("--block", type=DURATION, default="5m", show_default=True,
    help="Length of a block.  It must be longer than a disturbance lasts.")  # fmt: skip
@rows_option
@json_option
@master_option
def show_regression(
    tables: str, before: str, after: str, at: Sequence[float], alpha: float, least: float,
    block: float, rows: int, as_json: bool, master: str | None, verbose: bool,
) -> None:  # fmt: skip
    """Test whether a build is slower.  Exits with 1 if any queue is.

    A permutation test over blocks of histograms, corrected for testing many queues at once.
    """
    with opened(tables, master, verbose) as found:
        from shmbroker.perf.spark.regression import Plan, regressions

        plan = Plan(before, after, tuple(at), alpha, least / 100, seconds(block))
        frame = found.write_result("regressions", regressions(found.histograms, plan))
        ordered = frame.orderBy("p", frame["score"].desc())
        show(ordered, rows, as_json)
        alarms = ordered.where("alarm").collect()
    for row in alarms:
        of = "above the highest" if row.percentile is None else f"p{row.percentile:g}"
        say(f"slower: {row.queue} {row.kind} {of}, {row.ratio:.3f} times, p {row.p:.3f}")
    click.get_current_context().exit(1 if alarms else 0)


@latency.command("outliers", examples="shmbroker latency outliers tables --percentile 99.9")
@tables_argument
@percentile_option
@click.option("--score", type=click.FloatRange(0), default=5.0, show_default=True,
    help="Least number of robust deviations from the median.")  # fmt: skip
@click.option("--ratio", type=click.FloatRange(0), default=1.2, show_default=True,
    help="Least ratio to the median.")  # fmt: skip
@rows_option
@json_option
@master_option
def show_outliers(
    tables: str, percentile: float, score: float, ratio: float, rows: int, as_json: bool,
    master: str | None, verbose: bool,
) -> None:  # fmt: skip
    """Show hosts that are slower than the others, for each queue."""
    with opened(tables, master, verbose) as found:
        from shmbroker.perf.spark.outliers import outliers

        frame = outliers(found.histograms, percentile, score, ratio)
        show(found.write_result("outliers", frame), rows, as_json)


@latency.command(
    "burn", examples="shmbroker latency burn tables --bound 1ms --objective 99.9 --by queue"
)
@tables_argument
@click.option("--bound", type=DURATION, required=True, help="Upper bound of the latency objective.")
@click.option("--objective", type=click.FloatRange(0, 99.9999999), default=99.9,
    show_default=True, help="Percentage of messages that must be within the bound.")  # fmt: skip
@click.option("--by", default="vhost,queue,kind,window", show_default=True, metavar="KEYS",
    help=f"Group by any of {', '.join(KEYS)}.")  # fmt: skip
@rows_option
@json_option
@master_option
def show_burn(
    tables: str, bound: float, objective: float, by: str, rows: int, as_json: bool,
    master: str | None, verbose: bool,
) -> None:  # fmt: skip
    """Show the share of messages above a bound, and the burn rate of the objective."""
    keys = [key.strip() for key in by.split(",")]
    if unknown := [key for key in keys if key not in KEYS]:
        raise click.UsageError(f"no key {unknown[0]!r}: there are {', '.join(KEYS)}")
    with opened(tables, master, verbose) as found:
        from shmbroker.perf.spark.burn import burn

        frame = burn(found.histograms, round(bound * 1e9), objective, keys)
        show(found.write_result("burn", frame).orderBy("burn", ascending=False), rows, as_json)


@latency.command("problems", examples="shmbroker latency problems tables")
@tables_argument
@rows_option
@json_option
@master_option
def show_problems(tables: str, rows: int, as_json: bool, master: str | None, verbose: bool) -> None:
    """Show problems of the spool: file, offset, cause, and number of messages left out."""
    with opened(tables, master, verbose) as found:
        columns = ("file", "offset", "left_out", "problem")
        show(found.problems.select(*columns).orderBy("file", "offset"), rows, as_json)


@latency.command(
    "report",
    examples="""
    shmbroker latency report tables --output latency.html
    shmbroker latency report tables --bound 1ms --objective 99.9 --output latency.html
    """,
)
@tables_argument
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), default="latency.html",
    show_default=True, help="File of the page; its pictures are written beside it.")  # fmt: skip
@click.option("--title", default="Latency", show_default=True, help="Title of the page.")
@click.option(
    "--bound", type=DURATION, help="Upper bound of a latency objective; shows its burn rate."
)
@click.option("--objective", type=click.FloatRange(0, 99.9999999), default=99.9, show_default=True,
    help="Percentage of messages that must be within the bound.")  # fmt: skip
@click.option("--before", metavar="BUILD", help="Build to compare with.  [the last but one]")
@click.option("--after", metavar="BUILD", help="Build to compare.  [the last]")
@master_option
def write_report(
    tables: str, output: Path, title: str, bound: float | None, objective: float,
    before: str | None, after: str | None, master: str | None, verbose: bool,
) -> None:  # fmt: skip
    """Write an HTML page: percentiles, heat map over time, builds, hosts, trends, problems."""
    if (before is None) != (after is None):
        raise click.UsageError("--before and --after go together")
    with opened(tables, master, verbose) as found:
        from shmbroker.perf.spark.regression import Plan
        from shmbroker.perf.spark.report import Wanted, report

        plan = Plan(before, after) if before and after else None
        bound_ns = round(bound * 1e9) if bound else None
        for path in report(found, output, Wanted(title, bound_ns, objective, plan)):
            click.echo(path)


def show(frame: DataFrame, rows: int, as_json: bool) -> None:
    """Print all rows as JSON, or the first rows as a table."""
    if as_json:
        print_json([plain(row.asDict()) for row in frame.collect()])
        return
    found = frame.limit(rows + 1).collect()
    names = frame.columns
    cells = [[short(*cell) for cell in zip(names, row, strict=True)] for row in found[:rows]]
    print_table([header(name) for name in names], cells)
    if len(found) > rows:
        say(f"there are more than these {rows}: --rows, --json")


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, date | datetime) else value
        for name, value in row.items()
    }


TIMES = re.compile(r"p\d+(_\d+)?|max|(first_|last_)?value|\w+_ns")
"""Columns of nanoseconds."""


def header(name: str) -> str:
    """P99.9, FIRST VALUE; of a time without its unit, which each value has."""
    if re.fullmatch(r"p\d+_\d+", name):
        return name.upper().replace("_", ".")
    return name.removesuffix("_ns").upper().replace("_", " ")


def short(name: str, value: Any) -> Any:
    if value is None:
        return None
    if TIMES.fullmatch(name):
        return format_duration(value / 1e9)
    if name == "change_per_hour":
        return f"{100 * value:+.3g} %"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else value
