"""Where the journal is that a folder names: its own, or that of an instance or a store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.trust import make_folder
from shmbroker.ipc.instance.config import config as configs
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.lock import record
from shmbroker.ipc.instance.store import JOURNAL, NODE, StoreRefused, journal_of, read_node

LEFT_BEHIND: Final = re.compile(r"reached|.*\.(spare|damaged)|lost\+found")
"""What the folder of a journal that was removed may still have."""


@dataclass(frozen=True, slots=True)
class JournalPlace:
    journal: Path
    store: Path | None = None
    """If the journal's own folder was not what was named."""
    segment: int = 0
    """Bytes, as an instance is configured; 0: none was named."""


def of_existing(named: Path) -> JournalPlace:
    """Of a journal that is to be read."""
    if is_instance(named):
        config = configs.load(named)
        return JournalPlace(journal_of(config), config.store, config.segment)
    node = read_node(named / NODE)
    if node is not None and node.journal:
        return JournalPlace(Path(node.journal), named)
    if (named / JOURNAL).is_dir():
        return JournalPlace(named / JOURNAL, named)
    return JournalPlace(named)


def of_new(named: Path) -> JournalPlace:
    """Of a journal that is to be written where there is none, in a folder that is there then.

    An error if a broker would not read it: it is refused, as nobody would miss what is in it.
    """
    place = _place_of(named) or _around(named)
    if place is None:
        _check_empty(named)
        return JournalPlace(named)
    make_folder(place.journal)
    return place


def is_instance(folder: Path) -> bool:
    return (folder / configs.FILE).exists()


def is_store(folder: Path) -> bool:
    return (folder / NODE).exists() or (folder / record.FILE).exists()


def _place_of(folder: Path) -> JournalPlace | None:
    """None: it is that of no instance, and of no store."""
    if is_instance(folder):
        return _of_instance(configs.load(folder))
    return JournalPlace(_of_store(folder), folder) if is_store(folder) else None


def _of_instance(config: Config) -> JournalPlace:
    if not is_store(config.store):
        raise StoreRefused(
            f"{config.store} is no store: correct store.path, mount what it is on, or let the "
            "broker make it first"
        )
    journal, node = journal_of(config), read_node(config.store / NODE)
    if node is not None and node.journal != str(config.journal or ""):
        raise StoreRefused(
            f"store {config.store} has its journal in {node.journal or 'itself'}, and "
            f"store.journal is {config.journal or 'not set'}: correct store.journal first"
        )
    return JournalPlace(journal, config.store, config.segment)


def _of_store(store: Path) -> Path:
    node = read_node(store / NODE)
    if node is not None and node.journal:
        return Path(node.journal)
    if node is None and not (store / JOURNAL).is_dir():
        raise StoreRefused(
            f"store {store} does not say where its journal is: name the folder of its instance"
        )
    return store / JOURNAL


def _around(journal: Path) -> JournalPlace | None:
    """None if it is in no instance and no store; an error if it is in one, and not its journal.

    A journal that has a folder of its own, outside of the store, does not say whose it is.
    """
    for around in dict.fromkeys((journal.absolute().parent, journal.resolve().parent)):
        place = _place_of(around)
        if place is None:
            continue
        if place.journal.resolve() != journal.resolve():
            raise InvalidArgument(
                f"no broker would read a journal in {journal}: name {around}, whose journal is in "
                f"{place.journal}, or a folder elsewhere"
            )
        return place
    return None


def _check_empty(folder: Path) -> None:
    found = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    others = sorted(each for each in found if not LEFT_BEHIND.fullmatch(each))
    if others:
        raise InvalidArgument(
            f"{folder} has {others[0]}: import into an empty folder, or name that of an instance "
            "or a store"
        )
