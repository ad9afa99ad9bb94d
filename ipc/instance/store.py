"""The folder that a live and its backups share.

node        whose store it is, and by what kind of lock its live is found
live.lock   the record; file_lock.py locks its bytes
history     in which history links ship, if it was restored from a backup, or is a copy
failback    a live that came back asks for its role (file_lock.py)
journal/    what must survive
pages/      what has no room in memory
importing   an import into journal/ has begun, and not ended
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.trust import check_folder, make_folder
from shmbroker.ipc.instance import formats, mount
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.lock import lock_test, record
from shmbroker.ipc.instance.whole import check_is_file, read_whole, write_whole
from shmbroker.ipc.journal.segment import newest_of

NODE: Final = "node"
JOURNAL: Final = "journal"
PAGES: Final = "pages"
HISTORY: Final = "history"
HISTORY_BITS: Final = 63
FILE_LOCK: Final = "file"
IMPORTING: Final = "importing"


def journal_of(config: Config) -> Path:
    return config.journal or config.store / JOURNAL


def pages_of(config: Config) -> Path:
    return config.pages or config.store / PAGES


class StoreRefused(Error):
    """This folder cannot be used as a store; the message says why, and the way out."""


def check_imported(store: Path, journal: Path) -> None:
    """StoreRefused if its journal is half of what was to be imported."""
    mark = store / IMPORTING
    if mark.exists():
        raise StoreRefused(
            f"{store} has half of a journal: importing it was interrupted, or goes on. Remove "
            f"that, and do it again: rm -r {journal} {mark}; shmbroker journal import"
        )


@dataclass(frozen=True, slots=True)
class Node:
    """What the file `node` says."""

    node: str
    vhost: str
    inode: int
    lock: str = FILE_LOCK
    journal: str = ""
    pages: str = ""
    """Folders of their own, if they have some."""


def read_node(path: Path) -> Node | None:
    """None if it says nothing that can be used."""
    try:
        found = Node(**read_whole(path))
        is_good = type(found.inode) is int and isinstance(found.vhost, str)
        return found if is_good and re.fullmatch("[0-9a-f]{32}", found.node) else None
    except TypeError:
        return None


def node_of_journal(folder: Path) -> str:
    """Whose segments these are; a new id if there are none."""
    epoch, node = 0, b""
    with suppress(Error):
        epoch, node = newest_of(folder)
    return node.hex() if epoch > 0 else secrets.token_hex(16)


def restoring(place: Path) -> Path:
    """Where a backup's journal or pages are until all of it is there (restoration.py)."""
    return place.with_name(f"{place.name}.restoring")


def history_of(path: Path) -> int:
    """Another one whenever positions may be used twice; 0: they never were."""
    found = read_whole(path / HISTORY).get("history", 0)
    return found if type(found) is int and found >= 0 else 0


def begin_history(path: Path) -> None:
    write_whole(path / HISTORY, {"history": secrets.randbits(HISTORY_BITS) | 1}, synced=True)


def has_journal(folder: Path) -> bool:
    with suppress(OSError):
        return any(folder.glob("*.journal"))
    return False


def create(
    path: Path,
    vhost: str,
    lock: str = FILE_LOCK,
    *,
    journal: Path | None = None,
    pages: Path | None = None,
) -> None:
    """Make a store, or leave the one that is there; StoreRefused if it is of another vhost."""
    if not (path / NODE).exists():
        _make(path, vhost, lock, journal, pages)
    Store(path, vhost, lock, journal=journal, pages=pages)


def _make(path: Path, vhost: str, lock: str, journal: Path | None, pages: Path | None) -> None:
    """Or wait until somebody else has made it."""
    check_folder(path)
    for folder in (path, journal or path / JOURNAL):
        make_folder(folder)
    if lock == FILE_LOCK:
        lock_test.check(path)
    with record.being_made(path, waits=lock == FILE_LOCK) as file:
        if (path / NODE).exists():
            return
        record.write_first(file)
        places = (str(each or "") for each in (journal, pages))
        node = Node(secrets.token_hex(16), vhost, os.fstat(file).st_ino, lock, *places)
        write_whole(path / NODE, asdict(node), synced=True)


class Store:
    def __init__(
        self,
        path: Path,
        vhost: str,
        lock: str = FILE_LOCK,
        *,
        journal: Path | None = None,
        pages: Path | None = None,
        moved: bool = False,
    ) -> None:
        """`moved`: a copy is meant to be the original from now on, or locked in another way, or
        what it has lost is to be made anew."""
        self.path = path
        self.journal = journal or path / JOURNAL
        self.pages = pages or path / PAGES
        places = (str(journal or ""), str(pages or ""))
        for folder in (path, self.journal, self.pages):
            check_folder(folder)
        if self.pages.exists() and not self.pages.is_dir():
            raise StoreRefused(f"{self.pages} is no folder: move it away, and it is made anew")
        inode = self._inode(moved)
        node = self._node(inode, vhost, lock, places, moved)
        self.node: bytes = bytes.fromhex(node.node)
        if node.vhost != vhost:
            raise StoreRefused(
                f"store {path} has the journal of vhost {node.vhost!r}, not of {vhost!r}: "
                "correct instance.vhost or store.path"
            )
        if inode != node.inode and not moved:
            raise StoreRefused(
                f"store {path} is a copy: it has the node id {node.node} of another folder "
                f"(inode {node.inode}, here {inode}), and two with the same id would both be "
                "live. If the other one is gone for good: shmbroker run DIR --moved"
            )
        if node.lock != lock and not moved:
            raise StoreRefused(
                f'store {path} has lock = "{node.lock}", and store.lock is "{lock}" here: with '
                "both in use two would be live. If all who share it have been stopped, and are to "
                "have this one: shmbroker run DIR --moved"
            )
        for name, here, there in zip(
            ("journal", "pages"), places, (node.journal, node.pages), strict=True
        ):
            if here != there and not moved:
                raise StoreRefused(
                    f"store {path} has its {name} in {there or 'itself'}, and store.{name} is "
                    f"{here or 'not set'} here: live and backup name the same. If all who share "
                    "it have been stopped, and it was moved: shmbroker run DIR --moved"
                )
        if inode != node.inode:  # the original may have gone on behind what was copied
            begin_history(path)
        if (inode, lock, *places) != (node.inode, node.lock, node.journal, node.pages):
            new = replace(node, inode=inode, lock=lock, journal=places[0], pages=places[1])
            write_whole(path / NODE, asdict(new), synced=True)
        self.mount = mount.mount_of(path)
        formats.check_journal(self.journal)
        formats.check_pages(self.pages)

    @classmethod
    def of(cls, config: Config, *, moved: bool = False) -> Store:
        """Of a broker; StoreRefused also if a backup was to be restored into it, or a journal to be
        imported, and is not."""
        check_imported(config.store, journal_of(config))
        begun = restoring(journal_of(config))
        if begun.exists():
            raise StoreRefused(
                f"{config.store} has half of a backup: restoring it was interrupted, or goes on. "
                f"Do it again: shmbroker store restore BACKUP {config.folder}. To begin without "
                f"it: rm -r {begun}"
            )
        return cls(
            config.store,
            config.vhost,
            config.lock,
            journal=config.journal,
            pages=config.pages,
            moved=moved,
        )

    @property
    def lock_file(self) -> Path:
        return self.path / record.FILE

    def check_place(self, fence: int) -> None:
        """StoreRefused if live.lock, open as `fence`, is not what others find at its path."""
        ours = os.fstat(fence)
        try:
            there = self.lock_file.stat()
            why = "another one is there"
            is_ours = (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
        except OSError as error:
            why, is_ours = error.strerror or str(error), False
        if not is_ours:
            raise StoreRefused(
                f"unmounted, moved or deleted ({why}): {self.lock_file} is not what this broker "
                "has open, and nobody would find what is written; put it back, and start again"
            )

    def _inode(self, moved: bool) -> int:
        """Of live.lock."""
        file, node = self.lock_file, self.path / NODE
        check_is_file(node)
        check_is_file(file)
        is_store = node.exists() or file.exists() or has_journal(self.journal)
        if not is_store:
            raise StoreRefused(
                f"{self.path} is no store: make one with shmbroker create, correct store.path, or "
                "mount what it is on"
            )
        if not file.exists():
            if not moved:
                raise StoreRefused(
                    f"store {self.path} is not whole: {file} is missing. If all who share it have "
                    "been stopped, it is made anew by shmbroker run DIR --moved"
                )
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return file.stat().st_ino

    def _node(
        self, inode: int, vhost: str, lock: str, places: tuple[str, str], moved: bool
    ) -> Node:
        found = read_node(self.path / NODE)
        if found is not None:
            return found
        if not moved:
            what = "is damaged" if (self.path / NODE).exists() else "is missing"
            raise StoreRefused(
                f"{self.path / NODE} {what}: it should say which store this is. If it is that of "
                f"vhost {vhost!r}, and all who share it have been stopped: shmbroker run DIR "
                "--moved makes it anew"
            )
        made = Node(node_of_journal(self.journal), vhost, inode, lock, *places)
        write_whole(self.path / NODE, asdict(made), synced=True)
        return made
