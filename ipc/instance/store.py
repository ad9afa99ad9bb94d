"""The folder that a live and its backups share.

node        whose store it is, and by what kind of lock its live is found
live.lock   the record; file_lock.py locks its bytes
failback    a live that came back asks for its role (file_lock.py)
journal/    what must survive
pages/      what has no room in memory
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from shmbroker.ipc.errors import Error
from shmbroker.ipc.instance import lock_test, mount, record
from shmbroker.ipc.instance.whole import read_whole, write_whole

NODE: Final = "node"
JOURNAL: Final = "journal"
PAGES: Final = "pages"
FILE_LOCK: Final = "file"


class StoreRefused(Error):
    """This folder cannot be used as a store; the message says why, and the way out."""


def create(path: Path, vhost: str, lock: str = FILE_LOCK) -> None:
    """Make a store, or leave the one that is there; StoreRefused if it is of another vhost."""
    if (path / NODE).exists():
        Store(path, vhost, lock)
        return
    (path / JOURNAL).mkdir(parents=True, exist_ok=True, mode=0o700)
    if lock == FILE_LOCK:
        lock_test.check(path)
    with suppress(FileNotFoundError):  # of somebody who died here: without a node it is nobody's
        (path / record.FILE).unlink()
    status = record.create(path)
    node = {"node": secrets.token_hex(16), "vhost": vhost, "inode": status.st_ino, "lock": lock}
    write_whole(path / NODE, node, synced=True)


class Store:
    def __init__(
        self, path: Path, vhost: str, lock: str = FILE_LOCK, *, moved: bool = False
    ) -> None:
        """`moved`: a copy is meant to be the original from now on, or locked in another way."""
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
            inode = (path / record.FILE).stat().st_ino
        except FileNotFoundError:
            raise StoreRefused(f"store {path} has no {record.FILE}: it is not whole") from None
        if inode != node["inode"] and not moved:
            raise StoreRefused(
                f"store {path} is a copy: it has the node id {node['node']} of another folder "
                f"(inode {node['inode']}, here {inode}), and two with the same id would both be "
                "live. If the other one is gone for good: shmbroker run DIR --moved"
            )
        former = node.get("lock", FILE_LOCK)
        if former != lock and not moved:
            raise StoreRefused(
                f'store {path} has lock = "{former}", and store.lock is "{lock}" here: with both '
                "in use two would be live. If all who share it have been stopped, and are to have "
                "this one: shmbroker run DIR --moved"
            )
        if (inode, lock) != (node["inode"], former):
            write_whole(path / NODE, {**node, "inode": inode, "lock": lock}, synced=True)
        self.mount = mount.mount_of(path)
