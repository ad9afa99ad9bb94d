"""The spool's Parquet files: what is damaged is told, whatever else is there is read."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shmbroker.perf.spark.fleet import SCHEMA, Fleet, tables, write_parquet
from tests.perf.spark.reading import rows_of, sparse

FLEET = Fleet(hosts=2, queues=2, intervals=6, messages=20, variants=4)


@pytest.fixture
def table() -> pa.Table:
    return next(tables(FLEET))


def written(folder: Path, table: pa.Table, **options: Any) -> Path:
    path = folder / "h-v-1.parquet"
    pq.write_table(table, path, **options)
    return path


def changed(table: pa.Table, row: int, **values: Any) -> pa.Table:
    rows = table.to_pylist()
    rows[row] |= values
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def test_all_is_read(tmp_path: Path, table: pa.Table) -> None:
    found = rows_of(written(tmp_path, table))
    assert not found["problem"]
    assert [
        {name: row[name] for name in SCHEMA.names} for row in found["interval"]
    ] == table.to_pylist()
    assert [row["offset"] for row in found["interval"]] == list(range(FLEET.rows))


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"host": None}, "no host"),
        ({"start": None}, "no start"),
        ({"counts": None}, "no counts"),
        ({"counts": [1]}, "buckets and 1 counts"),
        ({"indexes": [5, 3], "counts": [1, 1], "total": 2}, "ascend"),
        ({"indexes": [5, 5], "counts": [1, 1], "total": 2}, "ascend"),
        ({"indexes": [-1], "counts": [1], "total": 1}, "outside"),
        ({"indexes": [1 << 30], "counts": [1], "total": 1}, "outside"),
        ({"indexes": [None], "counts": [1], "total": 1}, "outside"),
        ({"indexes": [1], "counts": [0], "total": 0}, "not positive"),
        ({"indexes": [1, 2], "counts": [1 << 62, 1 << 62], "total": 1}, "overflows"),
        ({"indexes": [1], "counts": [1], "total": 2}, "its total says 2"),
        ({"overflow": -3}, "above the highest"),
        ({"digits": 9}, "9 significant digits"),
        ({"lowest": 0}, "lowest value 0"),
        ({"start": -5}, "before 1970"),
    ],
)
def test_a_bad_row_costs_itself_only(
    tmp_path: Path, table: pa.Table, values: dict[str, Any], what: str
) -> None:
    found = rows_of(written(tmp_path, changed(table, 9, **values)))
    [problem] = found["problem"]
    assert what in problem["problem"]
    assert problem["offset"] == 9
    assert len(found["interval"]) == FLEET.rows - 1 == found["file"][0]["offset"]


def test_an_interval_without_messages_is_one(tmp_path: Path, table: pa.Table) -> None:
    found = rows_of(written(tmp_path, changed(table, 0, indexes=[], counts=[], total=0)))
    assert not found["problem"]
    assert len(found["interval"]) == FLEET.rows


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda t: t.replace_schema_metadata(None), "no spool of shmbroker"),
        (lambda t: t.replace_schema_metadata({"shmbroker.spool.version": "2"}), "version 2"),
        (lambda t: t.drop_columns(["digits"]), "digits is missing"),
        (lambda t: t.set_column(0, "host", pa.array([1] * len(t))), "host is int64"),
        (lambda t: t.set_column(12, "indexes", t["total"]), "indexes is int64"),
    ],
)
def test_a_foreign_file_is_told_of(
    tmp_path: Path, table: pa.Table, change: Callable[[pa.Table], pa.Table], what: str
) -> None:
    found = rows_of(written(tmp_path, change(table)))
    assert not found["interval"]
    assert what in found["problem"][0]["problem"]


def test_other_widths_of_the_same_are_read(tmp_path: Path, table: pa.Table) -> None:
    wide = table.cast(
        pa.schema(
            [(f.name, pa.large_string() if f.type == pa.string() else f.type) for f in SCHEMA],
            SCHEMA.metadata,
        )
    )
    assert len(rows_of(written(tmp_path, wide))["interval"]) == FLEET.rows


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"#[shmbroker", bytes(1000)])
def test_no_parquet_is_told_of(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    assert "no readable Parquet" in rows_of(path)["problem"][0]["problem"]


def test_any_damage_is_survived_and_told(tmp_path: Path, table: pa.Table) -> None:
    path = written(tmp_path, table, row_group_size=8, write_page_checksum=True, compression="zstd")
    whole, good = path.read_bytes(), rows_of(path)["interval"]
    known = {(row["offset"], *sparse(row).items()) for row in good}
    dice = random.Random(3)
    for _ in range(150):
        damaged = bytearray(whole)
        if dice.random() < 0.2:
            del damaged[dice.randrange(len(damaged)) :]
        else:
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        found = rows_of(path)
        if not found["problem"]:
            # only in what is not used: statistics, or the names of others
            assert len(found["interval"]) == len(good)
            assert {(row["offset"], *sparse(row).items()) for row in found["interval"]} == known


@pytest.mark.parametrize("seed", range(5))
def test_combining_adds_up_to_the_same(tmp_path: Path, seed: int) -> None:
    fleet = Fleet(hosts=3, queues=2, intervals=20, messages=30, builds=("1", "2"), seed=seed)
    write_parquet(fleet, tmp_path, 3)
    [path] = tmp_path.iterdir()
    window = 60 * 10**9
    added: dict[tuple[Any, ...], int] = {}
    sums = []
    for width in (0, window):
        added = {}
        for row in rows_of(path, width)["interval"]:
            for index, count in sparse(row).items():
                names = ("host", "vhost", "queue", "kind", "build", "lowest", "highest", "digits")
                key = (*(row[n] for n in names), row["start"] // window, index)
                added[key] = added.get(key, 0) + count
            assert row["total"] == sum(row["counts"])
        sums.append(added)
    assert sums[0] == sums[1]
    assert len(rows_of(path, window)["interval"]) < fleet.rows
