"""A spool becomes tables: all at once or file by file, damaged or not, killed or not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row

from shmbroker.perf.spark import intake
from shmbroker.perf.spark.buckets import GEOMETRY, apart
from shmbroker.perf.spark.fleet import DAY_NS, Fleet, write_hlog, write_parquet
from shmbroker.perf.spark.histograms import KEYS
from shmbroker.perf.spark.percentiles import percentiles
from shmbroker.perf.spark.spool import NoSpool
from shmbroker.perf.spark.tables import NoTables, Tables

ROOT = Path(__file__).parents[3]
FLEET = Fleet(hosts=3, queues=2, intervals=12, messages=40, variants=8)
DAY = 86_400.0
PATIENCE_SECONDS = 600


def contents(tables: Tables) -> list[tuple[Any, ...]]:
    """Bucket by bucket: a stream may have several rows of one key."""
    columns = [*KEYS, *GEOMETRY, "index"]
    added = apart(tables.histograms, KEYS).groupBy(*columns).sum("count")
    return sorted(tuple(row) for row in added.collect())


def follow(spark: Any, spool: Path, place: Path, delay: float = DAY, files: int = 2) -> Tables:
    intake.follow(spark, str(spool), str(place), 60, delay, None, files)
    return Tables(spark, str(place))


def damaged_spool(folder: Path) -> None:
    """Two days of a fleet, in both forms, and all sorts of damage."""
    write_parquet(FLEET, folder, 1)
    write_hlog(replace(FLEET, start=FLEET.start + DAY_NS), folder)
    logs = sorted(folder.glob("*.hlog"))
    text = logs[0].read_text().splitlines(keepends=True)
    logs[0].write_text("".join([*text[:8], text[8][:60] + "\n", *text[9:]]))
    (folder / "empty-v-1.hlog").touch()
    (folder / "foreign-v-2.parquet").write_bytes(b"PAR1 not at all")
    (folder / "new-v-3.hlog").write_text("#[shmbroker spool 9 host=x vhost=v build=1]\n")
    (folder / "writing-v-4.hlog.part").write_text("#[shmb")


def test_a_damaged_spool_is_merged_and_what_is_wrong_is_told(spark: Any, tmp_path: Path) -> None:
    damaged_spool(tmp_path / "spool")
    taken = intake.merge(spark, str(tmp_path / "spool"), str(tmp_path / "tables"), 60)
    assert (taken.files, taken.problems) == (9, 4)
    assert taken.intervals == 2 * FLEET.rows - 1
    assert taken.messages == taken.intervals * FLEET.messages
    tables = Tables(spark, str(tmp_path / "tables"))
    told = {Path(row.file).name.split("-")[0]: row for row in tables.problems.collect()}
    assert sorted(told) == ["empty", "foreign", "host", "new"]
    assert told["host"].offset > 0
    assert "version 9" in told["new"].problem
    assert tables.files.count() == 9
    assert sum(row[-1] for row in contents(tables)) == taken.messages
    first = contents(tables)
    # once more: the same, and nothing twice
    intake.merge(spark, str(tmp_path / "spool"), str(tmp_path / "tables"), 60)
    assert contents(Tables(spark, str(tmp_path / "tables"))) == first
    assert len(list((tmp_path / "tables" / "histograms").iterdir())) == 1
    # a stream comes to the same, and so does one that finds nothing new
    streamed = follow(spark, tmp_path / "spool", tmp_path / "streamed", files=4)
    assert contents(streamed) == first
    assert len(streamed.batches()) == 3
    assert contents(follow(spark, tmp_path / "spool", tmp_path / "streamed")) == first
    assert sorted(tuple(row)[:3] for row in streamed.problems.collect()) == sorted(
        tuple(row)[:3] for row in tables.problems.collect()
    )


def test_what_is_late_is_set_aside_and_counted(spark: Any, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    write_parquet(replace(FLEET, start=FLEET.start + DAY_NS), spool, 3)
    follow(spark, spool, tmp_path / "tables", delay=60.0)
    write_hlog(replace(FLEET, hosts=1), spool)
    tables = follow(spark, spool, tmp_path / "tables", delay=60.0)
    on_time = FLEET.rows * FLEET.messages
    assert sum(row[-1] for row in contents(tables)) == on_time
    assert sum(row.total for row in tables.late.collect()) == on_time // 3


def test_files_of_a_host_that_overlap_are_told(spark: Any, tmp_path: Path) -> None:
    one = replace(FLEET, hosts=1)
    write_hlog(one, tmp_path / "spool")
    write_hlog(replace(one, start=one.start + 20 * 10**9), tmp_path / "spool")
    taken = intake.merge(spark, str(tmp_path / "spool"), str(tmp_path / "tables"), 60)
    assert (taken.problems, taken.left_out, taken.intervals) == (1, 0, 2 * one.rows)
    [row] = Tables(spark, str(tmp_path / "tables")).problems.collect()
    assert "overlaps" in row.problem


def test_each_file_that_a_long_one_covers_is_told() -> None:
    times = {"long": (0, 100), "b": (10, 20), "c": (30, 40), "behind": (100, 110)}
    read = [
        Row(file=file, host="h", vhost="v", start=start * 10**9, end=end * 10**9)
        for file, (start, end) in times.items()
    ]
    assert [(row.file, row.problem[:13]) for row in intake.overlapping(read)] == [
        ("b", "overlaps long"), ("c", "overlaps long"),
    ]  # fmt: skip


def test_an_empty_spool_makes_empty_tables(spark: Any, tmp_path: Path) -> None:
    from shmbroker.perf.spark.report import Wanted, report

    (tmp_path / "spool").mkdir()
    taken = intake.merge(spark, str(tmp_path / "spool"), str(tmp_path / "tables"), 60)
    assert (taken.files, taken.messages, taken.problems) == (0, 0, 0)
    tables = Tables(spark, str(tmp_path / "tables"))
    assert percentiles(tables.histograms, ["queue"]).collect() == []
    written = report(tables, tmp_path / "report.html", Wanted())
    assert "nothing in these tables" in written[0].read_text()
    for name in ("a-v-1.hlog", "b-v-1.parquet"):
        (tmp_path / "spool" / name).touch()
    taken = intake.merge(spark, str(tmp_path / "spool"), str(tmp_path / "tables"), 60)
    assert (taken.files, taken.messages, taken.problems) == (2, 0, 2)
    assert tables.problems.count() == 2
    with pytest.raises(NoSpool, match="no such file"):
        intake.merge(spark, str(tmp_path / "nowhere"), str(tmp_path / "tables"), 60)


def test_tables_are_not_mixed(spark: Any, tmp_path: Path) -> None:
    write_parquet(replace(FLEET, hosts=1), tmp_path / "spool", 1)
    intake.merge(spark, str(tmp_path / "spool"), str(tmp_path / "tables"), 60)
    with pytest.raises(NoTables, match="another folder"):
        intake.merge(spark, str(tmp_path / "spool"), str(tmp_path / "tables"), 30)
    with pytest.raises(NoTables, match="another folder"):
        follow(spark, tmp_path / "spool", tmp_path / "tables")
    with pytest.raises(NoTables, match="no tables"):
        _ = Tables(spark, str(tmp_path / "nowhere")).about


def killed_and_restarted(
    spark: Any, folder: Path, kills: int, files: int, dice: random.Random
) -> None:
    """Until it has ended by itself; the moments are between any two of its writes."""
    fleet = replace(FLEET, hosts=files)
    write_hlog(fleet, folder / "spool")
    intake.merge(spark, str(folder / "spool"), str(folder / "batch"), 60)
    batches_a_life = max(1, files // (kills + 1))
    left = kills
    while True:
        follower = subprocess.Popen(
            [sys.executable, "-m", "tests.perf.spark.follower", str(folder / "spool"),
             str(folder / "tables"), "1"],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            assert follower.stdout
            assert follower.stdout.readline() == b"ready\n"
            if left:
                kill_at_some_moment(follower, folder / "tables", batches_a_life, dice)
                left -= 1
            else:
                assert follower.wait(PATIENCE_SECONDS) == 0
                break
        finally:
            if follower.poll() is None:
                os.killpg(follower.pid, signal.SIGKILL)
            follower.communicate()
    expected = contents(Tables(spark, str(folder / "batch")))
    assert sum(row[-1] for row in expected) == fleet.rows * fleet.messages
    assert contents(Tables(spark, str(folder / "tables"))) == expected


def kill_at_some_moment(
    follower: subprocess.Popen[bytes], place: Path, batches: int, dice: random.Random
) -> None:
    """Some batches on, and then within the time that one takes."""

    def done() -> int:
        return len(list((place / "progress").glob("*.json"))) if place.exists() else 0

    until = done() + dice.randint(0, batches)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while done() < until and follower.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(dice.uniform(0, 1.0))
    os.killpg(follower.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("late", "is_done"), [(intake.ATTEMPTS - 1, True), (intake.ATTEMPTS, False)]
)
def test_a_worker_that_is_late_is_tried_again(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: int, is_done: bool
) -> None:
    """Spark waits ten seconds: nothing that a test could bring about in time."""
    write_parquet(replace(FLEET, hosts=1), tmp_path / "spool", hosts_a_file=1)
    begin, tries = intake._begin, iter(range(late))

    class Late:
        def awaitTermination(self) -> None:  # Spark's name
            raise StreamingQueryException(f"... {intake.WORKER_IS_LATE} ...")

    def begins(*given: Any) -> Any:
        return Late() if next(tries, None) is not None else begin(*given)

    monkeypatch.setattr(intake, "_begin", begins)
    with nullcontext() if is_done else pytest.raises(StreamingQueryException):
        assert contents(follow(spark, tmp_path / "spool", tmp_path / "tables"))


def test_a_stream_that_was_killed_before_its_first_batch_begins(spark: Any, tmp_path: Path) -> None:
    write_parquet(replace(FLEET, hosts=1), tmp_path / "spool", hosts_a_file=1)
    left = tmp_path / "tables" / "checkpoint" / "offsets"
    left.mkdir(parents=True)
    (left / ".0.8a5ac1c3-7d4f-4c07-9b0d-3f4f4d4ad9f0.tmp").write_bytes(b"v1")
    assert contents(follow(spark, tmp_path / "spool", tmp_path / "tables"))


def test_a_stream_that_is_killed_comes_to_the_same_as_the_batch(spark: Any, tmp_path: Path) -> None:
    killed_and_restarted(spark, tmp_path, kills=1, files=3, dice=random.Random())


@pytest.mark.skipif("SHMBROKER_LONG" not in os.environ, reason="make latency-long")
def test_a_stream_that_is_killed_ten_times_comes_to_the_same(spark: Any, tmp_path: Path) -> None:
    killed_and_restarted(spark, tmp_path, kills=10, files=40, dice=random.Random())
