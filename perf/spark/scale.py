"""python -m shmbroker.perf.spark.scale: the batch job over a fleet that is made up.

    2,000 hosts x 10 queues x 10 s  ->  spool (Parquet)  ->  histograms by 5 min  ->  p50 ... max

How many intervals a second on 1 and 2 cores, and how that changes from 1 to 5 million; then the
same `.hlog` files by Spark and by a loop over the `hdrhistogram` package.  Each run has a Java of
its own; Spark's start is not counted, its first compilations are.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shmbroker.perf.machine.machine import machine
from shmbroker.perf.spark.fleet import Fleet, write_hlog, write_parquet
from shmbroker.perf.spark.geometry import Geometry

HOSTS, QUEUES = 2000, 10
INTERVALS = (50, 250)
"""Of 10 s, by host and queue: 1 and 5 million rows."""
MESSAGES = 50
WINDOW_SECONDS = 300
LOG_HOSTS, LOG_INTERVALS = 400, 250
LOG_MESSAGES = 1000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m shmbroker.perf.spark.scale")
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--part", type=float, default=1.0, help="of the hosts; 0.01 to try it out")
    asked = parser.parse_args()
    if asked.job:
        spool, cores, place = asked.job
        say(json.dumps(job(spool, cores, place)))
        return 0
    say(json.dumps(machine(["pyspark", "pyarrow", "hdrhistogram"]), default=str))
    with TemporaryDirectory(prefix="shmbroker-scale-") as folder:
        columnar(Path(folder), asked.part)
        logs(Path(folder), asked.part)
    return 0


def columnar(folder: Path, part: float) -> None:
    speeds: dict[tuple[int, int], float] = {}
    for intervals in INTERVALS:
        fleet = Fleet(max(1, int(HOSTS * part)), QUEUES, intervals, messages=MESSAGES)
        spool = folder / f"columnar-{intervals}"
        spent = timed(write_parquet, fleet, spool)
        size = sum(path.stat().st_size for path in spool.iterdir())
        say(f"made {fleet.rows:,} intervals, {size >> 20:,} MiB of Parquet, in {spent:.0f} s")
        for cores in (1, 2):
            done = run(spool, cores, folder / f"tables-{intervals}-{cores}")
            speeds[intervals, cores] = fleet.rows / done["seconds"]
            say(
                f"{fleet.rows:>10,} intervals, {cores} cores: {done['seconds']:6.1f} s, "
                f"{speeds[intervals, cores]:>9,.0f} intervals/s  (merge {done['merge']:.1f} s, "
                f"percentiles {done['percentiles']:.1f} s; {done['histograms']:,} histograms, "
                f"{done['buckets']:,} buckets; "
                f"load {os.getloadavg()[0]:.1f})"
            )
    few, many = INTERVALS
    for cores in (1, 2):
        longer = many / few * speeds[few, cores] / speeds[many, cores]
        say(f"{many // few} x the rows, {cores} cores: {longer:.2f} x the time")
    for intervals in INTERVALS:
        say(f"2 cores instead of 1: {speeds[intervals, 2] / speeds[intervals, 1]:.2f} x as fast")


def logs(folder: Path, part: float) -> None:
    """The same log files, by both."""
    for digits in (2, 3):
        geometry = Geometry(1, 60 * 10**9, digits)
        hosts = max(2, int(LOG_HOSTS * part))
        fleet = Fleet(hosts, QUEUES, LOG_INTERVALS, messages=LOG_MESSAGES, geometry=geometry)
        spool = folder / f"log-{digits}"
        write_hlog(fleet, spool)
        loop = timed(looped, spool, digits)
        done = run(spool, 2, folder / f"tables-log-{digits}")
        say(
            f"{fleet.rows:,} intervals of .hlog, {digits} digits: hdrhistogram in a loop "
            f"{loop:.1f} s, Spark on 2 cores {done['seconds']:.1f} s: "
            f"{loop / done['seconds']:.1f} x as fast"
        )


def looped(spool: Path, digits: int) -> dict[Any, list[int]]:
    """What one would write without Spark: the same keys, windows and percentiles."""
    from hdrh.histogram import HdrHistogram
    from hdrh.log import HistogramLogReader

    merged: dict[Any, Any] = {}
    for path in sorted(spool.iterdir()):
        reader = HistogramLogReader(str(path), HdrHistogram(1, 60 * 10**9, digits))
        while (histogram := reader.get_next_interval_histogram()) is not None:
            window = int(histogram.get_start_time_stamp() // (WINDOW_SECONDS * 1000))
            key = (path.name, histogram.get_tag(), window)
            if key in merged:
                merged[key].add(histogram)
            else:
                merged[key] = histogram
    ladder = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
    return {
        key: [histogram.get_value_at_percentile(percentile) for percentile in ladder]
        for key, histogram in merged.items()
    }


def run(spool: Path, cores: int, place: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, "--job"]
    said = subprocess.run([*command, str(spool), str(cores), str(place)], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # fmt: skip
    found: dict[str, Any] = json.loads(said.stdout.splitlines()[-1])
    return found


def job(spool: str, cores: str, place: str) -> dict[str, Any]:
    """Merge by window, and percentiles by host, queue and window."""
    from shmbroker.perf.spark.intake import merge
    from shmbroker.perf.spark.percentiles import percentiles
    from shmbroker.perf.spark.session import session
    from shmbroker.perf.spark.tables import Tables

    # a task of Spark is a thread of Java and a process of Python: two processors, if there are two
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    settings = {"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": str(4 * int(cores)),
                "spark.ui.enabled": "false"}  # fmt: skip
    spark = session(f"local[{cores}]", **settings)
    tables = Tables(spark, place)
    merging = timed(merge, spark, spool, place, WINDOW_SECONDS)
    keys = ["host", "queue", "kind", "window"]
    histograms = tables.histograms
    ranking = timed(lambda: tables.write_result("percentiles", percentiles(histograms, keys)))
    size = histograms.selectExpr("count(*)", "sum(size(indexes))").first()
    spark.stop()
    return {"seconds": merging + ranking, "merge": merging, "percentiles": ranking,
            "histograms": size and size[0], "buckets": size and size[1]}  # fmt: skip


def timed(work: Callable[..., object], *arguments: object) -> float:
    before = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - before


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
