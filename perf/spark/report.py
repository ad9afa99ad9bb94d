"""The report: one HTML page with its pictures in it, and the pictures as PNG beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from shmbroker.perf.scenarios import pictures
from shmbroker.perf.scenarios.page import NOTHING, Drawing, Number, Page, known, latency, readable
from shmbroker.perf.scenarios.pictures import Curve
from shmbroker.perf.spark.buckets import ABOVE, HIGHEST_VALUE, merged
from shmbroker.perf.spark.burn import burn
from shmbroker.perf.spark.histograms import MESSAGES, messages_of
from shmbroker.perf.spark.outliers import outliers
from shmbroker.perf.spark.percentiles import LADDER, label_of, name_of, percentiles
from shmbroker.perf.spark.regression import Plan, regressions
from shmbroker.perf.spark.tables import Tables
from shmbroker.perf.spark.trends import trends

OWNER = ("vhost", "queue", "kind")
CURVES = 6
WINDOWS = 240
"""A heat map has at most so many columns: windows are put together."""


@dataclass(frozen=True)
class Wanted:
    """What a report is about beyond its tables."""

    title: str = "Latency"
    bound_ns: int | None = None
    objective: float = 99.9
    plan: Plan | None = None


def report(tables: Tables, path: Path, wanted: Wanted) -> list[Path]:
    """Write it; what was written, the page first."""
    page = Page()
    histograms = tables.histograms.cache()
    totals = percentiles(histograms, OWNER).orderBy(f.desc(name_of(99.0))).collect()
    about(page, tables, histograms)
    if totals:
        by_queue(page, histograms, totals)
        over_time(page, histograms, totals[0], tables.about.window_seconds)
        builds(page, histograms, totals, wanted)
        hosts_and_trends(page, histograms)
        if wanted.bound_ns:
            objective(page, histograms, wanted.bound_ns, wanted.objective)
    what_was_wrong(page, tables)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page.html(wanted.title), encoding="utf-8")
    written = [path]
    for drawing in page.drawings:
        written.append(path.with_name(f"{path.stem}-{drawing.name}.png"))
        written[-1].write_bytes(drawing.png)
    histograms.unpersist()
    return written


def about(page: Page, tables: Tables, histograms: DataFrame) -> None:
    span = histograms.agg(
        f.min("window"), f.max("window"), f.count_distinct("host"), f.count_distinct("queue"),
        f.collect_set("build"),
    ).first()  # fmt: skip
    read = tables.files.agg(f.count("*"), f.sum("intervals")).first()
    if span is None or read is None or span[0] is None:
        page.note("There is nothing in these tables.")
        return
    window = tables.about.window_seconds
    page.note(
        f"{several(messages_of(histograms), 'message')} of {several(span[3], 'queue')} on "
        f"{several(span[2], 'host')}, from {span[0]} to {span[1]} UTC, in windows of {window} s; "
        f"{several(read[1] or 0, 'interval')} of {several(read[0], 'file')}. "
        f"Builds: {', '.join(filter(None, sorted(span[4]))) or 'unknown'}. "
        f"Written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    )


def several(count: int, noun: str) -> str:
    """1 queue, 2 queues."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def by_queue(page: Page, histograms: DataFrame, totals: Sequence[Any]) -> None:
    page.heading("Percentiles by queue")
    names = [name_of(percentile) for percentile in LADDER]
    page.table(
        ["queue", "kind", "messages", *map(label_of, LADDER), "above the highest"],
        [
            [row.queue, row.kind, row.total, *(latency(row[name]) for name in names), row.above]
            for row in totals
        ],
    )
    errors = sorted({row.error for row in totals})
    mixed = sum(row.mixed for row in totals)
    page.note(
        f"Values are exact up to the width of a bucket, {100 * errors[-1]:.2g} % at most. "
        + (
            f"{several(mixed, 'queue')} had histograms of several geometries, merged in the "
            "coarsest."
            if mixed
            else ""
        )
    )
    some = [row for row in totals if row.total][:CURVES]
    if not some:
        return
    curves = {
        f"{row.queue}, {row.kind}": curve_of(histograms.where(is_of(row)), OWNER) for row in some
    }
    which = (
        f"the {len(some)} queues with the highest p99" if len(totals) > len(some) else "all queues"
    )
    title = f"Latency by percentile, {which}"
    page.draw(Drawing("percentiles", title, pictures.percentile_curves(curves, title)))


def is_of(row: Any) -> Any:
    found = f.lit(True)
    for name in OWNER:
        found = found & (f.col(name) == row[name])
    return found


def curve_of(histograms: DataFrame, keys: Sequence[str]) -> Curve:
    rows = (
        merged(histograms, keys)
        .where(f.col("index") != ABOVE)
        .select("index", "count", f.expr(HIGHEST_VALUE).alias("value"))
        .orderBy("index")
        .collect()
    )
    return Curve(
        np.array([row.value for row in rows], float), np.array([row["count"] for row in rows])
    )


def over_time(page: Page, histograms: DataFrame, worst: Any, window_seconds: int) -> None:
    page.heading("Over time")
    mine = histograms.where(is_of(worst))
    span = mine.agg(f.unix_seconds(f.max("window")) - f.unix_seconds(f.min("window"))).first()
    columns = (span[0] if span else 0) // window_seconds + 1
    seconds = window_seconds * -(-columns // WINDOWS)
    coarse = mine.withColumn(
        "window", f.expr(f"timestamp_seconds(unix_seconds(window) div {seconds} * {seconds})")
    )
    rows = (
        merged(coarse, [*OWNER, "window"], alike=OWNER)
        .where(f.col("index") != ABOVE)
        .select("window", "count", f.expr(HIGHEST_VALUE).alias("value"))
        .collect()
    )
    if not rows:
        return
    stamps = percentiles(coarse, [*OWNER, "window"], (50.0, 99.0)).orderBy("window").collect()
    first = stamps[0].window
    count = int((stamps[-1].window - first).total_seconds()) // seconds + 1
    times = [datetime.fromtimestamp(utc(first) + n * seconds, UTC) for n in range(count)]
    at = {row.window: int((row.window - first).total_seconds()) // seconds for row in stamps}
    values = np.array(sorted({row.value for row in rows}), float)
    place = {value: number for number, value in enumerate(values)}
    counts = np.zeros((len(values), count))
    for row in rows:
        counts[place[row.value], at[row.window]] += row["count"]
    lines: dict[str, list[float | None]] = {"p50": [None] * count, "p99": [None] * count}
    for row in stamps:
        lines["p50"][at[row.window]], lines["p99"][at[row.window]] = row.p50, row.p99
    title = f"Latency over time: {worst.queue}, {worst.kind}"
    drawing = pictures.heat_map(times, values, counts, lines, seconds, title)
    page.draw(Drawing("over-time", title, drawing))


def utc(moment: datetime) -> float:
    """Spark gives times of the session's zone without saying so, and that is UTC."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def builds(page: Page, histograms: DataFrame, totals: Sequence[Any], wanted: Wanted) -> None:
    plan = wanted.plan or plan_of(histograms)
    if plan is None:
        return
    page.heading(f"Build {plan.after} against {plan.before}")
    found = regressions(histograms, plan).collect()
    page.table(
        ["queue", "kind", "percentile", "before", "after", "ratio", "score", "p", "verdict"],
        [
            [
                row.queue, row.kind, *statistic_of(row), Number(f"{row.ratio:.3f}"),
                Number(f"{row.score:.1f}"), Number(f"{row.p:.3f}"),
                Number("slower" if row.alarm else NOTHING, row.alarm),
            ]
            for row in found
        ],
    )  # fmt: skip
    page.note(
        f"Labels of blocks of {plan.block_seconds} s and a group of hosts were shuffled "
        f"{plan.shuffles} times; p is the chance of a score like that anywhere in this table if "
        f"the builds do not differ. A run without a difference raises an alarm with a chance of "
        f"{100 * plan.alpha:g} %. Changes below {100 * plan.least:g} % are none."
    )
    worst = found[0] if found else totals[0]
    curves = {
        f"{which}: {build}": curve_of(
            histograms.where(is_of(worst) & (f.col("build") == build)), OWNER
        )
        for which, build in (("before", plan.before), ("after", plan.after))
    }
    if all(len(curve.values) for curve in curves.values()):
        title = f"Before and after: {worst.queue}, {worst.kind}"
        page.draw(Drawing("builds", title, pictures.percentile_curves(curves, title)))


def statistic_of(row: Any) -> tuple[Any, ...]:
    """What it is, before, and after."""
    if row.percentile is None:
        shares = (row.above_before, row.above_after)
        return ("above the highest", *(Number(f"{100 * each:.3f} %") for each in shares))
    return (label_of(row.percentile), latency(row.before_ns), latency(row.after_ns))


def plan_of(histograms: DataFrame) -> Plan | None:
    """The last two builds, by when they were seen first."""
    first = histograms.groupBy("build").agg(f.min("window").alias("at"))
    seen = [row.build for row in first.orderBy("at", "build").collect()]
    return Plan(seen[-2], seen[-1]) if len(seen) > 1 else None


def hosts_and_trends(page: Page, histograms: DataFrame) -> None:
    page.heading("Hosts that are slower than their fellows")
    hosts = outliers(histograms).collect()
    if hosts:
        page.table(
            ["host", "queue", "kind", "p99", "times the median", "score"],
            [
                [row.host, row.queue, row.kind, latency(row.value), Number(f"{row.ratio:.2f}"),
                 Number(f"{row.score:.1f}")]
                for row in hosts
            ],
        )  # fmt: skip
    else:
        page.note("None: no host's p99 is far from the median of all (score 5, 1.2 times).")
    page.heading("Trends of p99")
    page.table(
        ["queue", "kind", "windows", "change per hour", "fit (R²)", "why not"],
        [
            [row.queue, row.kind, row.windows,
             known(row.change_per_hour, lambda change: f"{100 * change:+.1f} %"),
             known(row.fit, lambda fit: f"{fit:.2f}"), row.why or ""]
            for row in trends(histograms).collect()
        ],
    )  # fmt: skip


def objective(page: Page, histograms: DataFrame, bound_ns: int, percent: float) -> None:
    page.heading(f"Objective: {percent:g} % within {readable(bound_ns)}")
    whole = burn(histograms, bound_ns, percent, OWNER).orderBy(f.desc("burn")).collect()
    page.table(
        ["queue", "kind", "messages", "above", "uncertain", "share above", "burn"],
        [
            [row.queue, row.kind, row.messages, row.above, row.uncertain,
             Number(f"{100 * row.share:.4f} %"), Number(f"{row.burn:.2f}", row.burn > 1)]
            for row in whole
        ],
    )  # fmt: skip
    rows = burn(histograms, bound_ns, percent).orderBy("window").collect()
    times = sorted({row.window for row in rows})
    names = [f"{row.queue}, {row.kind}" for row in whole[:CURVES]]
    lines: dict[str, list[float | None]] = {name: [None] * len(times) for name in names}
    place = {time: number for number, time in enumerate(times)}
    for row in rows:
        if (name := f"{row.queue}, {row.kind}") in lines:
            lines[name][place[row.window]] = row.burn
    title = f"Burn of the budget: {percent:g} % within {readable(bound_ns)}"
    stamps = [datetime.fromtimestamp(utc(time), UTC) for time in times]
    page.draw(Drawing("burn", title, pictures.burn_lines(stamps, lines, title)))


def what_was_wrong(page: Page, tables: Tables) -> None:
    page.heading("What was wrong with the spool")
    rows = tables.problems.orderBy("file", "offset").collect()
    late = tables.late.agg(f.sum(f.expr(MESSAGES))).first()
    if late and late[0]:
        page.note(
            f"{several(late[0], 'recorded time')} came after the window was closed: set aside."
        )
    if not rows:
        page.note("Nothing: every file and interval was read.")
        return
    left_out = sum(row.left_out for row in rows)
    page.note(f"Problems: {len(rows):,}; messages known to be left out: {left_out:,}.")
    page.table(
        ["file", "at", "problem", "messages left out"],
        [[row.file, row.offset, row.problem, row.left_out] for row in rows],
    )
