"""The report is written from the tables, with what somebody would look for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shmbroker.perf.spark import intake
from shmbroker.perf.spark.fleet import Fleet, write_parquet
from shmbroker.perf.spark.regression import Plan
from shmbroker.perf.spark.tables import Tables


def test_a_report_has_its_pictures_and_tables(spark: Any, tmp_path: Path) -> None:
    from shmbroker.perf.spark.report import Wanted, report

    fleet = Fleet(hosts=2, queues=2, intervals=12, messages=100, variants=4, builds=("1", "2"))
    write_parquet(fleet, tmp_path / "spool", 1)
    (tmp_path / "spool" / "bad<b>-v-1.hlog").touch()
    intake.merge(spark, str(tmp_path / "spool"), str(tmp_path / "tables"), 20)
    wanted = Wanted("Latency & more", 1000, 99.0, Plan("1", "2", shuffles=19, block_seconds=60))
    tables = Tables(spark, str(tmp_path / "tables"))
    page, *pictures = report(tables, tmp_path / "page.html", wanted)
    assert [path.name for path in pictures] == [
        "page-percentiles.png", "page-over-time.png", "page-builds.png", "page-burn.png",
    ]  # fmt: skip
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    text = page.read_text()
    assert text.count("data:image/png;base64,") == text.count('<img alt="') == 4
    for what in (
        "Latency &amp; more",
        "publish-take",
        "99 % within 1 µs",
        "is empty",
        "Builds: 1, 2",
        "2 queues on 2 hosts",
        "3 files",
        '<th class="n">p99.9</th>',
        "of at least 10 windows",
    ):
        assert what in text
    assert "<b>" not in text
