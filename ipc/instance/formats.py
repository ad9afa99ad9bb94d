"""Which formats of files this version reads: those of a store are looked at before it is used.

Who reads a file checks its header, too.  It would take a page file of another version for a damaged
one, and a broker that takes over rings reads no segment before it writes its own.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.paging import page_file

HEAD: Final = struct.Struct("=QI")
"""Of the header of a segment and of a page file: magic and version."""


@dataclass(frozen=True, slots=True)
class Format:
    what: str
    magic: int
    version: int


JOURNAL: Final = Format("journal", 0x6C616E72756F6A62, 2)
"""ipc/journal/format.h"""
PAGES: Final = Format("page file", page_file.MAGIC, page_file.VERSION)


class OtherFormat(Error):
    """Another version of shmbroker wrote it; the message says which format it has."""


def check_journal(folder: Path) -> None:
    """Of its newest segment."""
    newest = max(folder.glob("*.journal"), default=None)
    if newest is not None:
        check(newest, JOURNAL)


def check_pages(folder: Path) -> None:
    """Of the newest file of each queue."""
    newest: dict[Path, Path] = {}
    for each in folder.glob("*/*.page"):
        newest[each.parent] = max(each, newest.get(each.parent, each))
    for each in newest.values():
        check(each, PAGES)


def check(path: Path, known: Format) -> None:
    """One that is damaged, or gone, is for whoever reads it."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD.size)
    except OSError:
        return
    if len(head) < HEAD.size:
        return
    magic, found = HEAD.unpack(head)
    if magic == known.magic and found != known.version:
        from importlib.metadata import version  # some 30 ms

        raise OtherFormat(
            f"{path} has format {found} of a {known.what}, and shmbroker {version('shmbroker')} "
            f"reads format {known.version}: use the version that wrote it (docs/upgrade.md). "
            "Nothing was changed"
        )
