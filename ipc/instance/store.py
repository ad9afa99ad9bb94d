"""The folder that a live and its backups share.

node        whose store it is: written once
live.lock   who is live; its bytes are locked
failback    a live that came back asks for its role
journal/    what must survive
pages/      what has no room in memory
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.errors import Error
from shmbroker.ipc.instance import live_lock, lock_test, mount
from shmbroker.ipc.instance.live_lock import LiveLock

NODE: Final = "node"
FAILBACK: Final = "failback"
JOURNAL: Final = "journal"
PAGES: Final = "pages"


class StoreRefused(Error):
    """This folder cannot be used as a store; the message says why, and the way out."""


def write_whole(path: Path, content: dict[str, Any], *, synced: bool = False) -> None:
    """A reader meets the old content or the new one."""
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    with temporary.open("w") as file:
        file.write(json.dumps(content) + "\n")
        file.flush()
        if synced:
            os.fsync(file.fileno())
    temporary.replace(path)
    if synced:
        sync_folder(path.parent)


def read_whole(path: Path) -> dict[str, Any]:
    """Empty if it is not there, or no content of ours."""
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def create(path: Path, vhost: str) -> None:
    """Make a store, or leave the one that is there; StoreRefused if it is of another vhost."""
    if (path / NODE).exists():
        Store(path, vhost).close()
        return
    (path / JOURNAL).mkdir(parents=True, exist_ok=True, mode=0o700)
    lock_test.check(path)
    with suppress(FileNotFoundError):  # of somebody who died here: without a node it is nobody's
        (path / live_lock.FILE).unlink()
    status = live_lock.create(path)
    node = {"node": secrets.token_hex(16), "vhost": vhost, "inode": status.st_ino}
    write_whole(path / NODE, node, synced=True)


class Store:
    def __init__(self, path: Path, vhost: str, *, moved: bool = False) -> None:
        """`moved`: a copy is meant to be the original from now on."""
        self.path = path
        self.journal = path / JOURNAL
        self.pages = path / PAGES
        node = read_whole(path / NODE)
        if not node:
            raise StoreRefused(
                f"{path} is no store: make one with shmbroker create, or correct store.path"
            )
        self.node: bytes = bytes.fromhex(node["node"])
        if node["vhost"] != vhost:
            raise StoreRefused(
                f"store {path} has the journal of vhost {node['vhost']!r}, not of {vhost!r}: "
                "correct instance.vhost or store.path"
            )
        try:
            inode = (path / live_lock.FILE).stat().st_ino
        except FileNotFoundError:
            raise StoreRefused(f"store {path} has no {live_lock.FILE}: it is not whole") from None
        if inode != node["inode"] and not moved:
            raise StoreRefused(
                f"store {path} is a copy: it has the node id {node['node']} of another folder "
                f"(inode {node['inode']}, here {inode}), and two with the same id would both be "
                "live. If the other one is gone for good: shmbroker run DIR --moved"
            )
        if inode != node["inode"]:
            write_whole(path / NODE, {**node, "inode": inode}, synced=True)
        self.mount = mount.mount_of(path)
        self.lock = LiveLock(path)

    # --- a live that came back asks for its role ------------------------------------------------

    def ask_failback(self, epoch: int) -> None:
        """Of the one who is live by this epoch."""
        write_whole(self.path / FAILBACK, {"epoch": epoch})

    def is_failback_asked(self, epoch: int) -> bool:
        """By somebody who is still there, and next."""
        asked = read_whole(self.path / FAILBACK).get("epoch") == epoch
        return asked and self.lock.another_is_announced

    def failback_done(self) -> None:
        with suppress(FileNotFoundError):
            (self.path / FAILBACK).unlink()

    def close(self) -> None:
        self.lock.close()
