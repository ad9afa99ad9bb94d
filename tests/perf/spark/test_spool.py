"""Which files of a spool are read, and that a stream takes each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.perf.spark import spool
from shmbroker.perf.spark.ledger import Ledger
from shmbroker.perf.spark.source import Pack, packed
from shmbroker.perf.spark.spool import NoSpool, SpoolFile


def names(folder: Path) -> list[str]:
    return [Path(file.path).name for file in spool.files(str(folder))]


def test_what_is_complete_is_read_the_oldest_first(tmp_path: Path) -> None:
    made = ["b-v-100.hlog", "a-v-300.parquet", "a-v-200.parquet", "a-v-400.hlog.part", "_x.hlog",
            "notes.txt", "sub/c-v-50.hlog", "_temporary/c-v-51.hlog", "no-number.hlog"]  # fmt: skip
    for name in made:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    expected = [
        "no-number.hlog",
        "c-v-50.hlog",
        "b-v-100.hlog",
        "a-v-200.parquet",
        "a-v-300.parquet",
    ]
    assert names(tmp_path) == expected


def test_of_both_forms_of_the_same_one_is_read(tmp_path: Path) -> None:
    for name in ("a-v-1.hlog", "a-v-1.parquet", "a-v-2.hlog"):
        (tmp_path / name).touch()
    assert names(tmp_path) == ["a-v-1.parquet", "a-v-2.hlog"]


def test_a_place_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoSpool, match="no such file or folder"):
        spool.files(str(tmp_path / "nowhere"))
    with pytest.raises(NoSpool, match="nosuch"):
        spool.files("nosuch://host/spool")


def test_a_file_that_vanishes_is_told(tmp_path: Path) -> None:
    system, path = spool.opened(str(tmp_path / "gone.hlog"))
    sorts = [batch.to_pylist()[0] for batch in spool.read(system, path)]
    assert [row["sort"] for row in sorts] == ["problem", "file"]
    assert "cannot be read" in sorts[0]["problem"]


def test_small_files_share_a_task() -> None:
    files = [SpoolFile(f"{n}", size) for n, size in enumerate((10, 900_000, 20, 900_000, 30))]
    packs = packed(files, 1_000_000)
    assert all(isinstance(pack, Pack) for pack in packs)
    assert sorted(path for pack in packs for path in pack.paths) == list("01234")  # type: ignore[attr-defined]
    assert len(packs) == 2 or len(packs) == 3


def test_a_ledger_takes_each_file_once_also_after_a_restart(tmp_path: Path) -> None:
    files = [SpoolFile(f"/s/a-{n}.hlog", n) for n in range(5)]
    ledger = Ledger(str(tmp_path / "ledger"))
    assert ledger.take(files[:3], at_most=2) == 1
    (tmp_path / "ledger" / "00000002.json.part").write_text("[half")
    again = Ledger(str(tmp_path / "ledger"))
    assert again.take(files, at_most=100) == 2
    assert again.take(files, at_most=100) == 2
    assert [file.size for file in again.between(0, 1)] == [0, 1]
    assert [file.size for file in again.between(1, 2)] == [2, 3, 4]
    twin = SpoolFile("/s/a-3.parquet", 99)
    assert Ledger(str(tmp_path / "ledger")).take([twin], at_most=100) == 2
