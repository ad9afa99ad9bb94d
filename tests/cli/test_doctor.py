"""`shmbroker doctor`."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import shmbroker
from shmbroker.core import layout
from shmbroker.ipc.doctor.stale import boot_hash
from shmbroker.ipc.vhost import vhost as vhosts
from tests.cli.command import Shell
from tests.cli.terminal import terminal

LONG_AGO = 3600


@pytest.fixture
def left_behind() -> Iterator[Path]:
    """What is left in /dev/shm of somebody who was killed long ago, while making a vhost."""
    path = Path(f"/dev/shm/shmbroker.test-{os.getpid()}-{uuid.uuid4().hex[:16]}.arena")
    path.write_bytes(bytes(8192))
    os.utime(path, (time.time() - LONG_AGO,) * 2)
    yield path
    path.unlink(missing_ok=True)


def test_a_vhost_that_was_just_made_is_of_this_boot(shell: Shell) -> None:
    catalog = Path(f"/dev/shm/shmbroker.{shell.vhost}.catalog")
    with catalog.open("rb") as file:
        file.seek(layout.CATALOG_BOOT_AT)
        assert int.from_bytes(file.read(8), "little", signed=True) == boot_hash()


def test_a_queue_that_is_damaged_is_told_and_hides_no_other(shell: Shell) -> None:
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        for name in ("damaged", "orders"):
            broker.declare_queue(name, durable=name == "orders")
    (segment,) = Path("/dev/shm").glob(f"shmbroker.{shell.vhost}.queue-0-*")
    with segment.open("r+b") as file:
        file.write(bytes(64))
    found = {each["subject"]: each for each in shell("doctor", "--json").json}
    of = f"of vhost {shell.vhost!r}"
    assert "magic number is missing" in found[f"queue 'damaged' {of}"]["problem"]
    assert "no broker writes its journal" in found[f"queue 'orders' {of}"]["problem"]


def test_fix_removes_the_stale_only(shell: Shell, left_behind: Path) -> None:
    shell.does("queue", "declare", "orders")
    answer = shell("doctor", "--json")
    assert answer.code == 1
    (found,) = [f for f in answer.json if f["stale"] == [str(left_behind)]]
    assert list(found) == ["severity", "subject", "problem", "remedy", "stale"]
    vhost = left_behind.name.removeprefix("shmbroker.").removesuffix(".arena")
    assert vhost in shell("doctor").out
    refused = shell("doctor", "--fix")
    assert refused.code == 2
    assert left_behind.exists()
    fixed = shell("doctor", "--fix", "--yes")
    assert str(left_behind) in fixed.said
    assert vhost not in fixed.out
    assert not left_behind.exists()
    assert shell.does("queue", "list", "--names").lines == ["orders"]


def test_fix_leaves_what_was_made_while_it_asked(shell: Shell, left_behind: Path) -> None:
    vhost = left_behind.name.removeprefix("shmbroker.").removesuffix(".arena")
    with terminal(shell, "doctor", "--fix") as asking:
        asking.until(lambda drawn: b"[y/N]" in drawn)
        vhosts.create(vhost, arena_bytes=8 << 20)
        try:
            asking.press(b"y\r")
            asking.end()
            assert f"{left_behind} is removed".encode() not in asking.drawn
            shmbroker.connect(f"shm://{vhost}").close()
        finally:
            vhosts.delete(vhost)
