"""Who has written a journal, from the headers of its segments."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from shmbroker import SystemRefused
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.segment import newest_of
from shmbroker.ipc.journal.segment_folder import SegmentFolder, segment_name

NODES = b"a" * 16, b"b" * 16
PATTERN = "*.journal"


def written(folder: Path) -> list[Path]:
    """By two nodes, one after the other."""
    for epoch, node in zip((3, 2), NODES, strict=True):
        with Journal(folder, epoch=epoch, segment_bytes=64 << 10, node=node) as journal:
            journal.message(1, epoch, b"")
            journal.commit()
    return sorted(folder.glob(PATTERN))


def test_the_highest_epoch_and_the_newest_node(tmp_path: Path) -> None:
    assert newest_of(tmp_path) == (0, bytes(16))
    first, *_, last = written(tmp_path)
    assert newest_of(tmp_path) == (3, NODES[1])
    (tmp_path / "0000000000000009.journal.old").touch()
    (tmp_path / segment_name(0)).touch()
    with closing(SegmentFolder(tmp_path)) as folder:
        assert folder.serials() == [int(each.stem, 16) for each in (first, last)]
    last.unlink()
    assert newest_of(tmp_path) == (3, NODES[0])


def test_a_header_that_does_not_check_is_passed_over(tmp_path: Path) -> None:
    first, *_, last = written(tmp_path)
    shutil.copy(last, tmp_path / segment_name(99))  # it says another number
    assert newest_of(tmp_path) == (3, NODES[1])
    damaged = bytearray(last.read_bytes())
    damaged[100] ^= 1
    last.write_bytes(damaged)
    assert newest_of(tmp_path) == (3, NODES[0])
    last.write_bytes(b"short")
    assert newest_of(tmp_path) == (3, NODES[0])
    first.chmod(0o666)
    assert newest_of(tmp_path) == (0, bytes(16)), "anybody may have written it"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SystemRefused, match="No such file"):
        newest_of(tmp_path / "nowhere")
