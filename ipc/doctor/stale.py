"""Stale segments in /dev/shm, which no process will use again.

    shmbroker.NAME.arena ...       without a catalog: its vhost was being made, or deleted
    shmbroker.NAME.queue-ROW-GEN   the catalog has no such queue: it was being made, or deleted
    shmbroker.NAME.*               made before the machine was started anew
    shmbroker.NAME/                the same of a vhost that a group shares

Time proves nothing, so what is open or mapped anywhere is left alone, however old it is; and what
is young is left alone even if we cannot see who uses it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from shmbroker.core.layout import (
    CATALOG_BOOT_AT,
    CATALOG_MAGIC,
    CATALOG_MAGIC_AT,
    CATALOG_VERSION_AT,
    LAYOUT_VERSION,
    PAGE_BYTES,
    QUEUE_COLUMN_AT,
    QUEUE_ROWS,
    ROW_BYTES,
    ROW_GENERATION_MASK,
    ROW_GENERATION_SHIFT,
    ROW_LIVE,
)
from shmbroker.ipc.base import trust
from shmbroker.ipc.base.errors import Untrusted
from shmbroker.ipc.doctor.finding import Finding

SHM = Path("/dev/shm")
PREFIX = "shmbroker."
PATTERN = "/dev/shm/shmbroker.{}.*"

SECONDS_MIN = 60
"""Making a segment takes milliseconds: only what is older may have been left behind."""

REMEDY = "shmbroker doctor --fix --yes"

Identity = tuple[int, int]
"""The device and inode of a file."""


def files_in_use(processes: Path = Path("/proc")) -> set[Identity]:
    """What the processes that we may look into have open or mapped."""
    found: set[Identity] = set()
    for process in processes.glob("[0-9]*"):
        # one that has ended, or is not ours to look into, raises: the next one
        with suppress(OSError):
            found.update(mapped(process / "maps"))
        with suppress(OSError):
            found.update(opened(process / "fd"))
    return found


def mapped(maps: Path) -> Iterator[Identity]:
    for line in filter(None, maps.read_text(errors="replace").split("\n")):
        _, _, _, device, inode, *_ = line.split(maxsplit=5)
        if inode != "0":
            major, minor = device.split(":")
            yield os.makedev(int(major, 16), int(minor, 16)), int(inode)


def opened(folder: Path) -> Iterator[Identity]:
    for entry in folder.iterdir():
        with suppress(OSError):  # closed meanwhile
            status = entry.stat()
            yield status.st_dev, status.st_ino


def boot_hash() -> int:
    """As it stands in a catalog that was made since the machine was started."""
    from shmbroker.ipc._native import lib

    text = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    hashed: int = lib.sb_name_hash(text, len(text))
    return hashed


def stale_segments(folder: Path, now: float, in_use: set[Identity], boot: int) -> Iterator[Finding]:
    """All of them in this folder, and vhosts that cannot be read."""
    vhosts: dict[str, list[Path]] = {}
    for path in sorted(folder.glob(f"{PREFIX}*.*")):
        vhosts.setdefault(path.name.removeprefix(PREFIX).rpartition(".")[0], []).append(path)
    for name, paths in vhosts.items():
        old = left_behind(paths, now, in_use)
        yield from findings_of_vhost(name, folder / f"{PREFIX}{name}.catalog", paths, old, boot)
    yield from stale_shared(folder, now, in_use, boot)


def stale_shared(folder: Path, now: float, in_use: set[Identity], boot: int) -> Iterator[Finding]:
    """Vhosts that a group shares, each in a folder, as far as we may look into them."""
    for home in sorted(folder.glob(f"{PREFIX}*")):
        name = home.name.removeprefix(PREFIX)
        if "." in name or home.is_symlink() or not home.is_dir() or not os.access(home, os.R_OK):
            continue
        paths = sorted(home.iterdir())
        old = left_behind(paths, now, in_use)
        if old == paths and left_behind([home], now, in_use):  # the last that may be removed
            old = paths = [*paths, home]
        yield from findings_of_vhost(name, home / "catalog", paths, old, boot)


def left_behind(paths: Iterable[Path], now: float, in_use: set[Identity]) -> list[Path]:
    """Those that are old, and that nobody is seen to use."""
    found = []
    for path in sorted(paths):
        with suppress(FileNotFoundError):
            status = path.lstat()
            used = (status.st_dev, status.st_ino) in in_use
            if not used and now - status.st_mtime >= SECONDS_MIN:
                found.append(path)
    return found


def findings_of_vhost(
    name: str, catalog: Path, paths: list[Path], old: list[Path], boot: int
) -> Iterator[Finding]:
    subject = f"vhost {name!r}"
    if catalog not in paths:
        if old:
            yield Finding("warning", subject, "it has no catalog", REMEDY, tuple(old))
        return
    try:
        opened = trust.opened(catalog, os.O_RDONLY, believed(catalog))
    except FileNotFoundError:  # deleted meanwhile
        return
    except Untrusted as error:
        # one that we may not even read is another user's affair, root's as well
        if os.geteuid() in (0, catalog.lstat().st_uid):
            yield Finding("error", subject, str(error), f"rm {PATTERN.format(name)}")
        return
    with os.fdopen(opened, "rb") as file:
        header = file.read(PAGE_BYTES)
        misfit = what_is_wrong(header)
        if misfit:
            yield Finding("error", subject, f"{catalog} {misfit}", f"rm {PATTERN.format(name)}")
        elif word(header, CATALOG_BOOT_AT) != boot:
            # without its catalog there is no vhost, so that goes first
            stale = sorted(old, key=lambda path: path != catalog) if old == paths else []
            problem = "it was made before the machine was started anew, and cannot be entered"
            yield Finding("error", subject, problem, REMEDY, tuple(stale))
        elif stale := [path for path in old if is_of_no_queue(path, file)]:
            yield Finding("warning", subject, "segments of no queue", REMEDY, tuple(stale))


def believed(catalog: Path) -> trust.Trust:
    """Of a vhost that a group shares, whoever is in the group; of another one its owner."""
    folder = catalog.parent.stat()
    if not catalog.parent.name.startswith(PREFIX) or folder.st_mode & 0o7777 != trust.SHARED_MODE:
        return trust.LOOKED_AT
    return trust.Trust(refused=0o077, looks=True, shared=True, group=folder.st_gid)


def what_is_wrong(header: bytes) -> str:
    """With a catalog that begins so; nothing if it may be read."""
    if len(header) < PAGE_BYTES:
        return "is cut off"
    if word(header, CATALOG_MAGIC_AT) != CATALOG_MAGIC:
        return "is no catalog"
    version = word(header, CATALOG_VERSION_AT)
    if version != LAYOUT_VERSION:
        return f"has layout {version}, this is layout {LAYOUT_VERSION}"
    return ""


def word(memory: bytes, at: int) -> int:
    return int.from_bytes(memory[at : at + 8], "little", signed=True)


def is_of_no_queue(path: Path, catalog: BinaryIO) -> bool:
    """Whether this segment's queue is not, or no longer, in the catalog."""
    match = re.fullmatch(r"(?:.*\.)?(?:queue-(\d+)-(\d+)|latency-(\d+)-(\d+)-\d+)", path.name)
    if match is None:
        return False
    index, generation = (int(each) for each in match.groups() if each is not None)
    if index >= QUEUE_ROWS:  # anybody may give any number
        return False
    catalog.seek(QUEUE_COLUMN_AT + index * ROW_BYTES)
    row = word(catalog.read(ROW_BYTES), 0)
    is_its_own = (row >> ROW_GENERATION_SHIFT) & ROW_GENERATION_MASK == generation
    return not (row & ROW_LIVE and is_its_own)
