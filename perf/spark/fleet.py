"""A fleet that is made up: spools of any number of hosts, reproducible from a seed.

Each queue has a median of its own, latencies are log-normal with a tail; hosts differ a little.
Histograms are drawn once, some hundred a queue and build, and every interval takes one of them:
so millions of intervals are written in seconds, and are as wide as real ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shmbroker.perf.spark.columnar import COLUMNS, VERSION, VERSION_KEY
from shmbroker.perf.spark.encoding import encoded
from shmbroker.perf.spark.geometry import Geometry

KIND = "publish-take"
DAY_NS = 86_400 * 10**9
TWO_DIGITS = Geometry(1, 60 * 10**9, 2)
SCHEMA = pa.schema(list(COLUMNS.items()), metadata={VERSION_KEY: VERSION})


@dataclass(frozen=True)
class Fleet:
    """What to make up."""

    hosts: int = 20
    queues: int = 10
    intervals: int = 60
    interval_ns: int = 10 * 10**9
    start: int = 20_000 * DAY_NS
    messages: int = 200
    variants: int = 128
    builds: tuple[str, ...] = ("1.0",)
    """Each runs for an equal part of the time, one after the other."""
    slower: tuple[str, float] | None = None
    """A queue whose slowest percent takes so much longer in the last build: ("q7", 1.1)."""
    geometry: Geometry = TWO_DIGITS
    seed: int = 1

    @property
    def rows(self) -> int:
        return self.hosts * self.queues * self.intervals

    def host(self, number: int) -> str:
        return f"host-{number:04}"

    def queue(self, number: int) -> str:
        return f"q{number}"


@dataclass(frozen=True)
class Drawn:
    """The histograms of one build, queue after queue."""

    indexes: pa.ListArray
    counts: pa.ListArray
    totals: np.ndarray


def latencies(fleet: Fleet, queue: int, is_slower: bool, dice: np.random.Generator) -> np.ndarray:
    """Nanoseconds: a body, and one message in 50 in the tail."""
    shape = fleet.variants, fleet.messages
    median = 400 * 1.4 ** (queue % 10)
    values = median * np.exp(dice.normal(0, 0.25, shape))
    tail = dice.random(shape) < 0.02
    values[tail] *= np.exp(dice.gamma(2.0, 0.35, int(tail.sum())))
    if is_slower and fleet.slower:
        # what is above the 98th percentile moves up: p99 by that factor, the median not at all
        values = np.where(values > np.quantile(values, 0.98), values * fleet.slower[1], values)
    return np.asarray(values)


def buckets_of(values: np.ndarray, geometry: Geometry) -> np.ndarray:
    whole = np.clip(values, 1, geometry.highest).astype(np.int64)
    bits = np.frexp(whole.astype(np.float64))[1]
    bucket = np.maximum(bits - (geometry.unit + geometry.half + 1), 0)
    return np.asarray((bucket << geometry.half) + (whole >> (bucket + geometry.unit)), np.int32)


def drawn(fleet: Fleet, build: int) -> Drawn:
    indexes, counts, sizes, totals = [], [], [], []
    for queue in range(fleet.queues):
        # the same for all builds: without `slower` they do not differ, but in what is chosen
        dice = np.random.default_rng([fleet.seed, queue])
        is_last = build == len(fleet.builds) - 1
        is_slower = bool(fleet.slower and fleet.slower[0] == fleet.queue(queue) and is_last)
        for row in buckets_of(latencies(fleet, queue, is_slower, dice), fleet.geometry):
            index, count = np.unique(row, return_counts=True)
            indexes.append(index)
            counts.append(count)
            sizes.append(len(index))
            totals.append(int(count.sum()))
    ends = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
    return Drawn(
        pa.ListArray.from_arrays(ends, pa.array(np.concatenate(indexes), pa.int32())),
        pa.ListArray.from_arrays(ends, pa.array(np.concatenate(counts), pa.int64())),
        np.array(totals, np.int64),
    )


def tables(fleet: Fleet, hosts_a_table: int = 20) -> Iterator[pa.Table]:
    """Intervals of some hosts, each host's in the order of time."""
    builds = [drawn(fleet, number) for number in range(len(fleet.builds))]
    for first in range(0, fleet.hosts, hosts_a_table):
        hosts = range(first, min(first + hosts_a_table, fleet.hosts))
        yield pa.concat_tables([of_host(fleet, builds, host) for host in hosts])


def of_host(fleet: Fleet, builds: list[Drawn], host: int) -> pa.Table:
    dice = np.random.default_rng([fleet.seed, 1 << 20, host])
    count = fleet.intervals * fleet.queues
    queue = np.tile(np.arange(fleet.queues), fleet.intervals)
    interval = np.repeat(np.arange(fleet.intervals), fleet.queues)
    which_build = interval * len(fleet.builds) // fleet.intervals
    choice = pa.array(queue * fleet.variants + dice.integers(0, fleet.variants, count))
    start = fleet.start + interval * fleet.interval_ns
    parts = []
    for number, build in enumerate(builds):
        mine = np.flatnonzero(which_build == number)
        picked = choice.take(pa.array(mine))
        size = len(mine)
        names = pa.array([fleet.queue(n) for n in range(fleet.queues)]).take(pa.array(queue[mine]))
        columns = {
            "host": pa.repeat(fleet.host(host), size),
            "vhost": pa.repeat("default", size),
            "queue": names,
            "kind": pa.repeat(KIND, size),
            "build": pa.repeat(fleet.builds[number], size),
            "start": start[mine],
            "end": start[mine] + fleet.interval_ns,
            "lowest": np.full(size, fleet.geometry.lowest),
            "highest": np.full(size, fleet.geometry.highest),
            "digits": np.full(size, fleet.geometry.digits, np.int32),
            "total": build.totals[np.asarray(picked)],
            "overflow": np.zeros(size, np.int64),
            "indexes": build.indexes.take(picked),
            "counts": build.counts.take(picked),
        }
        parts.append(pa.table({name: columns[name] for name in SCHEMA.names}, schema=SCHEMA))
    return pa.concat_tables(parts)


def write_parquet(fleet: Fleet, folder: Path, hosts_a_file: int = 20) -> int:
    """Rows written; a file holds several hosts, as after a compaction."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables(fleet, hosts_a_file):
        name = f"{table['host'][0]}-default-{fleet.start}.parquet"
        pq.write_table(table, folder / f"{name}.part", compression="zstd", row_group_size=1 << 17)
        (folder / f"{name}.part").rename(folder / name)
    return fleet.rows


def write_hlog(fleet: Fleet, folder: Path) -> int:
    """The same as logs, one a host and build."""
    folder.mkdir(parents=True, exist_ok=True)
    texts: dict[tuple[int, ...], str] = {}
    for table in tables(fleet, 1):
        for build in fleet.builds:
            rows = table.filter(pa.compute.equal(table["build"], build)).to_pylist()
            if rows:
                name = f"{rows[0]['host']}-default-{rows[0]['start']}.hlog"
                lines = [line for row in rows for line in lines_of(row, texts)]
                header = f"host={rows[0]['host']} vhost=default build={build}"
                top = [
                    "#[Histogram log format version 1.3]",
                    f"#[shmbroker spool 1 {header}]",
                    f"#[StartTime: {rows[0]['start'] / 1e9:.3f} (seconds since epoch)]",
                    '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
                ]
                (folder / f"{name}.part").write_text("\n".join([*top, *lines, ""]))
                (folder / f"{name}.part").rename(folder / name)
    return fleet.rows


def lines_of(row: dict[str, object], texts: dict[tuple[int, ...], str]) -> Iterator[str]:
    """One interval; payloads that were encoded before are kept in `texts`."""
    geometry = Geometry(row["lowest"], row["highest"], row["digits"])  # type: ignore[arg-type]
    indexes, counts = np.array(row["indexes"]), np.array(row["counts"])
    key = (*indexes.tolist(), *counts.tolist())
    if key not in texts:
        texts[key] = encoded(geometry, indexes, counts)
    tag = ";".join(quote(str(row[name]), safe="") for name in ("queue", "kind"))
    start, end = int(str(row["start"])), int(str(row["end"]))
    greatest = geometry.highest_value(int(indexes[-1])) / 1e6 if len(indexes) else 0
    if row["overflow"]:
        yield f"#[overflow Tag={tag} count={row['overflow']}]"
    yield f"Tag={tag},{start / 1e9:.3f},{(end - start) / 1e9:.3f},{greatest:.3f},{texts[key]}"


def part_of(fleet: Fleet, hosts: int) -> Fleet:
    """The same with fewer hosts."""
    return replace(fleet, hosts=hosts)
