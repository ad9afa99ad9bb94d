"""Which segments were left behind, on made-up hosts."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

import pytest

from shmbroker.core import layout
from shmbroker.ipc.doctor.finding import Finding
from shmbroker.ipc.doctor.stale import files_in_use, stale_segments

LONG_AGO = 3600
BOOT = 0x1234


def stale(
    folder: Path, age: float = LONG_AGO, in_use: frozenset[Path] = frozenset()
) -> list[Finding]:
    used = {(path.stat().st_dev, path.stat().st_ino) for path in in_use}
    return list(stale_segments(folder, time.time() + age, used, BOOT))


def made_up_vhost(folder: Path, rows: dict[int, int], **header: int) -> Path:
    """A catalog with these queues (row and generation), the segment of one, and an arena."""
    words = {
        "MAGIC": layout.CATALOG_MAGIC, "VERSION": layout.LAYOUT_VERSION, "BOOT": BOOT, **header
    }  # fmt: skip
    memory = bytearray(layout.QUEUE_COLUMN_AT + layout.QUEUE_ROWS * layout.ROW_BYTES)
    for name, value in words.items():
        at = getattr(layout, f"CATALOG_{name}_AT")
        memory[at : at + 8] = value.to_bytes(8, "little")
    for index, generation in rows.items():
        at = layout.QUEUE_COLUMN_AT + index * layout.ROW_BYTES
        row = layout.ROW_LIVE | generation << layout.ROW_GENERATION_SHIFT | 0xABCDEF
        memory[at : at + 8] = row.to_bytes(8, "little")
    (folder / "shmbroker.v.arena").write_bytes(b"")
    (folder / "shmbroker.v.queue-3-7").write_bytes(b"")
    catalog = folder / "shmbroker.v.catalog"
    catalog.write_bytes(memory)
    catalog.chmod(0o600)
    return catalog


def test_a_vhost_in_order(tmp_path: Path) -> None:
    made_up_vhost(tmp_path, {3: 7})
    assert stale(tmp_path) == []


@pytest.mark.parametrize("rows", [{}, {3: 8}, {2: 7}], ids=str)
def test_a_segment_of_no_queue(tmp_path: Path, rows: dict[int, int]) -> None:
    made_up_vhost(tmp_path, rows)
    (found,) = stale(tmp_path)
    assert found.stale == (tmp_path / "shmbroker.v.queue-3-7",)
    assert stale(tmp_path, in_use=frozenset(found.stale)) == []
    assert stale(tmp_path, age=0) == []


def test_a_segment_of_any_number_stops_nobody(tmp_path: Path) -> None:
    made_up_vhost(tmp_path, {})
    (tmp_path / f"shmbroker.v.queue-{10**40}-1").write_bytes(b"")
    (found,) = stale(tmp_path)
    assert found.stale == (tmp_path / "shmbroker.v.queue-3-7",)


def test_a_mapped_file_of_any_name_stops_nobody(tmp_path: Path) -> None:
    """The kernel escapes ends of lines in it, and only those that it knows."""
    (tmp_path / "1").mkdir()
    line = "7f0000000000-7f0000001000 r--p 00000000 08:01 {} /tmp/{}\n"
    lines = line.format(4711, "a\x85b") + line.format(4712, "c")
    (tmp_path / "1" / "maps").write_text(lines)
    device = os.makedev(8, 1)
    assert files_in_use(tmp_path) == {(device, 4711), (device, 4712)}


def test_a_vhost_that_others_may_write_is_told(tmp_path: Path) -> None:
    made_up_vhost(tmp_path, {3: 7}).chmod(0o666)
    (found,) = stale(tmp_path)
    assert found.severity == "error"
    assert "mode 0666" in found.problem


def test_a_pipe_instead_of_a_catalog_is_told_and_not_waited_for(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    catalog = made_up_vhost(tmp_path, {3: 7})
    catalog.unlink()
    os.mkfifo(catalog, 0o600)
    (found,) = stale(tmp_path)
    assert "no regular file" in found.problem


def test_a_vhost_without_its_catalog(tmp_path: Path) -> None:
    made_up_vhost(tmp_path, {3: 7}).unlink()
    (found,) = stale(tmp_path)
    assert {path.suffix for path in found.stale} == {".arena", ".queue-3-7"}


def test_a_vhost_of_another_boot(tmp_path: Path) -> None:
    catalog = made_up_vhost(tmp_path, {3: 7}, BOOT=BOOT + 1)
    (found,) = stale(tmp_path)
    assert found.severity == "error"
    assert found.stale[0] == catalog  # a vhost exists when its catalog does
    assert len(found.stale) == 3
    (found,) = stale(tmp_path, in_use=frozenset([tmp_path / "shmbroker.v.arena"]))
    assert found.stale == ()


def test_a_catalog_that_cannot_be_read_is_told_and_kept(tmp_path: Path) -> None:
    catalog = made_up_vhost(tmp_path, {3: 7}, VERSION=99)
    (found,) = stale(tmp_path)
    assert "layout 99" in found.problem
    made_up_vhost(tmp_path, {3: 7}, MAGIC=1)
    assert "no catalog" in stale(tmp_path)[0].problem
    catalog.write_bytes(b"short")
    catalog.chmod(0o600)
    assert "cut off" in stale(tmp_path)[0].problem
    assert stale(tmp_path)[0].stale == ()


def test_what_is_open_or_mapped_is_in_use(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(4096))
    status = path.stat()
    identity = (status.st_dev, status.st_ino)
    assert identity not in files_in_use()
    with path.open("r+b") as file:
        assert identity in files_in_use()
        mapping = mmap.mmap(file.fileno(), 4096)
    assert identity in files_in_use()
    mapping.close()
    assert identity not in files_in_use()
