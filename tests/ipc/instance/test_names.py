"""Files in /dev/shm that take the place of others."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

from shmbroker.ipc.instance.beat import give_name


def named(path: Path, content: bytes) -> None:
    file = os.open(path.parent, os.O_RDWR | os.O_TMPFILE)
    os.write(file, content)
    give_name(file, path)
    os.close(file)


def test_a_file_takes_the_place_of_another_one_in_one_step(tmp_path: Path) -> None:
    """A reader in between found none: a live without links, say.  The kernel tells deletions."""
    path = tmp_path / "table"
    (tmp_path / "table.new").write_bytes(b"of one that died before it was named")
    named(path, b"former")
    was_there: list[bool] = []
    folder = os.open(tmp_path, os.O_RDONLY)
    before = signal.signal(signal.SIGIO, lambda *_: was_there.append(path.exists()))
    try:
        fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_DELETE | fcntl.DN_MULTISHOT)
        named(path, b"new")
    finally:
        os.close(folder)
        signal.signal(signal.SIGIO, before)
    assert path.read_bytes() == b"new"
    assert was_there == [True], "the other name went"
    assert [each.name for each in tmp_path.iterdir()] == ["table"]
