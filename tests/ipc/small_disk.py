"""A disk that is small enough to be filled: a tmpfs of its own, unmounted whatever happens."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BALLAST = "ballast"
STEP_BYTES = 4096


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """Mounted there; needs root."""
    folder.mkdir(exist_ok=True)
    options = f"size={size},mode=700"
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


def empty(disk: Path) -> None:
    """What `fill` has taken is room again."""
    (disk / BALLAST).unlink(missing_ok=True)
