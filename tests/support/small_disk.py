"""A disk that is small enough to be filled: a tmpfs of its own, unmounted whatever happens."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from shutil import rmtree

BALLAST = "ballast"
STEP_BYTES = 4096


@contextmanager
def small_disk(folder: Path, size: int, names: int = 0) -> Iterator[Path]:
    """Mounted there, with room for so many files if that is said; needs root."""
    folder.mkdir(exist_ok=True)
    options = f"size={size},mode=700" + (f",nr_inodes={names}" if names else "")
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        # lazily: whoever is still to be killed may have files of it open
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path) -> None:
    """Leave no room, as somebody else's files do."""
    with (disk / BALLAST).open("ab", buffering=0) as file:
        step = 1 << 20
        while step >= STEP_BYTES:
            try:
                if file.write(bytes(step)) < step:
                    step //= 2
            except OSError:
                step //= 2


def fill_names(disk: Path) -> None:
    """No file can be made any more, though there is room in those that are there."""
    (disk / BALLAST).mkdir()
    with suppress(OSError):
        for number in count():
            (disk / BALLAST / str(number)).touch()


def empty_names(disk: Path) -> None:
    rmtree(disk / BALLAST)


def empty(disk: Path) -> None:
    """What `fill` has taken is room again."""
    (disk / BALLAST).unlink(missing_ok=True)
