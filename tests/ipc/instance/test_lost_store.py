"""A store that goes away while somebody is live on it: unmounted, moved, or its disk is gone."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

import shmbroker
from tests.ipc.instance.conftest import Make
from tests.ipc.instance.test_pair import bodies, is_announced, put
from tests.support.runs import Run, Settings

EXT4_IOC_SHUTDOWN: Final = 0x8004587D
NO_LOG_FLUSH: Final = 2

Mount = Callable[..., Path]


@pytest.fixture
def locked() -> Settings:
    return {}


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Mount]:
    """A file system at the place of the store; it is gone after the test."""
    place = tmp_path / "disk"
    place.mkdir()
    count = 0

    def mount(*options: str) -> Path:
        nonlocal count
        subprocess.run(["mount", *options, str(place)], check=True)
        count += 1
        return place

    yield mount
    for _ in range(count):
        subprocess.run(["umount", "-l", str(place)], stderr=subprocess.DEVNULL, check=False)


def pair(make: Make, disk: Path) -> tuple[Run, Run]:
    """On a store of this disk, with their logs on another one."""
    settings = {"store__path": str(disk / "store")}
    live = make("a", **settings).start().becomes("live")
    return live, is_announced(make("b", "backup", **settings).start())


def published_until_it_is_not_confirmed(vhost: str) -> list[bytes]:
    """All that was published: the last one was not confirmed."""
    all_of_them: list[bytes] = []
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.queue("orders")
        while True:
            all_of_them.append(b"%d" % len(all_of_them))
            try:
                queue.publish(all_of_them[-1], timeout=2)
            except shmbroker.Unconfirmed:
                return all_of_them


def errors(vhost: str) -> str:
    with shmbroker.connect(f"shm://{vhost}", observe=True) as broker:
        return " ".join(each.text for each in broker.errors())


def test_nothing_is_confirmed_into_a_file_system_that_was_unmounted(
    make: Make, vhost: str, tmp_path: Path, mounted: Mount
) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(32 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    disk = mounted("-o", "loop", str(image))
    live, backup = pair(make, disk)
    put(vhost)
    subprocess.run(["umount", "-l", str(disk)], check=True)
    published = published_until_it_is_not_confirmed(vhost)
    for each in (live, backup):
        assert each.ends() == 1
        assert f"{disk / 'store'}" in each.why("failed")
        assert "unmounted" in each.why("failed")
        assert "unmounted" in each.errors()
        assert each.status.state == "failed"
        assert "unmounted" in each.status.why
    assert "unmounted" in errors(vhost)
    mounted("-o", "loop", str(image))
    live.start().becomes("live")
    assert bodies(vhost) == published
    put(vhost, b"more")


def test_a_store_that_was_moved_while_somebody_is_live(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    put(vhost)
    store = live.folder.parent / "store"
    store.rename(store.with_name("elsewhere"))
    assert live.ends() == 1, "also if nobody publishes"
    assert f"{store}/" in live.why("failed")
    store.with_name("elsewhere").rename(store)
    live.start().becomes("live")


def test_a_lock_that_was_deleted_while_somebody_is_live(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    (live.folder.parent / "store" / "live.lock").unlink()
    assert live.ends() == 1
    assert "live.lock" in live.why("failed")
    live.start(moved=True).becomes("live")


def test_a_disk_that_is_gone_is_said_in_a_log_that_is_on_another_one(
    make: Make, vhost: str, tmp_path: Path, mounted: Mount
) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(32 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    disk = mounted("-o", "loop", str(image))
    live, backup = pair(make, disk)
    put(vhost, b"0")
    folder = os.open(disk, os.O_RDONLY)
    fcntl.ioctl(folder, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
    os.close(folder)
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        pytest.raises(shmbroker.Unconfirmed),
    ):
        broker.queue("orders").publish(b"1", timeout=0.5)
    for each in (live, backup):
        assert each.ends() == 1
        assert str(disk) in each.why("failed")
        assert str(disk) in each.errors()
        assert each.status.state == "failed"
    with shmbroker.connect(f"shm://{vhost}", observe=True) as broker:
        there = broker.queue("orders").browse(unconfirmed=True)
        assert [(each.body, each.is_confirmed) for each in there] == [(b"0", True), (b"1", False)]
