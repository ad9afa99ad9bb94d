"""`shmbroker doctor`; what it looks at is tested on made-up machines."""

from __future__ import annotations

import os
import resource
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker.ipc.doctor import (
    files_in_use,
    locked_memory,
    memory_maps,
    open_files,
    remove_ipc,
    shared_memory,
    temporary_segments,
)
from tests.cli.command import Shell

GIB = 1 << 30
LONG_AGO = 3600


@pytest.fixture
def half_made() -> Iterator[Path]:
    """What is left in /dev/shm of somebody who was killed long ago."""
    path = Path(f"/dev/shm/.shmbroker-{uuid.uuid4().hex[:16]}")
    path.write_bytes(bytes(8192))
    os.utime(path, (time.time() - LONG_AGO,) * 2)
    yield path
    path.unlink(missing_ok=True)


def test_half_made_segments_that_nobody_uses(tmp_path: Path) -> None:
    old = tmp_path / ".shmbroker-0123456789abcdef"
    old.write_bytes(bytes(4096))
    (tmp_path / "default.arena").write_bytes(b"x")
    now = time.time()
    assert list(temporary_segments(tmp_path, now, set())) == []
    (found,) = temporary_segments(tmp_path, now + LONG_AGO, set())
    assert found.stale == old
    status = old.stat()
    in_use = {(status.st_dev, status.st_ino)}
    assert list(temporary_segments(tmp_path, now + LONG_AGO, in_use)) == []


def test_what_is_open_or_mapped_is_in_use(half_made: Path) -> None:
    import mmap

    status = half_made.stat()
    identity = (status.st_dev, status.st_ino)
    assert identity not in files_in_use()
    with half_made.open("r+b") as file:
        assert identity in files_in_use()
        mapping = mmap.mmap(file.fileno(), 4096)
    assert identity in files_in_use()
    mapping.close()
    assert identity not in files_in_use()


def test_a_small_or_full_shared_memory() -> None:
    assert list(shared_memory(GIB, GIB)) == []
    (small,) = shared_memory(64 << 20, 64 << 20)
    assert "64 MiB" in small.problem
    assert "--shm-size" in small.remedy
    (full,) = shared_memory(GIB, GIB // 100)
    assert "nearly full" in full.problem


@pytest.mark.parametrize(
    ("main", "drop_in", "is_found"),
    [
        ("", None, True),
        ("[Login]\n#RemoveIPC=no\n", None, True),
        ("[Login]\nRemoveIPC=no\n", None, False),
        ("[Login]\nRemoveIPC=yes\n", None, True),
        ("[Login]\nRemoveIPC=yes\n", "[Login]\nRemoveIPC = no\n", False),
        ("[Login]\nRemoveIPC=no\n", "[Login]\nRemoveIPC=yes\n", True),
    ],
)
def test_remove_ipc(tmp_path: Path, main: str, drop_in: str | None, is_found: bool) -> None:
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    (tmp_path / "etc/systemd/logind.conf.d").mkdir(parents=True)
    (tmp_path / "etc/systemd/logind.conf").write_text(main)
    if drop_in is not None:
        (tmp_path / "etc/systemd/logind.conf.d/ours.conf").write_text(drop_in)
    assert bool(list(remove_ipc(tmp_path, 1000))) is is_found
    assert list(remove_ipc(tmp_path, 0)) == []  # logind spares system users


def test_remove_ipc_without_systemd(tmp_path: Path) -> None:
    assert list(remove_ipc(tmp_path, 1000)) == []


def test_limits() -> None:
    assert list(open_files(1024, 1024)) == []
    assert list(open_files(resource.RLIM_INFINITY, resource.RLIM_INFINITY)) == []
    (found,) = open_files(256, 4096)
    assert found.remedy == "ulimit -n 1024"
    (found,) = open_files(256, 256)
    assert "limits.conf" in found.remedy
    assert list(locked_memory(resource.RLIM_INFINITY)) == []
    (found,) = locked_memory(65536)
    assert found.severity == "note"
    assert list(memory_maps(65530)) == []
    (found,) = memory_maps(1000)
    assert "sysctl" in found.remedy


def test_fix_removes_the_stale_only(shell: Shell, half_made: Path) -> None:
    shell.does("queue", "declare", "orders")
    answer = shell("doctor", "--json")
    assert answer.code == 1
    (found,) = [f for f in answer.json if f["stale"] == str(half_made)]
    assert list(found) == ["severity", "subject", "problem", "remedy", "stale"]
    assert str(half_made) in shell("doctor").out
    refused = shell("doctor", "--fix")
    assert refused.code == 2
    assert half_made.exists()
    fixed = shell("doctor", "--fix", "--yes")
    assert str(half_made) in fixed.said
    assert str(half_made) not in fixed.out
    assert not half_made.exists()
    assert shell.does("queue", "list", "--names").lines == ["orders"]
