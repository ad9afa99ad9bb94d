"""The page files of a store at one moment, while its pager works.

They are held open, so that none is lost that is deleted before it was copied: page files are not
written over, they only grow.
"""

from __future__ import annotations

import hashlib
import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import Error, MessageGone
from shmbroker.ipc.base.trust import PRIVATE_MODE, make_folder
from shmbroker.ipc.instance.whole import sync_folder

FILES_LEFT: Final = 64
CHUNK: Final = 4 << 20

Looked = dict[str, tuple[int, int]]
"""Of each queue's folder when it changed and how many files it has; of its newest file which one
it is, and its size."""


class Pages:
    """Held open until they are closed."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.files: dict[str, int] = {}
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._most = most - FILES_LEFT

    def look(self) -> Looked:
        """MessageGone: a file was deleted just now."""
        seen: Looked = {}
        names = set[str]()
        with suppress(FileNotFoundError):  # no queue has ever paged
            for folder in sorted(each for each in self.source.iterdir() if each.is_dir()):
                changed = folder.stat().st_mtime_ns
                pages = sorted(each.name for each in folder.glob("*.page"))
                seen[folder.name] = (changed, len(pages))
                names.update(f"{folder.name}/{each}" for each in pages)
                for each in pages:
                    self._hold(f"{folder.name}/{each}")
                if pages:
                    newest = f"{folder.name}/{pages[-1]}"
                    held = os.fstat(self.files[newest])
                    seen[newest] = (held.st_ino, held.st_size)
        for gone in self.files.keys() - names:
            os.close(self.files.pop(gone))
        return seen

    def _hold(self, name: str) -> None:
        if name in self.files:
            return
        if len(self.files) >= self._most:
            raise Error(
                f"{self.source} has more than {self._most} page files, which are held open while "
                "they are copied: raise the limit of open files (ulimit -n)"
            )
        try:
            self.files[name] = os.open(
                self.source / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
            )
        except FileNotFoundError:
            raise MessageGone(f"{name} was deleted") from None

    def copy(self, target: Path, seen: Looked) -> dict[str, list[object]]:
        """As they were then: the newest files may have grown since."""
        copies: dict[str, list[object]] = {}
        for name, file in sorted(self.files.items()):
            size = seen[name][1] if name in seen else os.fstat(file).st_size
            make_folder(target / name.partition("/")[0])
            copies[name] = [size, copy_part(file, target / name, size)]
        for folder in {(target / name).parent for name in copies}:
            sync_folder(folder)
        return copies

    def close(self) -> None:
        for file in self.files.values():
            os.close(file)
        self.files.clear()


def copy_part(source: int, target: Path, size: int) -> str:
    """The first bytes of a file, synced: their checksum."""
    digest, at = hashlib.blake2b(digest_size=16), 0
    with target.open("wb") as file:
        os.fchmod(file.fileno(), PRIVATE_MODE)
        while at < size:
            part = os.pread(source, min(CHUNK, size - at), at)
            if not part:
                raise Error(f"{target.name} became shorter while it was copied")
            digest.update(part)
            file.write(part)
            at += len(part)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def copy_file(source: Path, target: Path, used: int | None = None) -> int:
    """All of it, or the first bytes that are used and a hole behind them, synced: how many bytes
    were read.  Holes stay holes."""
    done = 0
    with source.open("rb") as read, target.open("wb") as file:
        os.fchmod(file.fileno(), PRIVATE_MODE)
        size = os.fstat(read.fileno()).st_size
        most = size if used is None else min(used, size)
        while part := read.read(min(CHUNK, most - done)):
            if part.count(0) == len(part):
                file.seek(len(part), os.SEEK_CUR)
            else:
                file.write(part)
            done += len(part)
        file.truncate(size)
        file.flush()
        os.fsync(file.fileno())
    return done
