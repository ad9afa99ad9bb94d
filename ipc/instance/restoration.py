"""A store made of a backup: the same node, in another history and a far higher epoch.

Positions that were used after the backup are used again for other messages.  So links tell their
targets another history (netbridge/link/origin.py), and nothing is dropped there as known.  The
epoch is above all that the lost store may have had, so that nobody takes the broker for one that
was replaced.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from shmbroker.ipc.base.errors import DiskFull, InvalidArgument
from shmbroker.ipc.base.trust import make_folder
from shmbroker.ipc.instance import backup, full_disk
from shmbroker.ipc.instance.backup import Backup
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.creation import make_folders
from shmbroker.ipc.instance.lock.record import LIVE, Record, RecordFile
from shmbroker.ipc.instance.mending import EPOCHS_UNSEEN, epoch_of_journal
from shmbroker.ipc.instance.page_files import copy_file
from shmbroker.ipc.instance.store import (
    JOURNAL,
    NODE,
    PAGES,
    Node,
    begin_history,
    has_journal,
    journal_of,
    pages_of,
    read_node,
    restoring,
)
from shmbroker.ipc.instance.unattended import unattended
from shmbroker.ipc.instance.whole import sync_folder, write_whole


def restore(config: Config, source: Path, *, new_node: bool) -> Backup:
    """Into the store of an instance, which has no journal yet; nobody runs on it meanwhile.

    `new_node`: the original goes on, and this one is to be told from it.
    """
    check(config)
    make_folders(config)
    journal, pages = journal_of(config), pages_of(config)
    make_folder(journal)
    with unattended(config.store / JOURNAL), begun(journal, pages):
        found = backup.verified(source)
        making = [(journal, source / JOURNAL), (pages, source / PAGES)]
        for place, what in making:
            copy(what, restoring(place))
        identify(config, secrets.token_hex(16) if new_node else found.node, source)
        for place, _ in reversed(making):  # the journal last: until then no broker starts here
            put(restoring(place), place)
    return found


def check(config: Config) -> None:
    if config.policy == "replication":
        raise InvalidArgument(
            f"{config.folder} is a member of a replicated node, which copies from another member: "
            "start it with an empty store. If all members are lost, restore into an instance with "
            "a store of its own, and let the programs go there"
        )
    journal, pages = journal_of(config), pages_of(config)
    # nobody has written there since a restore was interrupted: its pages come again
    has_pages = not restoring(journal).exists() and any(pages.glob("*/*.page"))
    for folder, is_used in ((journal, has_journal(journal)), (pages, has_pages)):
        if is_used:
            raise InvalidArgument(
                f"{folder} is not empty: move it away first, or restore into a new instance "
                "(shmbroker create)"
            )


@contextmanager
def begun(*places: Path) -> Iterator[None]:
    """Nothing stays of what fails; what is killed is seen by the next start (`Store.of`)."""
    for each in places:
        shutil.rmtree(restoring(each), ignore_errors=True)  # of somebody who was interrupted
    for each in places:
        make_folder(restoring(each))
    try:
        yield
    except BaseException as error:
        for each in reversed(places):
            shutil.rmtree(restoring(each), ignore_errors=True)
        if isinstance(error, OSError) and full_disk.is_full(error):
            where = f"{places[0].parent}: {error.strerror}"
            raise DiskFull(f"{where}: nothing is left there") from error
        raise


def copy(source: Path, target: Path) -> None:
    """With all of its blocks: these files are written over later, and a disk may be full then."""
    files = sorted(each for each in source.rglob("*") if each.is_file())
    for each in files:
        to = target / each.relative_to(source)
        make_folder(to.parent)
        size = copy_file(each, to)
        with to.open("rb+") as file:
            if size:
                os.posix_fallocate(file.fileno(), 0, size)
            os.fsync(file.fileno())
    for folder in {target, *((target / each.relative_to(source)).parent for each in files)}:
        sync_folder(folder)


def identify(config: Config, node: str, source: Path) -> None:
    """Which store it is: who was live last, in which epoch, and in which history it goes on."""
    lock = RecordFile(config.store)
    try:
        # it may have been restored before
        known = max(epoch_of_journal(source / JOURNAL), lock.read().epoch)
        lock.write(Record(known + EPOCHS_UNSEEN, LIVE))
        inode = os.fstat(lock.number).st_ino
    finally:
        lock.close()
    there = read_node(config.store / NODE)
    places = (str(each or "") for each in (config.journal, config.pages))
    made = Node(node, config.vhost, inode, there.lock if there else config.lock, *places)
    begin_history(config.store)
    write_whole(config.store / NODE, asdict(made), synced=True)


def put(made: Path, place: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(place)  # empty, or with segments that never had a name
    made.rename(place)
    sync_folder(place.parent)
