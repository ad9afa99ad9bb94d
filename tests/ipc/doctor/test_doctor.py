"""What may be wrong with a host, on made-up ones."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from shmbroker.ipc.doctor.doctor import (
    locked_memory,
    memory_maps,
    open_files,
    remove_ipc,
    shared_memory,
)

GIB = 1 << 30


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
